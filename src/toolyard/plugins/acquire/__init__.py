"""The only code that fetches repositories and installs plugins."""
