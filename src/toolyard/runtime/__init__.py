"""The loops: the one path of every call, and what it keeps."""
