"""Tools, calls and results as receivers write and read them: models, their SDKs, MCP."""
