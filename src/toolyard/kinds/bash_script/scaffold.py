"""A new bash tool, in each of the ways in which arguments can reach a script."""

from __future__ import annotations

import json
from typing import Literal, cast

from toolyard.plugins.checks.samples import greeting_cases
from toolyard.plugins.kind import DESCRIPTOR, NewFile

Mode = Literal["flags", "positional", "json", "comments"]


def new_files(name: str, mode: str | None) -> list[NewFile]:
    mode = cast("Mode", mode or "flags")
    # A file that declares itself in comments is called as its file is, with _ for -, and has no preview of its own.
    preview = f"{name.replace('-', '_')} name=Ada" if mode == "comments" else "greet Ada"
    failed = {"exit": 3, "output_contains": "name must not be empty"}
    cases = greeting_cases(lambda text: f"{text}\n", preview=preview, empty_name=failed)
    return [
        NewFile(path=f"{name}.bash", text=script(name, mode), executable=True),
        NewFile.with_json(DESCRIPTOR, {"bash_tools": [{"file": f"{name}.bash"}]}),
        NewFile.with_json(f"tests/{name}.json", cases),
    ]


def script(name: str, mode: Mode) -> str:
    if mode == "comments":
        return COMMENTS
    body = SUBCOMMANDS.replace("@SCHEMA@", schema(name, mode)).replace("@READ@", READING[mode])
    return body.replace("@NAME@", name)


def schema(name: str, mode: Mode) -> str:
    value = {
        "id": name,
        "version": "0.1.0",
        "args_mode": mode,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": "Greet somebody by name.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "description": "Whom to greet."},
                            "loud": {"type": "boolean", "default": False, "description": "Whether to shout."},
                        },
                        "required": ["name"],
                        "additionalProperties": False,
                    },
                },
            }
        ],
    }
    if mode == "positional":
        value["positional"] = [{"name": "name", "required": True}, {"name": "loud", "default": False}]
    return json.dumps(value, indent=2)


SUBCOMMANDS = r"""#!/usr/bin/env bash
# Try it: bash @NAME@.bash schema
#         toolyard tool check .    toolyard tool test .
set -euo pipefail

command=${1:-}
[ "$#" -eq 0 ] || shift

@READ@

case $command in
  schema)
    cat <<'JSON'
@SCHEMA@
JSON
    ;;
  preview)
    # One line for the person who watches.
    read_arguments "$@"
    printf 'greet %q\n' "$name"
    ;;
  run)
    # The work. What is printed here is what the model sees.
    read_arguments "$@"
    [ -n "$name" ] || { echo "name must not be empty" >&2; exit 3; }
    greeting="Hello, $name!"
    [ "$loud" != true ] || greeting=${greeting^^}
    printf '%s\n' "$greeting"
    ;;
  error)
    # What the model sees when run failed; say what to do differently.
    case ${1:-} in
      3) echo "The name must not be empty." ;;
      *) echo "@NAME@ failed with exit code ${1:-unknown}." ;;
    esac
    ;;
  *)
    echo "usage: ${0##*/} schema | preview | run | error CODE" >&2
    exit 2
    ;;
esac
"""

READING = {
    "flags": r"""name="" loud=false
read_arguments() {
  while [ "$#" -gt 0 ]; do
    case $1 in
      --name) name=$2; shift 2 ;;
      --loud) loud=true; shift ;;
      --no-loud) loud=false; shift ;;
      *) echo "unexpected argument: $1" >&2; exit 2 ;;
    esac
  done
}""",
    "positional": r"""read_arguments() {
  name=${1-} loud=${2:-false}
}""",
    "json": r"""read_arguments() {
  # The arguments are a JSON object on standard input. AGENT_TOOL_PYTHON is always there; jq works as well.
  local python=${AGENT_TOOL_PYTHON:-python3} fields
  mapfile -d '' -t fields < <("$python" -c '
import json, sys
arguments = json.load(sys.stdin)
for value in (arguments["name"], "true" if arguments.get("loud") else "false"):
    sys.stdout.write(value + "\0")')
  name=${fields[0]} loud=${fields[1]}
}""",
}

COMMENTS = r"""#!/usr/bin/env bash
# Try it: toolyard tool check .    toolyard tool test .
# shellcheck disable=SC2154 # the variables argc_… are set from the comments
set -euo pipefail

# @describe Greet somebody by name.
# @option --name! <TEXT> Whom to greet.
# @flag --loud Whether to shout.

main() {
  [ -n "$argc_name" ] || { echo "name must not be empty" >&2; exit 3; }
  local greeting="Hello, $argc_name!"
  [ -z "${argc_loud:-}" ] || greeting=${greeting^^}
  printf '%s\n' "$greeting"
}

eval "$(argc --argc-eval "$0" "$@")"
"""
