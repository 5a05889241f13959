"""Ordinary work, step by step, as an agent does it: `python tests/ordinary_work.py WALK BACKEND` in a fresh folder.

Prints for each step what it was, whether it went as it should, and what the agent read. It is a program, so that the
same walk can be done by root, by an ordinary user, and in what a container leaves of a machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

PATIENCE = 60
HOSTS = ["@python", "@node"]
SERVED = "curl -sS --retry 40 --retry-connrefused --retry-delay 1 --retry-max-time 40 http://127.0.0.1:@PORT@/"
MANAGER = "from multiprocessing import Manager\nwith Manager() as manager:\n    print(manager.list([7]))"


class Step(msgspec.Struct, frozen=True):
    """One command of the agent's."""

    command: str
    says: str = ""
    """What the agent reads in its result."""
    fails: bool = False
    """Whether it is refused, and what it says is why."""
    needs: str = ""
    """A program without which it is left out."""
    hosts: bool = False
    """Whether it is about hosts that are not named, which Landlock alone cannot tell apart."""


PYTHON = (
    Step("mkdir -p demo && cd demo && uv init -q --vcs none --app --name demo .", needs="uv"),
    Step("uv add -q six && uv add -q --dev pytest coverage", needs="uv"),
    Step("printf 'import six\\n\\n\\ndef double(n):\\n    return six.text_type(n * 2)\\n' > demo.py"),
    Step("printf 'from demo import double\\n\\n\\ndef test_it():\\n    assert double(4) == \"8\"\\n' > test_demo.py"),
    Step("uv run -q coverage run -m pytest -q && uv run -q coverage report", "1 passed", needs="uv"),
    Step("uv run -q pytest -q", "1 passed", needs="uv"),
    Step("python3 -m venv plain && plain/bin/pip install -q idna && plain/bin/python -c 'import idna'"),
    Step("sed -i s/4/5/ test_demo.py && ! uv run -q pytest -q > out.txt; rm out.txt", needs="uv"),
    Step("(uv run -q python -m http.server @PORT@ > server.log 2>&1 &)", needs="uv"),
    Step(SERVED, "demo.py", needs="uv"),
    Step(f"python3 -c '{MANAGER}'", "[7]"),
)
NODE = (
    Step("mkdir -p web && cd web && npm init -y > /dev/null && npm pkg set scripts.test='node --test'"),
    Step("npm install left-pad", "added 1 package"),
    Step('printf \'require("left-pad"); require("node:test")("pads", () => {})\\n\' > pad.test.js'),
    Step("npm test", "pass 1"),
    Step('printf \'require("http").createServer((_, r) => r.end("served")).listen(@PORT@)\\n\' > server.js'),
    Step("(node server.js > server.log 2>&1 &)"),
    Step(SERVED, "served"),
    Step("npx -y left-pad 2>&1 | tail -1; rm -rf node_modules && npm ci", "added 1 package"),
)
C = (
    Step("mkdir -p tool && cd tool && printf '#include <stdio.h>\\nint main(void) { puts(\"hi\"); }\\n' > hi.c"),
    Step("printf 'hi: hi.c\\n\\tcc -o hi hi.c\\ntest: hi\\n\\t./hi | grep -q hi\\n' > Makefile"),
    Step("make && make test && ./hi", "hi"),
    Step("rm hi && make -j2 && chmod 755 hi && mv hi bin-hi && ./bin-hi", "hi"),
)
RUST = (
    Step("cargo init -q --vcs none --name hello rs && cd rs && cargo test -q", "test result: ok", needs="cargo"),
    Step("cargo build -q && ./target/debug/hello", "Hello, world!", needs="cargo"),
)
OTHER_MANAGERS = (
    Step("mkdir -p others && cd others && npm init -y > /dev/null && npm install -D pnpm yarn@1.22.22", "added"),
    Step("mkdir p && cd p && npm init -y > /dev/null && ../node_modules/.bin/pnpm add left-pad && cd ..", "left-pad"),
    Step("mkdir y && cd y && npm init -y > /dev/null && ../node_modules/.bin/yarn add left-pad && cd ..", "success"),
)
SOCKETS = (
    Step("tmux -L own new -d 'sleep 30' && tmux -L own ls && tmux -L own kill-server", "1 windows", needs="tmux"),
    Step("eval $(ssh-agent) > /dev/null && ssh-add -l; kill $SSH_AGENT_PID", "no identities", needs="ssh-agent"),
    Step("initdb -D data -A peer > /dev/null && pg_ctl -D data -o \"-k $PWD -c listen_addresses=''\" -l log -w start",
         "server started", needs="initdb && id -un"),
    Step("psql -h $PWD -d postgres -tAc 'select 6 * 7' && pg_ctl -D data stop -m fast", "42", needs="initdb && id -un"),
    Step("redis-server --port 0 --unixsocket r.sock --daemonize yes && redis-cli -s r.sock ping", "PONG",
         needs="redis-server"),
    Step(f"python3 -c '{MANAGER}'", "[7]"),
)  # fmt: skip
IN_A_REPOSITORY = (
    Step("git config user.email me@example.org"),
    Step("git config user.name Me && printf 'a\\n' > a.txt && git add a.txt && git commit -q -m 'Begin'"),
    Step(
        "git checkout -q -b topic && printf 'b\\n' >> a.txt && git commit -q -am 'Go on' && git log --oneline", "Go on"
    ),
    Step("git init -q --bare remote.git && git remote add origin ./remote.git && git push -q -u origin topic main"),
    Step("git clone -q ./remote.git copy && git -C copy log --oneline origin/topic", "Go on"),
    Step("git checkout -q main && git merge -q topic && git branch -d topic && git stash list && git log", "Go on"),
)
GIT_BELOW = (Step("mkdir -p repo && cd repo && git init -q -b main"), *IN_A_REPOSITORY)
GIT_HERE = (Step("git init -q -b main"), *IN_A_REPOSITORY)
"""In the folder of the workspace itself, whose configuration git outside obeys at once."""
REFUSED = (
    Step("touch ~/made", "[sandbox: only the workspace and temporary files can be written", fails=True),
    Step("npm install -g left-pad", "[sandbox: only the workspace", fails=True),
    Step("python3 -m pip install -q roman", "install Toolyard apart", fails=True),
    Step("uv pip install -q --system --break-system-packages roman", "[sandbox: ", fails=True, needs="uv"),
    Step("git ls-remote https://foreign.example/x.git", "foreign.example:443 was refused", fails=True, hosts=True),
    Step("curl -sS https://foreign.example/", "name it in sandbox.hosts to allow it", fails=True, hosts=True),
    Step("sudo make install", "'sudo' may not be used here", fails=True),
)
WAITED = "waited for what is off"


def at_once(command: str, says: str, needs: str = "") -> Step:
    """A step that fails without waiting for anybody."""
    return Step(f"timeout 30 {command}; [ $? -eq 124 ] && echo {WAITED}; false", says, fails=True, needs=needs)


OFFLINE = (
    Step("npm init -y > /dev/null && python3 -m venv plain"),
    at_once("npm install left-pad", "name @node in sandbox.hosts to allow it"),
    at_once("plain/bin/pip install zipp", "name @python in sandbox.hosts to allow it"),
    at_once("uv pip install --python plain/bin/python zipp", "name @python in sandbox.hosts to allow it", "uv"),
    at_once("curl -sS https://pypi.org/simple/", "name @python in sandbox.hosts to allow it"),
    at_once("git clone https://foreign.example/x.git", "name it in sandbox.hosts to allow it"),
)
"""Where no host is named and nobody is there to ask."""
WALKS = {
    "python": PYTHON,
    "node": NODE,
    "c": C,
    "rust": RUST,
    "sockets": SOCKETS,
    "git below": GIT_BELOW,
    "git here": GIT_HERE,
    "managers": OTHER_MANAGERS,
    "refused": REFUSED,
    "offline": OFFLINE,
}


async def walk(name: str, backend: str) -> list[dict[str, Any]]:
    """Do the steps in one session with the default configuration, and tell how each went."""
    from toolyard.app import AgentApplication

    toolchain = [os.environ["RUSTUP_HOME"]] if "RUSTUP_HOME" in os.environ else []
    reaches = {"network": True, "unix_sockets": True} if backend == "landlock" else {"hosts": HOSTS}
    reaches = {} if name == "offline" else reaches
    config = {"plugins": ["shell:session"], "sandbox": {**reaches, "readable": toolchain}}
    port, done = free_port(), []
    async with AgentApplication(config, Path("..", "sessions")) as app:
        for step in WALKS[name]:
            if step.hosts and backend == "landlock":
                continue
            if step.needs:
                found = await app.call_tool("bash", {"command": f"command -v {step.needs}"})
                if found.failure:
                    continue
            started = time.monotonic()
            command = step.command.replace("@PORT@", str(port))
            result = await app.call_tool("bash", {"command": command, "timeout": PATIENCE})
            went = (result.failure is not None) == step.fails and WAITED not in result.text
            fine = went and step.says in result.text
            seconds = round(time.monotonic() - started, 1)
            done.append({"command": step.command, "fine": fine, "seconds": seconds, "text": result.text[-1500:]})
        report = app.sandbox_report()
        done.append(
            {
                "command": "sandbox",
                "fine": report is not None and report.backend.startswith(backend),
                "text": str(report),
            }
        )
    return done


def free_port() -> int:
    """One that nobody listens at, also where the network is everybody's."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    json.dump(asyncio.run(walk(sys.argv[1], sys.argv[2])), sys.stdout)
