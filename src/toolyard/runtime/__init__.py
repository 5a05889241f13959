"""The one path of a call, and what it keeps."""
