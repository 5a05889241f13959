"""The audit log: written before and after each run, chained, checked and read."""
