"""The tools to others, over a wire."""
