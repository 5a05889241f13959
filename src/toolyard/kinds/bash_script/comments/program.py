"""How a script that declares itself in comments is run: a constant bash program that stands in for `argc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from toolyard.kinds.bash_script.comments.schema import value_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from toolyard.core.tool import JsonObject
    from toolyard.kinds.bash_script.comments.script import CommentTool
    from toolyard.kinds.bash_script.comments.tags import CommentParameter, CommentVariable


COMMENT_ENVIRONMENT = {"LLM_OUTPUT": "/dev/stdout"}
"""Where scripts of this convention write their answer."""

LONGEST_PIECE = 32_000
"""In characters of up to four bytes: the kernel takes no argument of 128 KiB."""

Step: TypeAlias = "tuple[str, ...]"
"""The name of a function of the program, without its prefix, and what it is called with."""


def program_argv(
    bash: str, file: Path, tool: CommentTool, arguments: JsonObject, withheld: Collection[str] = ()
) -> list[str]:
    """The command that calls the script's function once, with arguments that fit its schema.

    `withheld` are variables that are set, but do not reach tools, since they look like credentials.
    """
    path = file.absolute()
    line = [path.name.removesuffix(".sh"), *command_line(tool, arguments)]
    words = ["eval" if tool.has_argc_line else "call", tool.function or "", str(len(line)), *line]
    for verb, *values in steps(tool, arguments, withheld):
        words += [verb, str(len(values)), *values]
    return [bash, "-c", PROGRAM, str(path), *(piece for word in words for piece in pieces(word))]


def pieces(word: str) -> Iterator[str]:
    """A word in parts that the kernel takes; `+` before a part says that the word goes on, `=` that it ends."""
    end = max(0, len(word) - 1) // LONGEST_PIECE * LONGEST_PIECE
    for start in range(0, end, LONGEST_PIECE):
        yield "+" + word[start : start + LONGEST_PIECE]
    yield "=" + word[end:]


def command_line(tool: CommentTool, arguments: JsonObject) -> list[str]:
    """The words with which a person would give the same arguments."""
    given = [(each, texts) for each in tool.parameters if (texts := given_texts(each, arguments)) is not None]
    words = list(tool.command)
    for parameter, texts in given:
        if parameter.form != "arg" and not parameter.takes_rest:
            words += option_words(parameter, texts)
    places = positional_words(tool, arguments)
    words += ["--", *places] if any(looks_like_option(place) for place in places) else places
    for parameter, texts in given:
        if parameter.form == "option" and parameter.takes_rest:
            words += [parameter.flag, *texts]
    return words


def given_texts(parameter: CommentParameter, arguments: JsonObject) -> list[str] | None:
    """The values of a parameter as text, a flag's as a count; None when there are none."""
    value = arguments.get(parameter.name)
    if value is None:
        return None
    if parameter.form == "flag":
        return [str(int(value))]
    if isinstance(value, dict):
        return [f"{name}={value_text(each)}" for name, each in value.items()]
    return [value_text(item) for item in value] if isinstance(value, list) else [value_text(value)]


def option_words(parameter: CommentParameter, texts: Sequence[str]) -> list[str]:
    if parameter.form == "flag":
        return [parameter.flag] * int(texts[0])
    if parameter.prefixed:
        return [parameter.flag + text for text in texts]
    if parameter.is_list and not parameter.multiple:
        return [parameter.flag, *texts]
    size = max(1, len(parameter.notations))
    return [word for start in range(0, len(texts), size) for word in occurrence(parameter, texts[start : start + size])]


def occurrence(parameter: CommentParameter, texts: Sequence[str]) -> list[str]:
    """The option with its values, in one word where the value would be taken for another option."""
    joined = parameter.assigned or looks_like_option(texts[0])
    return [f"{parameter.flag}={texts[0]}", *texts[1:]] if joined else [parameter.flag, *texts]


def positional_words(tool: CommentTool, arguments: JsonObject) -> list[str]:
    """The values of each `@arg` up to the last that is given; an empty word keeps the place of one that is not."""
    words: list[str] = []
    filled = 0
    for parameter in tool.parameters:
        if parameter.form == "arg":
            texts = given_texts(parameter, arguments)
            words += [""] if texts is None else texts
            filled = len(words) if texts else filled
    return words[:filled]


def looks_like_option(word: str) -> bool:
    return word.startswith(("-", "+"))


def steps(tool: CommentTool, arguments: JsonObject, withheld: Collection[str] = ()) -> Iterator[Step]:
    """What happens before the script's function is called, in that order."""
    if tool.required_tools:
        yield "tools", *tool.required_tools
    if tool.dotenv is not None:
        yield "dotenv", tool.dotenv
    if required := list(required_variables(tool, arguments, withheld)):
        yield "env_required", *(word for name in required for word in (name, "withheld" * (name in withheld)))
    for variable in tool.env:
        yield from variable_steps(variable)
    # Values of options come first, since functions that find the values of positional ones may read them.
    places = [parameter for parameter in tool.parameters if parameter.form == "arg"]
    ordered = [*(parameter for parameter in tool.parameters if parameter.form != "arg"), *places]
    for parameter in ordered:
        yield from value_steps(parameter, given_texts(parameter, arguments))
    for parameter in ordered:
        yield from check_steps(parameter)
    for parameter in places:
        yield "positional", parameter.variable


def required_variables(tool: CommentTool, arguments: JsonObject, withheld: Collection[str]) -> Iterator[str]:
    """Those that must be set, also those of arguments that were not given and would have been found there."""
    yield from (variable.name for variable in tool.env if variable.required)
    for parameter in tool.parameters:
        if parameter.required and arguments.get(parameter.name) is None and parameter.env and parameter.env in withheld:
            yield parameter.env


def variable_steps(variable: CommentVariable) -> Iterator[Step]:
    value, label = variable.value, f"the environment variable {variable.name}"
    if value.default is not None:
        yield "env_default", variable.name, value.default
    if value.default_function is not None:
        yield "env_default_from", variable.name, value.default_function
    if value.choices:
        yield "allowed", variable.name, label, *value.choices
    if value.choice_function is not None and value.choices_checked:
        yield "allowed_by", variable.name, label, value.choice_function


def value_steps(parameter: CommentParameter, texts: Sequence[str] | None) -> Iterator[Step]:
    """Give the variable its value: from the call, else from the environment, else the default."""
    if texts is None:
        yield from absent_steps(parameter)
    elif parameter.prefixed:
        yield "map", parameter.variable, *texts
    elif parameter.is_list:
        yield "list", parameter.variable, *texts
    elif parameter.form != "flag" or texts != ["0"]:
        yield "value", parameter.variable, texts[0]


def absent_steps(parameter: CommentParameter) -> Iterator[Step]:
    name, env, value = parameter.variable, parameter.env or "", parameter.value
    if env:
        kind = "flag" if parameter.form == "flag" else "list" if parameter.is_list else "value"
        yield f"env_{kind}", name, env, parameter.separator
    if value.default is not None:
        yield "default", name, env, value.default
    if value.default_function is not None:
        yield "default_from", name, env, value.default_function


def check_steps(parameter: CommentParameter) -> Iterator[Step]:
    """What the schema has not checked: values from the environment, and choices that only the script knows."""
    name, value = parameter.variable, parameter.value
    if parameter.prefixed:
        return  # its choices are names for people at a command line, and are completed but not checked
    if parameter.required:
        yield "required", name, parameter.name
    if value.choices:
        yield "allowed", name, parameter.name, *value.choices
    if value.choice_function is not None and value.choices_checked:
        yield "allowed_by", name, parameter.name, value.choice_function


# The text never changes: names, values and steps come as arguments and are only ever expanded in quotes.
# Whatever runs once the script is loaded says `builtin`, since the script may have a function called `read` or `exit`,
# and prefixes its local variables, since bash shows them to the functions of the script that it calls.
PROGRAM = r"""
argc() {
  if [ "${1-}" != --argc-eval ]; then
    command argc "$@"
    return
  fi
  builtin printf '%s;\n' __toolyard_prepare
  if builtin declare -F _argc_before >/dev/null; then builtin printf '%s;\n' _argc_before; fi
  if [ -z "$__toolyard_function" ]; then return; fi
  builtin printf '%s;\n' '"$argc__fn" "${argc__positionals[@]}"'
  if builtin declare -F _argc_after >/dev/null; then builtin printf '%s;\n' _argc_after; fi
}

__toolyard_prepare() {
  argc__args=("${__toolyard_line[@]}")
  argc__positionals=()
  __toolyard_gaps=()
  if [ -n "$__toolyard_function" ]; then argc__fn=$__toolyard_function; fi
  builtin set -- "${__toolyard_steps[@]}"
  while [ "$#" -gt 0 ]; do
    "__toolyard_$1" "${@:3:$2}"
    builtin shift "$(($2 + 2))"
  done
}

__toolyard_fail() {
  builtin printf 'error: %s\n' "$1" >&2
  builtin exit 1
}

__toolyard_tools() {
  local __toolyard_tool __toolyard_missing=''
  for __toolyard_tool in "$@"; do
    if ! builtin command -v -- "$__toolyard_tool" >/dev/null; then __toolyard_missing+=" $__toolyard_tool"; fi
  done
  if [ -n "$__toolyard_missing" ]; then __toolyard_fail "these tools are not installed:$__toolyard_missing"; fi
}

__toolyard_dotenv() {
  local __toolyard_text __toolyard_name
  if [ ! -f "$1" ]; then return; fi
  while IFS= builtin read -r __toolyard_text || [ -n "$__toolyard_text" ]; do
    __toolyard_name=${__toolyard_text%%=*}
    __toolyard_name=${__toolyard_name#export }
    if [[ $__toolyard_text != *=* || ! $__toolyard_name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]]; then continue; fi
    if [ -n "${!__toolyard_name+set}" ]; then continue; fi
    __toolyard_text=${__toolyard_text#*=}
    __toolyard_text=${__toolyard_text%$'\r'}
    case $__toolyard_text in
      \"*\" | \'*\') __toolyard_text=${__toolyard_text:1:${#__toolyard_text}-2} ;;
    esac
    __toolyard_export "$__toolyard_name" "$__toolyard_text"
  done <"$1"
}

__toolyard_export() {
  builtin printf -v "$1" %s "$2"
  builtin export "${1?}"
}

__toolyard_env_required() {
  local __toolyard_missing='' __toolyard_withheld=''
  while [ "$#" -gt 0 ]; do
    if [ -n "${!1-}" ]; then
      builtin :
    elif [ -n "$2" ]; then
      __toolyard_withheld+=" $1"
    else
      __toolyard_missing+=" $1"
    fi
    builtin shift 2
  done
  if [ -n "$__toolyard_withheld" ]; then
    __toolyard_withheld="these are set, but withheld from tools, since they look like credentials:$__toolyard_withheld"
    __toolyard_withheld+=' (name them in plugin_policy.pass_env)'
  fi
  if [ -n "$__toolyard_missing" ]; then
    __toolyard_missing="these environment variables are required, but not set:$__toolyard_missing"
  fi
  if [ -n "$__toolyard_missing$__toolyard_withheld" ]; then
    __toolyard_fail "$__toolyard_missing${__toolyard_missing:+${__toolyard_withheld:+; }}$__toolyard_withheld"
  fi
}

__toolyard_env_default() {
  if [ -z "${!1-}" ]; then __toolyard_export "$1" "$2"; fi
}

__toolyard_env_default_from() {
  local __toolyard_text
  if [ -n "${!1-}" ]; then return; fi
  __toolyard_text=$("$2")
  __toolyard_export "$1" "$__toolyard_text"
}

__toolyard_value() {
  builtin printf -v "$1" %s "$2"
}

__toolyard_list() {
  local -n __toolyard_array=$1
  __toolyard_array=("${@:2}")
}

__toolyard_map() {
  builtin declare -gA "$1"
  local -n __toolyard_array=$1
  local __toolyard_item
  for __toolyard_item in "${@:2}"; do
    __toolyard_array[${__toolyard_item%%=*}]=${__toolyard_item#*=}
  done
}

__toolyard_env_value() {
  if [ -n "${!2-}" ]; then builtin printf -v "$1" %s "${!2}"; fi
}

__toolyard_env_list() {
  local -n __toolyard_array=$1
  local __toolyard_text=${!2-}
  if [ -z "$__toolyard_text" ]; then return; fi
  __toolyard_array=()
  while [[ -n $3 && $__toolyard_text == *"$3"* ]]; do
    __toolyard_array+=("${__toolyard_text%%"$3"*}")
    __toolyard_text=${__toolyard_text#*"$3"}
  done
  __toolyard_array+=("$__toolyard_text")
}

__toolyard_env_flag() {
  case ${!2-} in
    1 | true) builtin printf -v "$1" 1 ;;
    '' | 0 | false) ;;
    *) __toolyard_fail "the environment variable $2 must be true or false" ;;
  esac
}

__toolyard_default() {
  if [ -z "$2" ] || [ -z "${!2-}" ]; then builtin printf -v "$1" %s "$3"; fi
}

__toolyard_default_from() {
  local __toolyard_text
  if [ -n "$2" ] && [ -n "${!2-}" ]; then return; fi
  __toolyard_text=$("$3")
  builtin printf -v "$1" %s "$__toolyard_text"
}

__toolyard_required() {
  if [ -z "${!1+set}" ]; then __toolyard_fail "$2 is required, but not given"; fi
}

__toolyard_allowed() {
  local -n __toolyard_array=$1
  local __toolyard_item __toolyard_choice
  if [ -z "${!1+set}" ]; then return; fi
  for __toolyard_item in "${__toolyard_array[@]}"; do
    for __toolyard_choice in "${@:3}"; do
      if [ "$__toolyard_item" = "$__toolyard_choice" ]; then continue 2; fi
    done
    builtin printf -v __toolyard_choice ' %q' "${@:3}"
    __toolyard_fail "'$__toolyard_item' is no value for $2; possible are:$__toolyard_choice"
  done
}

__toolyard_allowed_by() {
  local __toolyard_text __toolyard_choice __toolyard_choices=()
  if [ -z "${!1+set}" ]; then return; fi
  __toolyard_text=$("$3" </dev/null) || builtin :
  while IFS=$' \t\r' builtin read -r __toolyard_choice; do
    __toolyard_choice=${__toolyard_choice%%$'\t'*}
    if [ -n "$__toolyard_choice" ]; then __toolyard_choices+=("$__toolyard_choice"); fi
  done <<<"$__toolyard_text"
  __toolyard_allowed "$1" "$2" "${__toolyard_choices[@]}"
}

__toolyard_positional() {
  local -n __toolyard_array=$1
  if [ -z "${!1+set}" ]; then
    __toolyard_gaps+=('')
    return
  fi
  argc__positionals+=("${__toolyard_gaps[@]}" "${__toolyard_array[@]}")
  __toolyard_gaps=()
}

unset -v "${!argc_@}"
__toolyard_words=() __toolyard_word=''
for __toolyard_piece in "$@"; do
  __toolyard_word+=${__toolyard_piece:1}
  if [ "${__toolyard_piece:0:1}" = '=' ]; then
    __toolyard_words+=("$__toolyard_word")
    __toolyard_word=''
  fi
done
set -- "${__toolyard_words[@]}"
__toolyard_entry=$1 __toolyard_function=$2
__toolyard_line=("${@:4:$3}")
shift "$(($3 + 3))"
__toolyard_steps=("$@")
set -- "${__toolyard_line[@]:1}"
unset -v __toolyard_words __toolyard_word __toolyard_piece
case $__toolyard_entry in
  eval)
    source "$0" "$@"
    ;;
  call)
    source "$0" "$@"
    eval "$(argc --argc-eval "$0" "$@")"
    ;;
esac
"""
