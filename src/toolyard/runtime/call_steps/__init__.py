"""The steps of a call that are more than a line, and what a call is given on its way."""
