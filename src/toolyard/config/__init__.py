"""From the text of a configuration to settings; problems are collected, never raised."""
