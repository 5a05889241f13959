"""The vocabulary: pure data that every other package speaks."""
