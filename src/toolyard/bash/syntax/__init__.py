"""A command line becomes a reading: its commands, words and redirections, and what could not be proven."""
