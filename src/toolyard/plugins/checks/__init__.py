"""What a check can say of any tool, whatever its kind."""
