"""OpenAI's Chat form, which most servers speak."""
