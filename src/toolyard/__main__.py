"""`python -m toolyard` is `toolyard`."""

from toolyard.cli.start import run

run()
