#!/usr/bin/env bash
# The shortest form of a tool: comments declare its arguments, and `main` finds them in variables.
# shellcheck disable=SC2154 # the variables argc_… are set from the comments
set -euo pipefail

# @describe Find files by name, in a folder and all folders below it.
# @meta version 0.1.0
# @meta require-tools find,sort
# @option --name! <GLOB> A pattern for the file's name, such as *.py
# @option --folder=. <FOLDER> Where to look.
# @option --limit=20 <INT> How many files to give at most.
# @flag --hidden Whether to look at files and into folders whose names begin with a dot.

main() {
  [ -d "$argc_folder" ] || { echo "there is no folder '$argc_folder'" >&2; exit 3; }
  cd -- "$argc_folder"
  local skipped=(-name '.?*' -prune -o) found
  [ -z "${argc_hidden:-}" ] || skipped=()
  found=$(find . "${skipped[@]}" -type f -name "$argc_name" -print | sort)
  if [ -n "$found" ]; then
    head -n "$argc_limit" <<<"$found"
  else
    echo "no files"
  fi
}

eval "$(argc --argc-eval "$0" "$@")"
