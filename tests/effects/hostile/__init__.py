"""Lines that want to change, run, read or reach what is not theirs; a module is one class of tricks."""
