#!/usr/bin/env bash
# Structured arguments: a list of objects, which no command line carries well, as JSON on standard input.
set -euo pipefail

# The python that runs Toolyard is always there; every tool gets its path.
python() {
  "${AGENT_TOOL_PYTHON:-python3}" "$@"
}

case ${1:-} in
  schema)
    cat <<'JSON'
{
  "id": "markdown_table",
  "version": "0.1.0",
  "args_mode": "json",
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "markdown_table",
        "description": "Lay out rows of data as a Markdown table.",
        "parameters": {
          "type": "object",
          "properties": {
            "rows": {
              "type": "array",
              "items": {"type": "object"},
              "description": "One object for each row; its keys are the names of columns."
            },
            "columns": {
              "type": "array",
              "items": {"type": "string"},
              "description": "Which columns to show, in this order; all of them when it is left out."
            }
          },
          "required": ["rows"],
          "additionalProperties": false
        }
      }
    }
  ]
}
JSON
    ;;
  preview)
    python -c '
import json, sys
count = len(json.load(sys.stdin)["rows"])
print("lay out 1 row" if count == 1 else f"lay out {count} rows")'
    ;;
  run)
    python -c '
import json, sys

arguments = json.load(sys.stdin)
rows = arguments["rows"]
columns = arguments.get("columns") or list(dict.fromkeys(name for row in rows for name in row))
if not columns:
    sys.exit(3)

def text(value):
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shown.replace("|", "\\|").replace("\n", "<br>")

table = [columns, ["---"] * len(columns)]
table += [[text(row.get(name, "")) for name in columns] for row in rows]
for line in table:
    print("| " + " | ".join(line) + " |")'
    ;;
  error)
    [ "${2:-}" = 3 ] || exit 1
    echo "Error: there are no columns; give rows that have keys, or name the columns."
    ;;
  *)
    echo "usage: ${0##*/} schema | preview|run --args-json | error CODE --args-json" >&2
    exit 64
    ;;
esac
