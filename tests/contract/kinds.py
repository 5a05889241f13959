"""Every kind of tool, as one row each: who can write a tool of that kind that behaves in a given way.

A new kind is a function that writes its tools and a row in `KINDS`. Where a kind cannot behave so by its nature, its
row says why, and the tests of that behaviour are left out for it.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from support import need
from toolyard.core.tool import Failure, ToolResult
from toy_kind import WITH_TOYS
from yard import STRING, Yard

Behaviour = Literal["echo", "fail", "hang", "flood", "crash", "leak", "read", "meet", "tell", "log", "where", "draw"]
"""What a tool does with its argument `value`, in a folder of the test's own:

echo   prints the value
fail   prints `broken` where its kind prints complaints, and fails with 3
hang   prints `begun`, starts what it can that would outlive it, writes the ids of all its processes to `pids`, then a
       line to the pipe `here`, and never ends
flood  prints HEAD, some megabytes, and TAIL
crash  is ended by SIGKILL
leak   prints what is in the file `secret`
read   reads standard input to its end and prints `rest:` and how many bytes that was, beyond its arguments
meet   writes the value as a line to the pipe `here`, waits until the file `go` is there, then prints the value
tell   prints `begun` as a line that can be heard at once, waits until the file `go` is there, then prints the value
log    appends the value as a line to the file `log`
where  prints the folder that it works in
draw   prints the value, and attaches the picture `dot.png`
"""
FLOOD = 3_000_000
SCHEMA = {"type": "object", "properties": {"value": {**STRING, "description": "A text."}}, "required": ["value"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A tool that was written: how it is loaded, and how it is called."""

    plugin: Any
    arguments: Callable[[str], dict[str, Any]]
    policy: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the configuration."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the application is opened with."""


class Writer(Protocol):
    """What a kind has to offer to the suite."""

    def __call__(self, yard: Yard, behaviour: Behaviour, limit: float) -> Written:
        """Write a tool that behaves so and may take `limit` seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A row: the kind's name in audit lines, its writer, and how it differs in what the call path leaves to it."""

    name: str
    write: Writer
    id: str = ""
    """What tests call it; the name unless several rows share one."""
    tool: str = "probe"
    said: Callable[[ToolResult], str] = lambda result: result.text
    """What the tool itself printed, out of a result."""
    failure: Failure | None = "exit_code"
    """What a failure counts as."""
    exit_code: int | None = 3
    killed: int | None = 137
    """The exit code of a tool that SIGKILL ended."""
    too_late: str = "timed out"
    """What it says of a call past its time."""
    processes: int = 4
    """How many processes one that hangs has."""
    streams: bool = True
    """Whether what it prints is heard while it runs."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """What the kind cannot do by its nature, and why: `side_by_side`, or a behaviour. Tests of that are left out."""

    def __str__(self) -> str:
        return self.id or self.name


BASH: dict[Behaviour, str] = {
    "echo": 'printf %s "$value"',
    "fail": "echo broken >&2; exit 3",
    "hang": """
      echo begun
      echo "$BASHPID" >>@/pids
      sleep 300 & echo $! >>@/pids
      setsid sleep 300 & echo $! >>@/pids
      (setsid bash -c 'echo $$ >>"$0"; exec sleep 300' @/pids &)
      until [ "$(wc -l <@/pids)" = 4 ]; do sleep 0.05; done
      echo ready >@/here
      while :; do sleep 300; done""",
    "flood": f"printf HEAD; head -c {FLOOD} /dev/zero | tr '\\0' x; printf TAIL",
    "crash": "kill -9 $$",
    "leak": "cat @/secret",
    "read": 'printf "rest:%d" "$(wc -c)"',
    "meet": """
      printf '%s\\n' "$value" >@/here
      until [ -e @/go ]; do sleep 0.1; done
      printf %s "$value" """,
    "tell": """
      echo begun
      until [ -e @/go ]; do sleep 0.1; done
      printf %s "$value" """,
    "log": 'printf "%s\\n" "$value" >>@/log',
    "where": 'printf %s "$PWD"',
    "draw": 'printf %s "$value"; echo @/dot.png >&3',
}
"""Every behaviour for kinds that run bash, with @ for the test's folder."""


def bash_code(yard: Yard, behaviour: Behaviour) -> str:
    return BASH[behaviour].replace("@", shlex.quote(str(yard.folder)))


def value_argument(value: str) -> dict[str, Any]:
    return {"value": value}


def write_bash_script(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    yard.tool(run=f"value=$2\n{bash_code(yard, behaviour)}", properties=SCHEMA["properties"], required=["value"])
    return Written(plugin="bash:probe.bash", arguments=value_argument, policy={"bash_timeout_seconds": limit})


def write_bash_comments(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    declared = "# @describe A probe.\n# @option --value! A text."
    yard.file("probe.bash", f"{declared}\nmain() {{\nvalue=$argc_value\n{bash_code(yard, behaviour)}\n}}\n")
    return Written(plugin="bash:probe.bash", arguments=value_argument, policy={"bash_timeout_seconds": limit})


def write_manifest(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    reading = 'import json, sys; sys.stdout.write(json.load(sys.stdin)["value"])'
    value = f"value=$({shlex.quote(sys.executable)} -c {shlex.quote(reading)})"
    command = [yard.program("probe", f"set -e\n{value}\n{bash_code(yard, behaviour)}")]
    entry = {"name": "probe", "description": "A probe.", "schema": SCHEMA, "command": command}
    yard.manifest({**entry, "timeoutSec": int(limit)})
    return Written(plugin="manifest:tools.json", arguments=value_argument)


def write_shell_command(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    code = bash_code(yard, behaviour)
    return Written(
        plugin="shell:command",
        arguments=lambda value: {"command": f"value={shlex.quote(value)}\n{code}", "timeout": limit},
    )


def write_shell_session(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    # In a subshell, so that `exit` is the command's own and not the session's.
    code = f"(\n{bash_code(yard, behaviour)}\n)"
    return Written(
        plugin={"shell_session": {"timeout_seconds": limit}},
        arguments=lambda value: {"command": f"value={shlex.quote(value)}\n{code}"},
    )


NODE: dict[Behaviour, str] = {
    "echo": "context.write(value)",
    "fail": "throw new Error('broken')",
    "hang": """
      await context.write("begun");
      const pids = [process.pid, child.spawn("sleep", ["300"]).pid];
      pids.push(child.spawn("setsid", ["sleep", "300"]).pid);
      pids.push(child.spawn("sleep", ["300"], { detached: true, stdio: "ignore" }).pid);
      fs.writeFileSync("@/pids", pids.join("\\n") + "\\n");
      fs.writeFileSync("@/here", "ready\\n");
      await new Promise(() => {})""",
    "flood": f"context.write('HEAD'); await context.write('x'.repeat({FLOOD})); context.write('TAIL')",
    "crash": "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})",
    "leak": "context.write(fs.readFileSync('@/secret', 'utf8'))",
    "read": "let n = 0; for await (const piece of process.stdin) n += piece.length; context.write(`rest:${n}`)",
    "meet": """
      fs.writeFileSync("@/here", `${value}\\n`);
      while (!fs.existsSync("@/go")) await new Promise((go) => setTimeout(go, 100));
      context.write(value)""",
    "tell": """
      context.write("begun\\n");
      while (!fs.existsSync("@/go")) await new Promise((go) => setTimeout(go, 100));
      context.write(value)""",
    "log": "fs.appendFileSync('@/log', `${value}\\n`)",
    "where": "context.write(process.cwd())",
    "draw": "return [value, fs.readFileSync('@/dot.png')]",
}
"""The same in JavaScript."""


def write_node(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    need("node")
    code = NODE[behaviour].replace("@", str(yard.folder))
    head = "import child from 'node:child_process';\nimport fs from 'node:fs';\n"
    tool = f"description: 'A probe.', parameters: {json.dumps(SCHEMA)}, async run({{ value }}, context) {{\n{code}\n}}"
    yard.file("probe.mjs", f"{head}export default {{ {tool} }};\n")
    return Written(plugin="node:probe.mjs", arguments=value_argument, policy={"node_timeout_seconds": limit})


PYTHON: dict[Behaviour, str] = {
    "echo": "return value",
    "fail": 'raise ToolError("broken")',
    "hang": """
    print("begun")
    say(HERE, "ready")
    await asyncio.sleep(3600)""",
    "flood": f'return "HEAD" + "x" * {FLOOD} + "TAIL"',
    "leak": 'return (FOLDER / "secret").read_text()',
    "read": 'return f"rest:{len(sys.stdin.read())}"',
    "meet": """
    say(HERE, value)
    while not (FOLDER / "go").exists():
        await asyncio.sleep(0.05)
    return value""",
    "tell": """
    print("begun")
    while not (FOLDER / "go").exists():
        await asyncio.sleep(0.05)
    return value""",
    "log": 'say(FOLDER / "log", value)',
    "where": "return str(context.cwd)",
    "draw": 'return [value, (FOLDER / "dot.png").read_bytes()]',
}


def write_python(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    code = PYTHON[behaviour]
    yard.file(
        "probe.py",
        f"""
import asyncio
import sys
from pathlib import Path
from typing import Annotated
from toolyard.plugins.contract import ToolContext, ToolError, tool

FOLDER = Path({str(yard.folder)!r})
HERE = FOLDER / "here"

def say(path, text):
    with path.open("a") as file:
        file.write(text + "\\n")

@tool
async def probe(value: Annotated[str, "A text."], context: ToolContext):
    "A probe."
    {code}
""",
    )
    return Written(plugin="path:probe.py", arguments=value_argument, policy={"python_timeout_seconds": limit})


THIN = (Path(__file__).parent.parent / "mcp_servers" / "thin.py").read_text()
MCP: dict[Behaviour, str] = {
    "echo": "return text(value)",
    "fail": "return {**text('broken'), 'isError': True}",
    "hang": """
    pids = [os.getpid(), subprocess.Popen(["sleep", "300"]).pid]
    pids.append(subprocess.Popen(["setsid", "sleep", "300"]).pid)
    pids.append(subprocess.Popen(["sleep", "300"], start_new_session=True, close_fds=True).pid)
    open("@/pids", "w").write("\\n".join(map(str, pids)) + "\\n")
    open("@/here", "w").write("ready\\n")
    time.sleep(3600)""",
    "flood": f"return text('HEAD' + 'x' * {FLOOD} + 'TAIL')",
    "crash": "os.kill(os.getpid(), signal.SIGKILL)",
    "leak": "return text(open('@/secret').read())",
    "meet": """
    open("@/here", "w").write(value + "\\n")
    while not os.path.exists("@/go"): time.sleep(0.1)
    return text(value)""",
    "tell": """
    call.progress(1, "begun")
    while not os.path.exists("@/go"): time.sleep(0.1)
    return text(value)""",
    "log": "open('@/log', 'a').write(value + '\\n'); return text()",
    "where": "return text(os.getcwd())",
    "draw": """
    data = base64.b64encode(open("@/dot.png", "rb").read()).decode()
    return {"content": [*text(value)["content"], {"type": "image", "data": data, "mimeType": "image/png"}]}""",
}


def write_mcp_stdio(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    code = MCP[behaviour].replace("@", str(yard.folder))
    definition = {"name": "probe", "description": "A probe.", "inputSchema": SCHEMA}
    head = "import base64, signal, subprocess, time\ndef probe(arguments, call):\n    value = arguments['value']"
    yard.file("server.py", f"{THIN}\n{head}\n    {code}\nserve([({definition!r}, probe)])\n")
    entry = {"command": [sys.executable, "./server.py"]}
    return Written(plugin={"mcp": entry}, arguments=value_argument, policy={"mcp_timeout_seconds": limit})


def write_mcp_http(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    from mcp_servers.over_http import probe_url

    headers = {"X-Behaviour": behaviour, "X-Folder": str(yard.folder)}
    entry = {"url": probe_url(), "headers": headers}
    return Written(plugin={"mcp": entry}, arguments=value_argument, policy={"mcp_timeout_seconds": limit})


def write_toy(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    yard.file("probe.toy", f"# A probe.\nvalue=$1\n{bash_code(yard, behaviour)}\n")
    options = {"kinds": WITH_TOYS}
    return Written(
        plugin="toy:probe.toy", arguments=value_argument, policy={"toy_timeout_seconds": limit}, options=options
    )


def write_file_reading(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    """A file is there for each value, which the tool then reads."""

    def arguments(value: str) -> dict[str, Any]:
        if behaviour == "echo":
            yard.file(f"value-{abs(hash(value))}", value)
            return {"file_path": f"value-{abs(hash(value))}"}
        return {"file_path": {"fail": "broken", "leak": "secret", "where": "where"}[behaviour]}

    if behaviour == "where":
        yard.file("inner/where", str(yard.folder / "inner"))
    return Written(plugin="files:read", arguments=arguments)


def write_file_writing(yard: Yard, behaviour: Behaviour, limit: float) -> Written:
    return Written(plugin="files:all", arguments=lambda value: {"file_path": "log", "content": f"{value}\n"})


def without_numbers(result: ToolResult) -> str:
    return "\n".join(line.partition("\t")[2] for line in result.text.split("\n"))


def printed(result: ToolResult) -> str:
    return str((result.data or {})["stdout"])


ONLY_PRINTS = "it has nothing but what it prints"
KINDS = [
    Kind(name="toy", write=write_toy, cannot={"draw": ONLY_PRINTS}),
    Kind(name="bash_script", write=write_bash_script),
    Kind(name="bash_script", write=write_bash_comments, id="bash_comments"),
    Kind(name="manifest_command", write=write_manifest),
    # An error that is thrown has no code of its own.
    Kind(name="node_module", write=write_node, exit_code=1),
    # An exit code is an answer there, whatever it is.
    Kind(
        name="shell_command",
        write=write_shell_command,
        tool="shell",
        said=printed,
        failure=None,
        cannot={"draw": ONLY_PRINTS},
    ),
    Kind(
        name="shell_session",
        write=write_shell_session,
        tool="bash",
        too_late="did not finish within",
        cannot={"side_by_side": "one shell runs one command at a time", "draw": ONLY_PRINTS},
    ),
    Kind(
        name="python",
        write=write_python,
        exit_code=1,
        processes=0,
        streams=False,
        cannot={
            "crash": "it is part of the application, and ends with it",
        },
    ),
    Kind(
        name="files",
        write=write_file_reading,
        tool="read",
        said=without_numbers,
        exit_code=1,
        streams=False,
        cannot={
            **dict.fromkeys(("hang", "meet", "tell", "side_by_side"), "no file makes it wait"),
            "flood": "of a long file it shows a part, and says how to go on",
            "crash": "what it reads cannot end it",
            "read": "it has no standard input",
            "log": "it changes nothing",
            "draw": "of a picture it says only what it is",
        },
    ),
    Kind(
        name="files",
        write=write_file_writing,
        id="files_write",
        tool="write",
        cannot=dict.fromkeys(
            ("echo", "fail", "hang", "flood", "crash", "leak", "read", "meet", "tell", "side_by_side", "where", "draw"),
            "all that it does is to write what it is given",
        ),
    ),
    Kind(
        name="mcp",
        write=write_mcp_stdio,
        id="mcp_stdio",
        exit_code=1,
        streams=False,
        cannot={"read": "its standard input is the wire"},
    ),
    Kind(
        name="mcp",
        write=write_mcp_http,
        id="mcp_http",
        exit_code=1,
        processes=0,
        streams=False,
        cannot={
            "read": "its standard input is its owner's",
            "crash": "it is somebody else's process",
            "where": "it works wherever its owner started it",
        },
    ),
]
