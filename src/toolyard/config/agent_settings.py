"""What a configuration says of turns: how much they may take, what a model is given to read, what is kept.

Annotations are evaluated, as those of all settings.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

CACHES = (
    *("node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox"),
    *(".hypothesis", ".gradle", ".parcel-cache", ".turbo", ".cache"),
)
"""Folders that are made again from what is beside them."""


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`budget`: bounds of one turn."""

    steps: Annotated[int, Meta(ge=1, description="Answers of the model, each with or without calls.")] | None = 200
    tokens: Annotated[int, Meta(ge=1, description="Input that no cache had, and output.")] | None = None
    cost: Annotated[float, Meta(gt=0, description="Dollars, as far as prices are known.")] | None = None
    seconds: Annotated[float, Meta(gt=0, description="Seconds of work, without waiting for a person.")] | None = None


class ContextSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`context`: how much of a conversation a model is given."""

    window: Annotated[int, Meta(ge=1000, description="Tokens that the model can read.")] = 128_000
    shorten_at: Annotated[
        float, Meta(gt=0, le=1, description="The part of the window beyond which something is left out.")
    ] = 0.75


class CheckpointSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`checkpoints`: whether states of the workspace are kept, and how much of it."""

    enabled: bool = True
    largest_file_bytes: Annotated[int, Meta(ge=1, description="Larger files are no part of a state.")] = 100 << 20
    most_files: Annotated[int, Meta(ge=1, description="No state is kept of a workspace that has more.")] = 200_000
    total_bytes: Annotated[int, Meta(ge=1, description="Beyond this the oldest states are dropped.")] = 4 << 30
    leave_out: Annotated[tuple[str, ...], Meta(description="Names of folders that are no part of a state.")] = CACHES
