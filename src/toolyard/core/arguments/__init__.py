"""From what a model wrote to checked arguments: lenient in, strict out, faults in words."""
