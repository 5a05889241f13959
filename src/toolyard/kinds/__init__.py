"""One file for each kind of tool, each an implementation of `core.tool.Tool`."""
