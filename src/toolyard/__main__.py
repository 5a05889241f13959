"""`python -m toolyard` is `toolyard`."""

import sys

if not sys.flags.safe_path:
    # `-m` puts the current folder in front even of the standard library, and tools may have written there.
    del sys.path[0]

from toolyard.cli.main import run

run()
