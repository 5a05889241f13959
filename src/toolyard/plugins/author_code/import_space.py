"""A private space of modules for each plugin, so that two plugins with modules of one name do not disturb each other.

The modules of a space are imported under a prefix of their own and find each other by their plain names: their
`__builtins__` hold an `__import__` that looks into the space first, also when a function imports long after. Everything
else, the standard library and what is installed beside us, is shared.

Compiled modules cannot be private, since most of them can be loaded only once in a process. Where such are installed
with a plugin, only its own packages are private; the rest is found under its plain name after everything else.

Where tools can write, code is compiled from the bytes that the door gave: neither is a link followed, nor is bytecode
read or left there. A module there does not take the place of one that is installed.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import itertools
import os
import sys
import threading
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from toolyard.files.door import LARGEST_CODE, Door

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.metadata import Distribution, DistributionFinder


PREFIX = "toolyard_space_"
SPACES: WeakValueDictionary[str, ImportSpace] = WeakValueDictionary()
"""The spaces by their prefixes; each lives as long as one of its modules."""
NUMBERS = itertools.count(1)
INSTALLING = threading.Lock()
NEVER_PRIVATE = frozenset(sys.stdlib_module_names) | {"toolyard"}
"""A plugin shares these with us, whatever it brings itself."""


class ImportSpace:
    """The modules below some folders."""

    def __init__(self, roots: Sequence[str], entries: Iterable[str] = (), door: Door | None = None) -> None:
        self.roots = list(roots)
        self._door = door or Door()
        self._exposed = any(map(self._door.is_writable, self.roots))
        self.prefix = f"{PREFIX}{next(NUMBERS)}"
        self.compiled = any(is_site(root) and has_compiled(root) for root in self.roots)
        self._own = {entry.partition(".")[0] for entry in entries}
        self._owned: dict[str, bool] = {}
        self._importlib = SpaceImportlib(self)
        self.builtins: dict[str, Any] = {**vars(builtins), "__import__": self.import_name}
        package = ModuleType(self.prefix)
        package.__path__ = self.roots
        package.__dict__["__toolyard_space__"] = self
        sys.modules[self.prefix] = package
        SPACES[self.prefix] = self
        install_finders()

    def load(self, name: str) -> ModuleType:
        """Import a module by its plain name."""
        return importlib.import_module(self.full(name) if self.owns(name) else name)

    def full(self, name: str) -> str:
        """The name under which a module of the space is known to everybody else."""
        return f"{self.prefix}.{name}"

    def owns(self, name: str) -> bool:
        """Whether a module is found here rather than among the shared ones."""
        top = name.partition(".")[0]
        if top not in self._owned:
            self._owned[top] = top not in NEVER_PRIVATE and self._has(top)
        return self._owned[top]

    def close(self) -> None:
        """Forget the modules; code that still runs keeps those that it has."""
        for name in [name for name in sys.modules if name == self.prefix or name.startswith(f"{self.prefix}.")]:
            sys.modules.pop(name, None)

    def find_spec(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Where one of our modules is, with a loader that gives it our builtins."""
        spec = PathFinder.find_spec(fullname, path if path is not None else self.roots)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = SpaceLoader(fullname, spec.loader.path, self)
        elif self._exposed and spec is not None and spec.origin is not None and self._door.is_writable(spec.origin):
            raise ImportError(f"{spec.origin} is compiled, and lies where tools can write: install it", name=fullname)
        return spec

    def read_code(self, path: str) -> bytes | None:
        """The source of a module that lies where tools can write; None for one that does not."""
        if not self._exposed or not self._door.is_writable(path):
            return None
        return self._door.read_accepted(path, largest=LARGEST_CODE).data

    def import_name(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What the `import` statement calls in modules of the space."""
        if level == 0 and name == "importlib":
            builtins.__import__(name, globals, locals, fromlist or ())
            return self._importlib
        mine = level == 0 and self.owns(name)
        try:
            found = builtins.__import__(self.full(name) if mine else name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as error:
            raise self._plainly(error) from error.__cause__
        return sys.modules[self.full(name.partition(".")[0])] if mine and not fromlist else found

    def _has(self, top: str) -> bool:
        spec = PathFinder.find_spec(self.full(top), self.roots)
        if spec is None or (self._exposed and top not in self._own and self._is_installed(top)):
            return False
        if not self.compiled:
            return True
        places = list(spec.submodule_search_locations or ())
        is_compiled = any(map(has_compiled, places)) or (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
        return top in self._own and not is_compiled

    def _is_installed(self, top: str) -> bool:
        """Whether Python finds a module by itself, elsewhere than where tools can write."""
        return PathFinder.find_spec(top, [one for one in sys.path if not self._door.is_writable(one)]) is not None

    def _plainly(self, error: ModuleNotFoundError) -> ModuleNotFoundError:
        """The same error in the names that the author knows."""
        error.msg = error.msg.replace(f"{self.prefix}.", "")
        error.name = (error.name or "").removeprefix(f"{self.prefix}.") or None
        error.args = (error.msg,)
        return error


class SpaceLoader(SourceFileLoader):
    """Runs a module with the builtins of its space."""

    def __init__(self, fullname: str, path: str, space: ImportSpace) -> None:
        super().__init__(fullname, path)
        self._space = space

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._space.builtins
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType | None:
        source = self._space.read_code(self.path)
        return super().get_code(fullname) if source is None else self.source_to_code(source, self.path)

    def get_data(self, path: str) -> bytes:
        data = self._space.read_code(path)
        return super().get_data(path) if data is None else data


class SpaceImportlib(ModuleType):
    """`importlib` as modules of a space see it: `import_module` knows their plain names too."""

    def __init__(self, space: ImportSpace) -> None:
        super().__init__("importlib")
        self._space = space

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        if not name.startswith(".") and self._space.owns(name):
            return self._space.load(name)
        return importlib.import_module(name, package)

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class PrivateFinder:
    """Finds modules by the full names that they have in their spaces."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG004
        """Where a module of a space is."""
        if not fullname.startswith(PREFIX):
            return None
        space = SPACES.get(fullname.partition(".")[0])
        return space.find_spec(fullname, path) if space else None


class SharedFinder:
    """Finds, after everybody else, what compiled packages of plugins need under their plain names."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG004
        """Where a shared module of a plugin is."""
        if path is not None:
            return None
        spaces = [space for space in list(SPACES.values()) if space.compiled and not space.owns(fullname)]
        found = (PathFinder.find_spec(fullname, space.roots) for space in spaces)
        return next((spec for spec in found if spec), None)

    @staticmethod
    def find_distributions(context: DistributionFinder.Context) -> Iterable[Distribution]:
        """What is installed for a plugin, to whoever asks for it by name."""
        if context.name is None:
            return ()
        from importlib.metadata import MetadataPathFinder

        roots = [root for space in list(SPACES.values()) for root in space.roots]
        return MetadataPathFinder.find_distributions(MetadataPathFinder.Context(name=context.name, path=roots))


def install_finders() -> None:
    with INSTALLING:
        if PrivateFinder not in sys.meta_path:
            sys.meta_path.insert(0, PrivateFinder)
            sys.meta_path.append(SharedFinder)


def is_site(folder: str) -> bool:
    """Whether packages were installed into a folder; one that they only lie in may be as large as a whole project."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def has_compiled(folder: str) -> bool:
    """Whether there is a compiled module anywhere below a folder."""
    suffixes = tuple(EXTENSION_SUFFIXES)
    return any(name.endswith(suffixes) for _, _, names in os.walk(folder) for name in names)
