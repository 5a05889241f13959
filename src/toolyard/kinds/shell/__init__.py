"""Bash itself as tools: one command a call, or a live session."""
