"""What a plugin has beside tools for programs that speak MCP: resources to read, and prompts to get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.core.tool import JsonObject


class ResourceUpdates:
    """Who wants to hear of changes of a plugin's resources."""

    def __init__(self, on_unused: Callable[[str], None]) -> None:
        self._on_unused = on_unused
        """Told of a resource that nobody wants to hear of any more."""
        self._listeners: dict[str, list[Callable[[str], None]]] = {}

    def listen(self, uri: str, hear: Callable[[str], None]) -> Callable[[], None]:
        """Have changes of a resource, and of what is below it, told with their addresses; what this gives ends it."""
        listeners = self._listeners.setdefault(uri, [])
        listeners.append(hear)

        def stop() -> None:
            if hear in listeners:
                listeners.remove(hear)
                if not listeners and self._listeners.pop(uri, None) is not None:
                    self._on_unused(uri)

        return stop

    def tell(self, uri: str) -> None:
        """A resource has changed."""
        for followed, listeners in list(self._listeners.items()):
            if uri == followed or uri.startswith(f"{followed.rstrip('/')}/"):
                for hear in list(listeners):
                    hear(uri)


class PluginOffers(msgspec.Struct, frozen=True, kw_only=True):
    """Definitions in the form of MCP, and the tools by which a call reaches what they define."""

    resources: Sequence[JsonObject] = ()
    templates: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    completes: bool = False
    """Whether arguments of its prompts and templates can be completed."""
    reader: str = ""
    """The tool that reads a resource, by `uri`."""
    prompter: str = ""
    """The tool that gets a prompt, by `name` and `arguments`."""
    completer: str = ""
    """The tool that completes an argument, by `ref`, `argument` and `context`."""
    follower: str = ""
    """The tool that has changes of a resource told to `updates`, by `uri`."""
    updates: ResourceUpdates | None = None
