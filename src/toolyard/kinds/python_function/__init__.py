"""A Python function, class or module is a plugin: found, installed, imported, called in this process."""
