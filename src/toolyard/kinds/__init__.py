"""One folder is one kind of tool, whole."""
