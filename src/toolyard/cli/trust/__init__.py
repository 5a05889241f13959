"""Which files are obeyed although tools may have changed them."""
