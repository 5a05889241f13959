"""Opens the tools at a path as an application would, with a configuration that is made in memory."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.config.configuration import resolve
from toolyard.config.document import Document
from toolyard.config.placeholders import Names
from toolyard.core.problems import Position, Problem
from toolyard.core.reach import REACHES
from toolyard.files.user_folders import user_folder
from toolyard.kinds import KINDS
from toolyard.plugins.acquire.build import BuildRunner
from toolyard.plugins.entries import read_entries, settings_of
from toolyard.plugins.host import Caches, Host, Processes
from toolyard.process.child import Children
from toolyard.process.environment import process_secrets
from toolyard.runtime.audit.log import NO_AUDIT
from toolyard.runtime.call_path import CallPath, CallsUnderWay
from toolyard.runtime.call_steps.conditions import CallServices
from toolyard.runtime.loaded import Loaded
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolyard.config.configuration import Configuration
    from toolyard.core.tool import Json
    from toolyard.plugins.catalog import Catalog
    from toolyard.plugins.kind import Kind


@asynccontextmanager
async def open_bench(path: Path, *, timeout: float = 60, kinds: Sequence[Kind] = KINDS) -> AsyncIterator[Loaded]:
    """The tools of a file or a folder, without a sandbox and without an audit log; ends every process on leaving."""
    children = Children()
    processes = Processes(children=dict.fromkeys(REACHES, children), build=BuildRunner())
    configuration = made_for(absolute(path), timeout, kinds)
    caches = Caches(user_folder("cache"), kept=False)
    host = Host(configuration, processes, caches, in_place=[real_folder(path)], kinds=kinds)
    redactor = Redactor(process_secrets())

    def make_path(catalog: Catalog, under_way: CallsUnderWay) -> CallPath:
        return CallPath(CallServices(tools=catalog, audit=NO_AUDIT, redactor=redactor), under_way)

    loaded = Loaded(read_entries(configuration, kinds), host, make_path)
    try:
        await loaded.refresh()
        yield loaded
    finally:
        await loaded.aclose()
        await children.aclose()


def absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def made_for(path: Path, timeout: float, kinds: Sequence[Kind]) -> Configuration:
    """A configuration that loads what is at a path; positions in it are positions in that."""
    entries: list[Json] = []
    policy: dict[str, Json] = {}
    for author in (kind.author for kind in kinds):
        if author and (named := author.entries(path)):
            entries += named
            policy |= author.policy(timeout)
    value = {"plugins": entries, "plugin_policy": policy, "sandbox": {"mode": "off"}}
    names = Names(config_env={}, overrides={}, builtin={}, process={})
    configuration = replace(resolve(Document(path, "{}", value), names, settings_of(kinds)), in_memory=True)
    return configuration if entries else replace(configuration, problems=(nothing_here(path, kinds),))


def nothing_here(path: Path, kinds: Sequence[Kind]) -> Problem:
    if path.is_dir():
        hint = f"start one: toolyard tool new {path / 'my_tool'}"
        return Problem(code="tool_missing", message="no tool files here", hint=hint, where=Position(file=path))
    forms = "; ".join(author.form for kind in kinds if (author := kind.author))
    message, hint = "this is not a tool file of any kind", f"there are: {forms}"
    return Problem(code="tool_unknown_kind", message=message, hint=hint, where=Position(file=path))


def real_folder(path: Path) -> Path:
    """What is here is used where it is, and never installed."""
    real = Path(os.path.realpath(path))
    return real if real.is_dir() else real.parent
