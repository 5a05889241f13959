"""The Model Context Protocol: an agent's tools for any client that speaks it."""
