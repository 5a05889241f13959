"""`toolyard serve`: the tools for other programs."""
