"""A bash that outlives its commands."""
