"""Calls that only list or print, of programs whose other calls change something.

These tables are for the rules of presets alone. There a rule such as `git branch **` means what only lists; a rule of
somebody's own with that text means all that `git branch` does, as ever.

1. `listing` is a row of a table, and how a call is read by it.
2. `git`, `packages`, `system` and `shell` are the tables, each for a family of programs.
3. `python_code` reads Python that a line brings along.
4. `help_texts` knows which calls of a program print how it is used, or its version.
5. `find` finds the row for a call.
6. `unlisted` knows what may look in a sandbox although no row is about it.
"""
