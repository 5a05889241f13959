"""States of a workspace, kept so that they can be had back."""
