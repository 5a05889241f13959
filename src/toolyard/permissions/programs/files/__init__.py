"""Programs about files, a module for what they do with them: look, search, pack, write."""
