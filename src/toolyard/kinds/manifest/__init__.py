"""A command in a tools.json manifest is a tool."""
