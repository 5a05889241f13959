"""What a sandbox can promise, property by property."""

from __future__ import annotations

from typing import Literal, get_args

SandboxProperty = Literal[
    "writes",
    "attributes",
    "secrets",
    "protected",
    "obeyed",
    "network",
    "sockets",
    "processes",
    "temporary",
    "privileges",
    "reach",
]
PROPERTIES: tuple[SandboxProperty, ...] = get_args(SandboxProperty)
PROPERTY_DESCRIPTIONS: dict[SandboxProperty, str] = {
    "writes": "nothing outside the workspace can be written",
    "attributes": "of files outside the workspace, neither rights, owner, times nor other attributes can be changed",
    "secrets": "keys, tokens and other secrets of the user and of root cannot be read",
    "protected": "in the workspace, git's hooks and configuration, rule files and the store cannot be written or made",
    "obeyed": "what is obeyed later outside cannot be made, changed or locked: of Python, on PATH, for packages",
    "network": "nothing outside can be reached over a network",
    "sockets": "no socket and no shared memory of another process can be reached",
    "processes": "no other process can be signalled, traced, limited, slowed down or looked into",
    "temporary": "temporary files are the sandbox's own",
    "privileges": "no capabilities, no new privileges, no namespaces, no mounts, none left behind for others",
    "reach": "with the reach look nothing at all can be changed but temporary files, and nobody can be reached",
}
