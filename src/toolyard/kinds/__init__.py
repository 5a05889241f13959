"""One folder is one kind of tool, whole: how it is spelled, where its tools come from, how they run and are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.bash_script.kind import BashScripts
from toolyard.kinds.files.kind import FileTools
from toolyard.kinds.manifest.kind import Manifests
from toolyard.kinds.mcp.kind import McpServers
from toolyard.kinds.node_module.kind import NodeModules
from toolyard.kinds.python_function.kind import PythonFunctions
from toolyard.kinds.shell.kind import Shells

if TYPE_CHECKING:
    from toolyard.plugins.kind import Kind

KINDS: tuple[Kind, ...] = (
    PythonFunctions(),
    BashScripts(),
    Manifests(),
    NodeModules(),
    Shells(),
    FileTools(),
    McpServers(),
)
"""All there are, in the order in which they are asked whether an entry is theirs."""
FIRST_ENTRIES = ("shell:session", "files:all")
"""What a new configuration loads, whatever else there is."""
