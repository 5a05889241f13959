"""For people who write tools: start one, check it, test it, with no configuration and no model."""
