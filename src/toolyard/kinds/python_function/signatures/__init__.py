"""What a typed function takes: a JSON Schema from its annotations, and its arguments from JSON."""
