"""A setting, a command, a problem or a method that the reference does not mention does not exist for anybody."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from toolyard.agents.providers.settings import ProviderSettings
from toolyard.app import AgentApplication
from toolyard.cli.config import config
from toolyard.cli.main import COMMANDS, main
from toolyard.config.settings import FileSettings, NodeSettings
from toolyard.core.events import Event
from toolyard.core.model import ProviderFault
from toolyard.core.tool import Failure
from toolyard.kinds import KINDS
from toolyard.kinds.bash_script.schema import SchemaFaultCode
from toolyard.kinds.manifest.entries import ManifestFaultCode
from toolyard.kinds.manifest.program import ProgramFaultCode
from toolyard.plugins.entries import settings_of

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs" / "reference"
CONFIG_COMMANDS = [f"config {name}" for name in config.commands]


def page(name: str) -> str:
    return (REFERENCE / name).read_text()


@pytest.mark.parametrize(
    "key",
    [f"{section}.{field}" for section, kind in settings_of(KINDS).sections.items() for field in kind.__struct_fields__],
)
def test_every_setting(key):
    assert f"`{key}`" in page("configuration.md")


@pytest.mark.parametrize("command", [*COMMANDS, *CONFIG_COMMANDS, "tool new", "tool check", "tool test"])
def test_every_command(command):
    assert re.search(rf"^\| `{command}[ `]", page("cli.md"), re.MULTILINE)


@pytest.mark.parametrize("code", [*get_args(ManifestFaultCode), *get_args(ProgramFaultCode)])
def test_every_fault_of_a_manifest(code):
    assert f"`{code}`" in page("manifests.md")


@pytest.mark.parametrize("code", get_args(SchemaFaultCode))
def test_every_fault_of_a_schema(code):
    assert f"`{code}`" in page("bash-tools.md")


def test_every_problem_of_a_node_package():
    modules = [path for path in (ROOT / "src/toolyard/kinds/node_module").iterdir() if path.is_file()]
    named = re.findall(r'["\'](node_[a-z_]+)["\']', "".join(path.read_text() for path in modules))
    codes = set(named) - {
        "node_unknown",
        "node_tool",
        "node_module",
        "node_modules",
        *settings_of(KINDS).policy.__struct_fields__,
    }
    assert len(codes) >= 12
    for code in codes:
        assert f"`{code}`" in page("node-tools.md")


@pytest.mark.parametrize(
    "method", [name for name, _ in inspect.getmembers(AgentApplication, inspect.isfunction) if name[0] != "_"]
)
def test_every_method_of_an_application(method):
    assert re.search(rf"`(await )?{method}\(", page("python-api.md"))


@pytest.mark.parametrize("key", ProviderSettings.__struct_fields__)
def test_every_key_of_a_provider(key):
    assert f"| `{key}` |" in page("providers.md")


@pytest.mark.parametrize("fault", get_args(ProviderFault))
def test_every_fault_of_a_provider(fault):
    assert f"`{fault}`" in page("providers.md")


@pytest.mark.parametrize("failure", get_args(Failure))
def test_every_failure(failure):
    assert f"`{failure}`" in page("python-api.md")
    assert f"`{failure}`" in page("cli.md")


@pytest.mark.parametrize("event", [kind.__name__ for kind in get_args(Event)])
def test_every_event(event):
    assert f"`{event}" in page("python-api.md")


@pytest.mark.parametrize(
    "file", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=lambda f: f.name
)
def test_every_link_leads_somewhere(file):
    for target in re.findall(r"\]\(([^)#]+)\)", file.read_text()):
        assert (file.parent / target).exists(), target


@pytest.mark.parametrize("key", FileSettings.__struct_encode_fields__ + NodeSettings.__struct_encode_fields__)
def test_every_key_of_a_file(key):
    assert re.search(rf"`(agents\.NAME\.)?{re.escape(key)}[`.]", page("configuration.md"))


@pytest.mark.parametrize("name", [*COMMANDS])
def test_every_option(name):
    def options(command):
        yield from (word for parameter in command.params for word in parameter.opts if word.startswith("--"))
        for inner in getattr(command, "commands", {}).values():
            yield from options(inner)

    command = main.get_command(None, name)
    for option in set(options(command)):
        assert option in page("cli.md"), option
