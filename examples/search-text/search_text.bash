#!/usr/bin/env bash
# An existing command as a tool: grep, with arguments as flags and one setting from the configuration.
set -euo pipefail

command=${1:-}
[ "$#" -eq 0 ] || shift

read_arguments() {
  pattern="" path=. ignore_case=false max_matches=50
  while [ "$#" -gt 0 ]; do
    case $1 in
      --pattern) pattern=$2; shift 2 ;;
      --path) path=$2; shift 2 ;;
      --ignore_case) ignore_case=true; shift ;;
      --no-ignore_case) ignore_case=false; shift ;;
      --max_matches) max_matches=$2; shift 2 ;;
      *) echo "unexpected argument: $1" >&2; exit 64 ;;
    esac
  done
}

search() {
  local options=(--recursive --line-number --no-messages --binary-files=without-match --extended-regexp)
  [ "$ignore_case" != true ] || options+=(--ignore-case)
  [ -z "${AGENT_TOOL_CONFIG_SEARCH_EXCLUDE:-}" ] || options+=("--exclude-dir=$AGENT_TOOL_CONFIG_SEARCH_EXCLUDE")
  grep "${options[@]}" --regexp="$pattern" -- "$path"
}

case $command in
  schema)
    cat <<'JSON'
{
  "id": "search_text",
  "version": "0.1.0",
  "args_mode": "flags",
  "config_keys": ["search_exclude"],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "search_text",
        "description": "Search the files of a folder for a regular expression; gives file:line:text for every match.",
        "parameters": {
          "type": "object",
          "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "An extended regular expression, as grep -E takes it."},
            "path": {"type": "string", "default": ".", "description": "The file or folder to search."},
            "ignore_case": {"type": "boolean", "default": false, "description": "Whether capital and small letters are the same."},
            "max_matches": {"type": "integer", "minimum": 1, "default": 50, "description": "How many matches to give at most."}
          },
          "required": ["pattern"],
          "additionalProperties": false
        }
      }
    }
  ]
}
JSON
    ;;
  preview)
    read_arguments "$@"
    printf 'search %q for %q\n' "$path" "$pattern"
    ;;
  run)
    read_arguments "$@"
    [ -e "$path" ] || exit 3
    status=0
    found=$(search) || status=$?
    # grep exits with 1 when nothing matches, which is an answer and no failure.
    case $status in
      0) head -n "$max_matches" <<<"$found" ;;
      1) echo "no matches" ;;
      *) exit 4 ;;
    esac
    ;;
  error)
    code=${1:-}
    shift
    read_arguments "$@"
    case $code in
      3) echo "Error: there is no '$path' to search." ;;
      4) echo "Error: '$pattern' is not a regular expression that grep -E takes." ;;
      *) exit 1 ;;
    esac
    ;;
  *)
    echo "usage: ${0##*/} schema | preview | run | error CODE" >&2
    exit 64
    ;;
esac
