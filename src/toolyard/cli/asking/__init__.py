"""A person at a terminal is asked: whether a call may run, and what a tool wants to know."""
