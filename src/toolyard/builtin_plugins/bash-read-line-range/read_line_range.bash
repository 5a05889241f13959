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
    # Bash counts to about 10^19, and no file has that many lines.
    [ "${#start}" -le 18 ] || start=999999999999999999
    [ "${#end}" -le 18 ] || end=999999999999999999
    [ "$start" -le "$end" ] || fail "start_line ($start) is after end_line ($end)" 2
    [ -e "$path" ] || fail "$path does not exist" 3
    # A device or a pipe might never end.
    [ -f "$path" ] || fail "$path is not a regular file" 4
    [ -r "$path" ] || fail "$path cannot be read" 5
    if [ "$numbers" = true ]; then
      awk -v first="$start" -v last="$end" 'NR > last { exit } NR >= first { print NR "\t" $0 }' <"$path"
    else
      sed -n "${start},${end}p;${end}q" <"$path"
    fi
    ;;
  error)
    if [ "${AGENT_TOOL_TIMED_OUT:-}" = 1 ]; then
      echo "Error: reading took longer than ${AGENT_TOOL_TIMEOUT_SECONDS} seconds; ask for fewer lines."
      exit 0
    fi
    code=${1-} path=${2-} start=${3-} end=${4-}
    case $code in
      2) echo "Error: start_line ($start) must not be after end_line ($end)." ;;
      3) echo "Error: there is no file '$path' in $PWD." ;;
      4) echo "Error: '$path' is a folder or a device, not a text file." ;;
      5) echo "Error: '$path' may not be read by this user." ;;
      *) exit 1 ;;
    esac
    ;;
  *)
    fail "usage: ${0##*/} schema | preview|run PATH START END [NUMBERS] | error CODE PATH START END [NUMBERS]" 2
    ;;
esac
