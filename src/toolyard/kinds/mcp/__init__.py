"""MCP servers as tools: programs that speak over their streams, and servers reached over HTTP."""
