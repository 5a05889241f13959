"""Does the server work? Calls each tool once, as a client does, in a folder that is gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from toolyard.serve.mcp.http.listening import Address

SAMPLE = "sample.txt"
SAMPLE_TEXT = "bread\nmilk\nrye flour\n"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call."""

    tool: str
    went_well: bool | None
    """None when it was not called."""
    text: str


def sample_calls(folder: str) -> Mapping[str, dict[str, Any]]:
    """Arguments for the built-in tools, in the order in which they can be called; they touch nothing but the folder."""
    file, new = f"{folder}/{SAMPLE}", f"{folder}/new.txt"
    change = {"old_string": "milk", "new_string": "oat milk"}
    return {
        "bash": {"command": f"grep -c flour {file}"},
        "bash_job": {"action": "list"},
        "shell": {"command": f"wc -l {file}"},
        "read_line_range": {"path": file, "start_line": 2, "end_line": 3},
        "read": {"file_path": file},
        "glob": {"pattern": "*.txt", "path": folder, "no_ignore": True},
        "grep": {"pattern": "flour", "path": folder},
        "list": {"path": folder},
        "write": {"file_path": new, "content": SAMPLE_TEXT},
        "edit": {"file_path": file, **change},
        "multi_edit": {"file_path": new, "edits": [change]},
        "apply_patch": {"input": f"*** Begin Patch\n*** Update File: {new}\n@@\n-bread\n+rolls\n*** End Patch\n"},
    }


async def check_each_tool(address: Address, workspace: Path) -> AsyncIterator[Checked]:
    """Connect as any client would, and call what the server lists; tools of others are listed, and not called."""
    headers = {"Authorization": f"Bearer {address.token}"} if address.token else None
    with sample_folder(workspace) as folder:
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(address.url, http_client=http)) as client,
        ):
            calls = sample_calls(folder)
            for tool in (await client.list_tools()).tools:
                if tool.name not in calls:
                    yield Checked(tool=tool.name, went_well=None, text="not called: it may change something")
                    continue
                result = await client.call_tool(tool.name, calls[tool.name])
                text = next((part.text for part in result.content if part.type == "text"), "")
                yield Checked(tool=tool.name, went_well=not result.is_error, text=text)


@contextmanager
def sample_folder(workspace: Path) -> Iterator[str]:
    """A folder in the workspace with a file to read, by its name."""
    folder = Path(tempfile.mkdtemp(prefix=".toolyard-check-", dir=workspace))
    try:
        (folder / SAMPLE).write_text(SAMPLE_TEXT, encoding="utf-8")
        yield folder.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
