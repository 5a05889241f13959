"""Every plugin has its own modules, whatever they are called and whenever they are imported."""

from __future__ import annotations

import importlib
import importlib.metadata
import pickle
import shutil
import sys
import threading
from pathlib import Path

import pytest

from repositories import write
from toolyard.plugins.author_code.import_space import ImportSpace

PACKAGE = {
    "tools/__init__.py": "from tools import words\nimport tools.numbers\nfrom .words import WORD\n",
    "tools/words.py": "WORD = {word!r}\n",
    "tools/numbers.py": "import tools\nfrom tools.words import WORD as OTHER\n",
    "tools/late.py": """
def absolute():
    import tools.hidden
    return tools.hidden.WORD

def relative():
    from .hidden import WORD
    return WORD

def by_name():
    import importlib
    return importlib.import_module("tools.hidden").WORD

def by_name_imported():
    from importlib import import_module
    return import_module(".hidden", __package__).WORD
""",
    "tools/hidden.py": "WORD = {word!r}\n",
    "helper.py": "from tools.words import WORD\n",
}


def package(folder: Path, word: str, **more: str) -> ImportSpace:
    files = {name: text.replace("{word!r}", repr(word)) for name, text in PACKAGE.items()}
    return ImportSpace([str(write(folder, {**files, **more}))])


@pytest.fixture
def two(tmp_path: Path) -> tuple[ImportSpace, ImportSpace]:
    return package(tmp_path / "a", "one"), package(tmp_path / "b", "two")


def test_modules_of_one_name_do_not_disturb_each_other(two):
    first, second = two
    for space, word in ((first, "one"), (second, "two"), (first, "one")):
        found = [space.load("tools").WORD, space.load("tools.numbers").OTHER, space.load("helper").WORD]
        assert found == [word] * 3
    assert first.load("tools") is first.load("tools")
    assert "tools" not in sys.modules
    assert "helper" not in sys.modules


@pytest.mark.parametrize("way", ["absolute", "relative", "by_name", "by_name_imported"])
def test_what_is_imported_at_call_time_is_the_plugins_own(two, way):
    late = [space.load("tools.late") for space in two]
    assert [getattr(module, way)() for module in late] == ["one", "two"]


def test_threads_that_import_at_the_same_time(two):
    words: list[str] = []
    threads = [
        threading.Thread(target=lambda space=space: words.append(space.load("tools.late").absolute()))
        for space in two * 5
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(words) == ["one"] * 5 + ["two"] * 5


def test_everything_else_is_shared(tmp_path):
    space = package(
        tmp_path,
        "x",
        **{
            "uses.py": "import json, os.path, msgspec, toolyard\nfrom toolyard.plugins.contract import ToolError\n",
            "json.py": "raise RuntimeError('not the real one')\n",
            "toolyard.py": "raise RuntimeError('not the real one')\n",
        },
    )
    module = space.load("uses")
    from toolyard.errors import ToolError

    assert module.json is sys.modules["json"]
    assert module.ToolError is ToolError
    assert module.os is sys.modules["os"]


def test_what_is_missing_is_named_plainly(tmp_path):
    space = package(tmp_path, "x", **{"bad.py": "import tools.nothing\n", "worse.py": "import no_such_module_at_all\n"})
    for name, missing in (("bad", "tools.nothing"), ("worse", "no_such_module_at_all")):
        with pytest.raises(ModuleNotFoundError) as caught:
            space.load(name)
        assert str(caught.value) == f"No module named '{missing}'"
        assert caught.value.name == missing


DATA = """
from __future__ import annotations
import enum, typing
from dataclasses import dataclass, field

@dataclass
class Point:
    x: int
    names: typing.ClassVar[list[str]] = []
    more: list[Point] = field(default_factory=list)

class Colour(enum.Enum):
    RED = 1

def hints():
    return typing.get_type_hints(Point)

def evaluated():
    scope = {}
    exec("import tools\\nword = tools.WORD", scope)
    return scope["word"]
"""


def test_classes_know_their_own_modules(tmp_path):
    module = package(tmp_path, "x", **{"data.py": DATA}).load("data")
    assert module.hints()["more"] == list[module.Point]
    assert pickle.loads(pickle.dumps(module.Point(3))) == module.Point(3)
    assert pickle.loads(pickle.dumps(module.Colour.RED)) is module.Colour.RED
    assert module.evaluated() == "x"


def test_resources_beside_a_module_are_found(tmp_path):
    reads = "import importlib.resources\nTEXT = (importlib.resources.files(__package__) / 'data.txt').read_text()\n"
    space = package(tmp_path, "x", **{"tools/reads.py": reads, "tools/data.txt": "beside"})
    assert space.load("tools.reads").TEXT == "beside"


def test_what_is_installed_with_a_plugin_is_known_by_name(tmp_path):
    metadata = "Metadata-Version: 2.1\nName: private-plugin\nVersion: 3.2.1\n"
    space = package(tmp_path, "x", **{"private_plugin-3.2.1.dist-info/METADATA": metadata})
    assert importlib.metadata.version("private-plugin") == "3.2.1"
    assert "private-plugin" not in {found.metadata["Name"] for found in importlib.metadata.distributions()}
    assert space


def test_namespace_packages(tmp_path):
    space = package(tmp_path, "x", **{"spread/part.py": "from spread import other\n", "spread/other.py": "X = 1\n"})
    assert space.load("spread.part").other.X == 1


def test_a_closed_space_is_gone(two):
    first, second = two
    first.load("tools")
    second.load("tools")
    first.close()
    assert not [name for name in sys.modules if name.startswith(first.prefix + ".")]
    assert second.load("tools").WORD == "two"


def test_compiled_packages_are_shared_and_the_plugins_own_are_not(tmp_path, monkeypatch):
    import msgspec

    compiled = Path(msgspec.__file__).parent
    shared = tmp_path / "site" / "compiled_thing"
    shutil.copytree(compiled, shared)
    (shared / "__init__.py").write_text("import pure_dependency\nKIND = 'compiled'\n")
    metadata = {"compiled_thing-1.dist-info/METADATA": "Name: compiled-thing\nVersion: 1\n"}
    pure = {"pure_dependency.py": "X = 1\n", "own/__init__.py": "import compiled_thing\n"}
    write(tmp_path / "site", {**pure, **metadata})
    space = ImportSpace([str(tmp_path / "site")], ["own.Plugin"])
    own = space.load("own")
    assert own.compiled_thing.__name__ == "compiled_thing"
    assert own.compiled_thing.pure_dependency.X == 1
    assert own.__name__ == space.full("own")
    for name in ("compiled_thing", "pure_dependency"):
        monkeypatch.delitem(sys.modules, name)
