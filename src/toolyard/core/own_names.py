"""The names of the application's own tools, which no plugin's tool takes."""

from __future__ import annotations

ASK_AGENT = "agent"
READ_OUTPUT = "read_output"
SEARCH_TOOLS = "search_tools"
OWN_NAMES = frozenset({ASK_AGENT, READ_OUTPUT, SEARCH_TOOLS})
