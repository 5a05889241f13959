"""Anthropic's Messages form."""
