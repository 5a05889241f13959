"""The text of a configuration becomes settings; problems are collected, never raised."""
