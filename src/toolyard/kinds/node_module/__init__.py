"""A Node module is a tool: its package installed and built, called in a host of its own."""
