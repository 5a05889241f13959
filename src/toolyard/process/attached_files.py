"""What a child named on its descriptor 3: links, and files, which are read where the child ran and no further."""

from __future__ import annotations

import base64
import binascii
import os
import re
from typing import TYPE_CHECKING

from toolyard.core.content import LARGEST_PART, MOST_PARTS, FilePart, LinkPart, TextPart, part_of
from toolyard.errors import ProcessError
from toolyard.process.child import ChildRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolyard.core.content import Part
    from toolyard.process.child import ChildOutcome, Children

LINK = re.compile(r"(?P<uri>https?://\S+)(?:\s+(?P<name>.*))?")
READ = f'[ -f "$1" ] && [ -r "$1" ] || exit 3; head -c {LARGEST_PART + 1} -- "$1" | base64 -w0'
"""Whatever the file may be by now: not one that never ends, and no more of it than a result could carry."""
PATIENCE = 30.0


async def attached_parts(
    outcome: ChildOutcome, children: Children, *, cwd: str | Path, env: Mapping[bytes, bytes]
) -> tuple[Part, ...]:
    """A part for each line; words where there is nothing to attach."""
    lines = [line for line in outcome.attached.text.splitlines() if line.strip()]
    parts = [await attached_part(line, children, cwd, env) for line in lines[:MOST_PARTS]]
    if len(lines) > MOST_PARTS:
        parts.append(
            TextPart(text=f"[{len(lines) - MOST_PARTS} more are left out: a result carries at most {MOST_PARTS}]")
        )
    return tuple(parts)


async def attached_part(line: str, children: Children, cwd: str | Path, env: Mapping[bytes, bytes]) -> Part:
    if link := LINK.fullmatch(line):
        return LinkPart(uri=link["uri"], name=link["name"] or "")
    # A process of the same sandbox reads it, so that nothing is read that the tool itself could not.
    request = ChildRequest(
        argv=["/bin/sh", "-c", READ, "sh", line], cwd=cwd, env=env, timeout=PATIENCE, output_limit=2 * LARGEST_PART
    )
    try:
        read = await children.run(request)
        data = base64.b64decode(read.stdout.text, validate=True) if read.exit_code == 0 else None
    except (ProcessError, binascii.Error):
        data = None
    if data is None:
        return TextPart(text=f"[{line}: not attached, since no such file can be read from {cwd}]")
    name = os.path.basename(line)
    return part_of(data, name=name) or FilePart(media_type="application/octet-stream", data=data, name=name)
