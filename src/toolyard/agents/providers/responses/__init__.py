"""OpenAI's Responses form."""
