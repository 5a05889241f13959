"""MCP over streamable HTTP, on the official SDK, for many clients at once."""
