"""The command line: one noun, one file."""
