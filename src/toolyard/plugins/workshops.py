"""Where the tools of each kind run: what all sources of one kind share, made when the first of them needs it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from toolyard.kinds.bash_script.schema import SchemaCache
from toolyard.kinds.bash_script.workshop import BashConditions, BashWorkshop
from toolyard.process.interpreter import find_interpreter
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from toolyard.config.configuration import Configuration
    from toolyard.config.document import Pointer
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.files.content_cache import ContentCache
    from toolyard.kinds.manifest.tool import CommandConditions
    from toolyard.kinds.node_module.listing import NodeListing
    from toolyard.kinds.node_module.source import Fetch, NodeShop
    from toolyard.kinds.python_function.workshop import PythonWorkshop
    from toolyard.plugins.acquire.build import Builders
    from toolyard.plugins.author_code.module_cache import CodeShelf
    from toolyard.process.child import Children


BUNDLED = Path(__file__).resolve().parents[1] / "builtin_plugins"


class Crews(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs processes."""

    tools: Children
    """For tools, and whatever a model has a hand in."""
    builders: Builders
    """For what plugins do while they are installed and built."""
    fetchers: Children
    """For programs that we know by name and that need the owner's keys: git."""

    def all(self) -> tuple[Children, ...]:
        """Those that last."""
        return (self.tools, self.fetchers)


class Caches:
    """What is known of tools from before: in the user's cache folder, and while the application lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.schemas = SchemaCache(folder / "bash-schemas.json")

    @cached_property
    def code(self) -> CodeShelf:
        """The modules of Python plugins, which outlive a configuration that is read again."""
        from toolyard.plugins.author_code.module_cache import CodeShelf

        return CodeShelf()

    @cached_property
    def node(self) -> ContentCache[NodeListing]:
        """What Node tools said of themselves."""
        from toolyard.kinds.node_module.shop import open_listing_cache

        return open_listing_cache(self.folder)

    def save(self) -> None:
        """Write down what is new."""
        self.schemas.save()
        if "node" in self.__dict__:
            self.node.save()


class Workshops:
    """The workshops of a configuration; those of equal configurations are equal."""

    def __init__(self, configuration: Configuration, crews: Crews, caches: Caches) -> None:
        self._configuration = configuration
        self._crews = crews
        self._caches = caches
        self._limits = Limits(**structs.asdict(configuration.limits))

    @cached_property
    def bash(self) -> BashWorkshop | None:
        """None on a machine without a bash."""
        bash = find_interpreter("bash")
        if bash is None:
            return None
        policy = self._configuration.policy
        conditions = BashConditions(
            timeout=policy.bash_timeout_seconds,
            error_timeout=policy.bash_error_timeout_seconds,
            stream_stderr=policy.bash_stream_stderr,
            pass_env=tuple(policy.pass_env),
            limits=self._limits,
        )
        return BashWorkshop(bash=bash, children=self._crews.tools, conditions=conditions, cache=self._caches.schemas)

    @cached_property
    def commands(self) -> CommandConditions:
        """For the commands of manifests, which need no bash."""
        from toolyard.kinds.manifest.tool import CommandConditions

        timeout = self._configuration.policy.manifest_timeout_seconds
        return CommandConditions(children=self._crews.tools, timeout=timeout, limits=self._limits)

    @cached_property
    def node(self) -> NodeShop | None:
        """None on a machine without a Node."""
        from toolyard.kinds.node_module.shop import make_node_shop

        return make_node_shop(self._configuration, self._crews, self._caches.node, self._caches.folder)

    @cached_property
    def python(self) -> PythonWorkshop:
        """For plugins that are fetched, installed or imported; made for no agent in particular."""
        from toolyard.kinds.python_function.workshop import PythonWorkshop

        return PythonWorkshop(
            children=self._crews.fetchers,
            builders=self._crews.builders,
            policy=self._configuration.policy,
            cache_dir=self._configuration.plugin_cache(self._caches.folder),
            bundled=BUNDLED,
            document=self._configuration.document,
            config={},
            code=self._caches.code,
        )

    def python_for(self, config: JsonObject) -> PythonWorkshop:
        """The same for the plugins of an agent."""
        return replace(self.python, config=config)

    def fetch_for(self, pointer: Pointer) -> Fetch:
        """How a Node package is fetched that a place in the configuration names."""

        async def fetch(git: str, ref: str | None, subdirectory: str | None) -> Path | Problem:
            from toolyard.plugins.acquire.acquirer import fetch_folder

            document = self._configuration.document
            found = await fetch_folder(self.python.acquirer, git, ref, subdirectory, base=document.folder)
            return found if isinstance(found, Path) else found.at(document.position(pointer))

        return fetch
