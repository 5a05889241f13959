"""A conversation with a model."""
