"""Real repositories, projects and git servers for tests, all on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}

BACKEND = '''
import os, tomllib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel of every package and top-level JSON file of the project."""
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\\n" for each in project.get("dependencies", []))
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    for folder, folders, names in os.walk("."):
        folders[:] = [each for each in folders if each not in ("backend", "tests")]
        for each in names:
            path = os.path.relpath(os.path.join(folder, each), ".")
            if each.endswith(".py") or path.endswith(".json"):
                with open(path) as file:
                    files[path.removeprefix("src/")] = file.read()
    record = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for path, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(path, text)
    return wheel
'''
"""A build backend that is part of its project, so that building needs nothing from anywhere."""


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packaging(name: str, *, dependencies: tuple[str, ...] = ()) -> dict[str, str]:
    """The files that make a folder installable."""
    pyproject = f"""
[build-system]
requires = []
build-backend = "in_tree"
backend-path = ["backend"]

[project]
name = "{name}"
version = "1.0"
dependencies = {json.dumps(list(dependencies))}
"""
    return {"pyproject.toml": pyproject, "backend/in_tree.py": BACKEND}


def descriptor(*entries: str, **more: Any) -> dict[str, str]:
    return {"agent_plugin.json": json.dumps({"entries": list(entries), **more})}


def greeting(name: str, word: str) -> str:
    """A module with one tool."""
    return f'''
from toolyard.plugins.contract import tool

@tool
def {name}() -> str:
    """Greet."""
    return {word!r}
'''


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=os.environ | GIT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(folder: Path, files: Mapping[str, str], *, branch: str = "main") -> Path:
    """A git repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", f"--initial-branch={branch}")
    commit(folder, files)
    return folder


def commit(folder: Path, files: Mapping[str, str]) -> str:
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


class GitOverHttp(BaseHTTPRequestHandler):
    """git's own server program behind a loopback address."""

    def __init__(self, root: Path, log: list[str], *args: Any) -> None:
        self.root = root
        self.log = log
        super().__init__(*args)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.log.append(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            **GIT,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        if self.headers.get("Content-Encoding"):
            environment["HTTP_CONTENT_ENCODING"] = self.headers["Content-Encoding"]
        answer = subprocess.run(
            ["git", "http-backend"], input=self.rfile.read(length), env=environment, capture_output=True, timeout=60
        ).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


class Redirect(BaseHTTPRequestHandler):
    """Sends everybody to another address."""

    def __init__(self, target: str, *args: Any) -> None:
        self.target = target
        super().__init__(*args)

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Static(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(handler: Any) -> Iterator[str]:
    """A server for a block of code, by its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def git_server(root: Path) -> Iterator[tuple[str, list[str]]]:
    """A git server over all repositories below a folder: its address, and what was asked of it."""
    log: list[str] = []
    with serving(partial(GitOverHttp, root, log)) as address:
        yield address, log


def static_server(root: Path) -> Any:
    """A server that knows nothing of git, over repositories that were made ready for such."""
    return serving(partial(Static, directory=str(root)))
