#!/usr/bin/env bash
# Reads a range of lines of a text file, by line numbers that count from one, both ends included.
set -euo pipefail

fail() {
  echo "$1" >&2
  exit "${2:-1}"
}

command=${1:-}
[ "$#" -eq 0 ] || shift
path=${1-} start=${2-} end=${3-} numbers=${4:-false}

case $command in
  schema)
    cat <<'JSON'
{
  "id": "read_line_range",
  "version": "0.1.0",
  "args_mode": "positional",
  "positional": [
    {"name": "path", "required": true},
    {"name": "start_line", "required": true},
    {"name": "end_line", "required": true},
    {"name": "show_line_numbers", "default": false}
  ],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "read_line_range",
        "description": "Read the lines from start_line to end_line of a text file, both included.",
        "parameters": {
          "type": "object",
          "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file to read, absolute or relative to the working directory."},
            "start_line": {"type": "integer", "minimum": 1, "description": "The first line to read; lines count from 1."},
            "end_line": {"type": "integer", "minimum": 1, "description": "The last line to read; past the end of the file is fine."},
            "show_line_numbers": {"type": "boolean", "default": false, "description": "Whether each line starts with its number and a tab."}
          },
          "required": ["path", "start_line", "end_line"],
          "additionalProperties": false
        }
      }
    }
  ]
}
JSON
    ;;
  preview)
    printf 'read %q, lines %s to %s\n' "$path" "$start" "$end"
    ;;
  run)
    [ "$start" -le "$end" ] || fail "start_line ($start) is after end_line ($end)" 2
    [ -e "$path" ] || fail "no such file: $path" 3
    [ ! -d "$path" ] || fail "$path is a folder, not a file" 3
    [ -r "$path" ] || fail "$path cannot be read" 3
    if [ "$numbers" = true ]; then
      awk -v first="$start" -v last="$end" 'NR > last { exit } NR >= first { print NR "\t" $0 }' <"$path"
    else
      sed -n "${start},${end}p;${end}q" <"$path"
    fi
    ;;
  error)
    code=$path
    if [ "${AGENT_TOOL_TIMED_OUT:-}" = 1 ]; then
      echo "Reading took longer than ${AGENT_TOOL_TIMEOUT_SECONDS} seconds; ask for fewer lines."
      exit 0
    fi
    case $code in
      2) echo "Error: start_line must not be after end_line." ;;
      3) echo "Error: '${2-}' is not a file that can be read." ;;
      *) exit 1 ;;
    esac
    ;;
  *)
    fail "usage: ${0##*/} schema | preview|run PATH START END [NUMBERS] | error CODE PATH START END [NUMBERS]" 2
    ;;
esac
