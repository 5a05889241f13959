"""What git outside obeys in a workspace, and what git inside needs all the same."""
