"""A chat on a real terminal, with a model that a test writes down."""

from chat_terminal import chat, model  # noqa: F401
