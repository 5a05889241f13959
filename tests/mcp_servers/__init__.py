"""MCP servers that tests start: a thin one that speaks by its streams, and the SDK's own over HTTP."""
