"""What git would obey in a repository, found out without running git."""
