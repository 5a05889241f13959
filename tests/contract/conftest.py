"""Every test here runs for every kind of tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.bench import Bench
from contract.kinds import KINDS, Kind
from support import Signpost
from yard import Yard


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a kind cannot do by its nature; its row says why."""
    impossible = [item for item in items if is_impossible(item)]
    if impossible:
        config.hook.pytest_deselected(items=impossible)
        items[:] = [item for item in items if item not in impossible]


def is_impossible(item: pytest.Item) -> bool:
    kind = getattr(item, "callspec", None) and item.callspec.params.get("kind")
    return bool(kind) and any(mark.args[0] in kind.cannot for mark in item.iter_markers("ability"))


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def bench(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A place to write a tool of the kind, load it and call it."""
    monkeypatch.chdir(tmp_path)
    return Bench(kind, Yard(tmp_path))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Signpost]:
    """The pipe by which a tool says that it runs."""
    signpost = Signpost(tmp_path / "here")
    yield signpost
    signpost.close()
