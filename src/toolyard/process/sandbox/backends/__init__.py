"""The ways in which the kernel lets us build a sandbox."""
