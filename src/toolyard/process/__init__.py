"""Everything that forks."""
