"""The files of the workspace as tools: read, write, edit, patch, find, search and list them."""
