"""Conversations on disk: written before they are acted on, read again after whatever happened."""
