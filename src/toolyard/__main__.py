"""`python -m toolyard` is `toolyard`."""

from toolyard.cli.main import run

run()
