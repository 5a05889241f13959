"""The folder that a call runs in: what a person is told of it, and what it makes of a line outside."""
