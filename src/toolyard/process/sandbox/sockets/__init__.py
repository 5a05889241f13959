"""Sockets of the file system: those that were bound inside can be connected to from inside, and no others."""
