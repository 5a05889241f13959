#!/usr/bin/env bash
# Repeats a text. The smallest whole tool: copy it and put your own work under `run`.
set -euo pipefail

command=${1:-}
[ "$#" -eq 0 ] || shift

case $command in
  schema)
    cat <<'JSON'
{
  "id": "template_bash_echo",
  "version": "0.1.0",
  "args_mode": "positional",
  "positional": [
    {"name": "value", "required": true},
    {"name": "uppercase", "default": false}
  ],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "template_bash_echo",
        "description": "Give a text back as it is, or in capital letters.",
        "parameters": {
          "type": "object",
          "properties": {
            "value": {"type": "string", "description": "The text to give back."},
            "uppercase": {"type": "boolean", "default": false, "description": "Whether to use capital letters."}
          },
          "required": ["value", "uppercase"],
          "additionalProperties": false
        }
      }
    }
  ]
}
JSON
    ;;
  preview)
    printf 'template_bash_echo value=%q uppercase=%s\n' "${1-}" "${2:-false}"
    ;;
  run)
    value=${1-}
    [ "${2:-false}" != true ] || value=${value^^}
    printf '%s' "$value"
    ;;
  error)
    echo "Error: template_bash_echo failed (exit_code=${1:-1})"
    ;;
  *)
    echo "Usage: $0 {schema|preview|run|error}" >&2
    exit 2
    ;;
esac
