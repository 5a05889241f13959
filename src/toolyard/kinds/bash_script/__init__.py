"""A bash file is a tool: its schema, its subcommands, its comments."""
