"""Tries to get out of a sandbox, and remembers what that showed."""
