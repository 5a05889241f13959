"""For people who write tools: check, test, start and find them, over the Kind protocol."""
