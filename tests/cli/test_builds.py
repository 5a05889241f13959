"""Who waits for a plugin that is fetched, installed or built is told what happens."""

from __future__ import annotations

import json

import pytest

from repositories import descriptor, greeting, packaging, repository
from support import CommandLine, need
from yard import script


def test_fetching_is_told_once(toolyard: CommandLine):
    listed = '{"bash_tools": [{"file": "a.bash"}]}'
    repository(toolyard.folder / "repo", {"agent_plugin.json": listed, "a.bash": script("a")})
    toolyard.config({"bash_tool": {"git": "./repo"}})
    first = toolyard("tools")
    assert (first.code, first.err) == (0, f"fetching {toolyard.folder}/repo\n")
    assert toolyard("tools").err == "", "what is in the cache is not told"


def test_what_a_package_manager_does_is_told(toolyard: CommandLine):
    need("npm")
    tools = [{"id": "echo", "entry": "index.js"}]
    package = {
        "name": "p",
        "version": "1.0.0",
        "type": "module",
        "agent": {"tools": tools},
        "scripts": {"build": "true"},
    }
    toolyard.file("pkg/package.json", json.dumps(package))
    toolyard.file("pkg/index.js", "export default { run: () => 1 };")
    toolyard.config("node:./pkg")
    assert f"{toolyard.folder}/pkg: running npm run build\n" in toolyard("tools").err


@pytest.mark.parametrize("verb", ["tools", "config check"])
def test_what_an_installer_does_is_told(toolyard: CommandLine, verb):
    files = {**packaging("greeter"), **descriptor("greeter.greet"), "greeter.py": greeting("greet", "hello")}
    for name, text in files.items():
        toolyard.file(f"p/{name}", text)
    toolyard.config("path:./p")
    said = toolyard(*verb.split()).err
    assert f"{toolyard.folder}/p: installing it with " in said
