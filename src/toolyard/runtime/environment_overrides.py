"""Variables that this process has while an application is open."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class EnvironmentOverrides:
    """Variables that the process has while an application is open.

    Applications may overlap in time and end in any order, so each knows what its variables stand in front of, and hands
    that on to the one that stands in front of it.
    """

    _lock = threading.Lock()
    _in_order: ClassVar[list[EnvironmentOverrides]] = []
    """All that are installed in this process, the latest last."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._before: dict[str, str | None] = {}

    def install(self) -> None:
        """Set them, and remember what was there."""
        with self._lock:
            if self not in self._in_order:
                self._in_order.append(self)
                self._before = {name: os.environ.get(name) for name in self._values}
                os.environ.update(self._values)

    def restore(self) -> None:
        """Put back what was there, or what others want that are still open; what somebody else has set since stays."""
        with self._lock:
            if self not in self._in_order:
                return
            later = self._in_order[self._in_order.index(self) + 1 :]
            self._in_order.remove(self)
            for name, own in self._values.items():
                in_front = next((one._before for one in later if name in one._values), None)
                if in_front is None and os.environ.get(name) == own:
                    set_variable(name, self._before[name])
                elif in_front is not None and in_front[name] == own:
                    in_front[name] = self._before[name]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The same for a moment; for nobody, if they are installed already."""
        already = self in self._in_order
        self.install()
        try:
            yield
        finally:
            if not already:
                self.restore()


def set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
