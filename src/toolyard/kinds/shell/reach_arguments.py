"""The two arguments by which a call of a shell asks to reach further than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.core.reach import NAMED_REACHES

if TYPE_CHECKING:
    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject


REACH_PROPERTIES: JsonObject = {
    "reach": {
        "type": "string",
        "enum": list(NAMED_REACHES),
        "description": "How far the command may reach, if not as far as usual: 'look' changes nothing but temporary "
        "files, 'work' changes the workspace, 'outside' leaves the sandbox. More than usual is asked about.",
    },
    "reason": {"type": "string", "description": "With 'reach', why the command needs it; shown to who is asked."},
}


ASKS_REACH = 'ask for "reach": "{reach}" with a reason'
"""What a result advises that the sandbox stopped."""


def wanted_reach(arguments: JsonObject) -> tuple[Reach | None, str]:
    """How far a call wants to reach, and why."""
    return arguments.get("reach"), arguments.get("reason", "")
