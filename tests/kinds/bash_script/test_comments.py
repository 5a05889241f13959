"""Scripts that declare themselves in comments: what is read from them, and what bash makes of a call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolyard.kinds.bash_script.comments.program import COMMENT_ENVIRONMENT, PROGRAM, program_argv
from toolyard.kinds.bash_script.comments.schema import parameters_schema
from toolyard.kinds.bash_script.comments.script import CommentScript, CommentTool, parse_comments, tool_name
from toolyard.kinds.bash_script.comments.tags import CommentParameter, CommentValue, has_comment_tags

BASH = shutil.which("bash") or "bash"
ARGC_LINE = 'eval "$(argc --argc-eval "$0" "$@")"'
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


def tool_of(source: str) -> CommentTool:
    (tool,) = tools_of(source)
    return tool


def tools_of(source: str) -> tuple[CommentTool, ...]:
    script = parse_comments(source)
    assert isinstance(script, CommentScript), script
    return script.tools


def declared(line: str, functions: str = "_fn() { :; }") -> CommentParameter:
    """The only parameter of a script with one comment line."""
    (parameter,) = tool_of(f"# {line}\n{functions}\nmain() {{ :; }}\n").parameters
    return parameter


def faults_of(source: str) -> list[tuple[int, str]]:
    faults = parse_comments(source)
    assert isinstance(faults, tuple), faults
    assert all(fault.hint for fault in faults)
    return [(fault.line, fault.message) for fault in faults]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


class Desk:
    """Writes a script and calls it as the tool would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self,
        source: str,
        arguments: dict | None = None,
        *,
        env: dict | None = None,
        stdin: str = "",
        tool: CommentTool | None = None,
        withheld: tuple[str, ...] = (),
    ) -> Ran:
        file = self.folder / "my tool's.sh"
        file.write_text(source, encoding="utf-8")
        completed = subprocess.run(
            program_argv(BASH, file, tool or tool_of(source), arguments or {}, withheld),
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **COMMENT_ENVIRONMENT, **(env or {})},
            input=stdin.encode(),
            capture_output=True,
            timeout=30,
            check=False,
        )
        return Ran(completed.returncode, completed.stdout.decode(), completed.stderr.decode())


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.mark.parametrize(
    ("source", "declares"),
    [
        ("#!/bin/bash\n# @describe Say hello\n", True),
        ("##@option --name\n", True),
        ("# @flag --loud\r\nmain() { :; }\r\n", True),
        ("# @arg path!\n", True),
        ("# @cmd\nrun() { :; }\n", True),
        ("# @arg $1 string  a helper's own documentation\n", False),
        ("# @env NAME\n# @meta version 1\n", False),
        ("# @described elsewhere\n", False),
        ("  # @option --name\n", False),
        ("echo '# @option --name'\n", False),
    ],
)
def test_a_script_declares_itself_with_tags_at_the_start_of_comment_lines(source, declares):
    assert has_comment_tags(source) is declares


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("@option --name", {"name": "name", "form": "option", "flag": "--name"}),
        ("@option -n --name  Who", {"flag": "--name", "description": "Who"}),
        ("@option -n", {"name": "n", "flag": "-n"}),
        ("@option -name", {"name": "name", "flag": "-name"}),
        ("@option +n +name", {"name": "plus_name", "flag": "+name"}),
        ("@option --dry-run.now", {"name": "dry_run_now", "flag": "--dry-run.now"}),
        ("@option --name!", {"required": True}),
        ("@option --name*", {"multiple": True, "required": False, "is_list": True}),
        ("@option --name+ <V> Some", {"multiple": True, "required": True, "notations": ("V",), "description": "Some"}),
        ("@option --name*,", {"multiple": True, "separator": ","}),
        ("@option --name+:[a|b]", {"required": True, "separator": ":", "value": CommentValue(choices=("a", "b"))}),
        ("@option --name~", {"takes_rest": True, "is_list": True, "multiple": False}),
        ("@option --name=a Who", {"value": CommentValue(default="a"), "description": "Who"}),
        ("@option --name=", {"value": CommentValue(default="")}),
        ('@option --name="a b" Who', {"value": CommentValue(default="a b"), "description": "Who"}),
        ("@option --name=`_fn` Who", {"value": CommentValue(default_function="_fn"), "description": "Who"}),
        ("@option --name[a|b c]", {"value": CommentValue(choices=("a", "b c"))}),
        ("@option --name[=a|b]", {"value": CommentValue(choices=("a", "b"), default="a")}),
        ("@option --name![=a|b]", {"required": False}),
        ("@option --name[\"a|b\"|'c]d'] x", {"value": CommentValue(choices=("a|b", "c]d")), "description": "x"}),
        ("@option --name[it's|b]", {"value": CommentValue(choices=("it's", "b"))}),
        ("@option --name[`_fn`]", {"value": CommentValue(choice_function="_fn")}),
        ("@option --name*,[?`_fn`]", {"value": CommentValue(choice_function="_fn", choices_checked=False)}),
        ("@option --name <FILE>   Where", {"notations": ("FILE",), "is_list": False, "description": "Where"}),
        ("@option --name <FILE> <FILE> Two", {"notations": ("FILE", "FILE"), "is_list": True, "description": "Two"}),
        ("@option --name <CMD> <FILE+>", {"notations": ("CMD", "FILE+"), "is_list": True}),
        ("@option --name <<a b>>", {"notations": ("<a b>",)}),
        ("@option --my-name $$ Who", {"env": "MY_NAME", "description": "Who"}),
        ("@option --name! $WHO <TEXT> Who", {"env": "WHO", "notations": ("TEXT",), "required": True}),
        ("@option --name $5 a month", {"env": None, "description": "$5 a month"}),
        ("@option --name:[a|b]", {"name": "name", "flag": "--name", "assigned": True}),
        ("@flag --loud", {"form": "flag", "flag": "--loud", "multiple": False, "is_list": False}),
        ("@flag -v --verbose* $$ How much", {"multiple": True, "env": "VERBOSE", "description": "How much"}),
        ("@flag -l Loud", {"name": "l", "flag": "-l", "description": "Loud"}),
        ("@arg path", {"form": "arg", "flag": "", "name": "path"}),
        ("@arg my-path! <PATH> <more>", {"name": "my_path", "notations": ("PATH",), "description": "<more>"}),
        ("@arg words~ All", {"takes_rest": True, "is_list": True, "description": "All"}),
        ("@arg words+[a|b]", {"multiple": True, "required": True, "value": CommentValue(choices=("a", "b"))}),
        ("@arg path=`_fn`", {"value": CommentValue(default_function="_fn")}),
    ],
)
def test_a_line_declares_a_parameter(line, expected):
    parameter = declared(line)
    assert {key: getattr(parameter, key) for key in expected} == expected
    assert parameter.line == 1


@pytest.mark.parametrize(
    ("line", "schema"),
    [
        ("@option --a", {"type": "string"}),
        ("@option --a <TEXT> Text", {"type": "string", "description": "Text"}),
        ("@option --a <INT>", {"type": "integer"}),
        ("@option --a <num>", {"type": "number"}),
        ("@option --a=3 <INT>", {"type": "integer", "default": 3}),
        ("@option --a=1.0 <NUM>", {"type": "number", "default": 1.0}),
        ("@option --a=auto <INT>", {"type": "integer"}),
        ("@option --a[1|2] <INT>", {"type": "integer", "enum": [1, 2]}),
        ("@option --a[01|2] <INT>", {"type": "string", "enum": ["01", "2"]}),
        ("@option --a[=x|y]", {"type": "string", "enum": ["x", "y"], "default": "x"}),
        ("@option --a=x $$", {"type": "string"}),
        ("@option --a*", {"type": "array", "items": {"type": "string"}}),
        ("@option --a+ <INT>", {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        ("@option --a*[=x|y]", {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": ["x"]}),
        ("@option --a <F> <F>", {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}),
        ("@option --a <F> <F?>", {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        ("@option --a <INT> <F+>", {"type": "array", "items": {"type": "string"}, "minItems": 2}),
        ("@option --a <INT*>", {"type": "array", "items": {"type": "integer"}, "minItems": 0}),
        ("@option --a <INT?>", {"type": "integer"}),
        ("@option --a~", {"type": "array", "items": {"type": "string"}}),
        ("@option --a[`_fn`]", {"type": "string"}),
        ("@flag --a Do it", {"type": "boolean", "description": "Do it"}),
        ("@flag --a*", {"type": "integer", "minimum": 0, "maximum": 99}),
        ("@arg a! <INT>", {"type": "integer"}),
        ("@arg a*", {"type": "array", "items": {"type": "string"}}),
    ],
)
def test_a_line_becomes_a_property(line, schema):
    tool = tool_of(f"# {line}\n_fn() {{ :; }}\nmain() {{ :; }}\n")
    assert parameters_schema(tool)["properties"] == {"a": schema}
    jsonschema.Draft202012Validator.check_schema(parameters_schema(tool))


SHAPES = """#!/usr/bin/env bash
set -e

# @describe Try every shape of a property.
#
# The text goes on here,
#   keeps its indent, and may speak of @option.
# \\@me too

# @option --text!                A text
# @option --kind![small|large]   One of two
# @option --note                 Perhaps a text
# @flag --loud                   Yes or no
# @option --count! <INT>         A whole number
# @option --ratio! <NUM>         Any number
# @option --tag+ <VALUE>         Some texts
# @option --other-tag*           Perhaps some
#  texts
# @meta version 1.2.3
# @meta author someone <a@example.org>
# @author someone
# @env LLM_OUTPUT=/dev/stdout    Where to

main() {
    printf '%s|' "$argc_text" "$argc_kind" "${argc_note-unset}" "${argc_loud-unset}" "$argc_count" "$argc_ratio" \\
        "${argc_tag[@]}" "${#argc_other_tag[@]}" >> "$LLM_OUTPUT"
}

eval "$(argc --argc-eval "$0" "$@")"
"""


def test_a_whole_script_becomes_a_tool():
    tool = tool_of(SHAPES)
    assert tool.description.splitlines() == [
        "Try every shape of a property.",
        "",
        "The text goes on here,",
        "  keeps its indent, and may speak of @option.",
        "@me too",
    ]
    assert tool.version == "1.2.3"
    assert tool.function == "main"
    assert [variable.name for variable in tool.env] == ["LLM_OUTPUT"]
    schema = parameters_schema(tool)
    names = ["text", "kind", "note", "loud", "count", "ratio", "tag", "other_tag"]
    assert list(schema["properties"]) == names
    assert schema["required"] == ["text", "kind", "count", "ratio", "tag"]
    assert schema["properties"]["other_tag"]["description"] == "Perhaps some\n texts"


def test_line_ends_of_another_system_are_read_over():
    crlf, lf = tool_of(SHAPES.replace("\n", "\r\n")), tool_of(SHAPES)
    assert crlf == lf


def test_what_the_environment_may_give_is_not_required_of_the_model():
    tool = tool_of("# @option --key! $API_KEY\n# @option --name!\nmain() { :; }\n")
    assert parameters_schema(tool)["required"] == ["name"]


def test_unknown_tags_and_directives_of_checkers_belong_to_no_text():
    source = "# @option --name Who\n# shellcheck disable=SC2154\nmain() { :; }\n# @todo more\n"
    assert tool_of(source).parameters[0].description == "Who"


def test_text_of_a_here_document_declares_nothing():
    source = (
        "# @flag --loud\nusage=$((1 << 2))\ncat <<-'END' <<B\n# @flag --fake\n\tEND\n# @flag --b\nB\nmain() { :; }\n"
    )
    assert [parameter.name for parameter in tool_of(source).parameters] == ["loud"]


def test_meta_lines_name_tools_and_a_file_of_variables():
    tool = tool_of(
        "# @describe x\n# @meta require-tools curl, jq\n# @meta dotenv\n# @meta combine-shorts\nmain() { :; }"
    )
    assert (tool.required_tools, tool.dotenv) == (("curl", "jq"), ".env")


def test_the_only_command_is_the_tool():
    tool = tool_of("# @describe A box\n# @flag --loud\n# @cmd Open it\n# @arg lid!\nfunction open_ {\n :\n}\n")
    assert (tool.description, tool.function, tool.command) == ("Open it", "open_", ("open",))
    assert [parameter.name for parameter in tool.parameters] == ["loud", "lid"]


COMMANDS = f"""# @describe A list of things to do
# @meta version 1.2
# @meta require-tools cat
# @env PLACE=here
# @option --file=todo.txt Where they are kept

# @cmd Add one
# @alias a
# @option --text! What to do
# @option --level[high|low|middle]
add_todo() {{ echo "add $argc_text in $argc_file at $PLACE ($argc__fn)"; }}

# @cmd
# @meta no-inherit-env
# @arg number! <INT>
del-todo_() {{ echo "delete $1 of ${{PLACE-nowhere}}"; }}

# @cmd Those that hold others
show() {{ :; }}

# @cmd Show all
show::all() {{ echo "all ${{argc__args[*]}}"; }}

# @cmd Not for others
_private() {{ :; }}

helper() {{ :; }}

{ARGC_LINE}
"""


def test_each_of_several_commands_is_a_tool():
    first, second, third = tools_of(COMMANDS)
    assert [tool_name(tool.command) for tool in (first, second, third)] == ["add_todo", "del_todo", "show_all"]
    assert [tool.function for tool in (first, second, third)] == ["add_todo", "del-todo_", "show::all"]
    assert [tool.description for tool in (first, second, third)] == ["Add one", "A list of things to do", "Show all"]
    schema = parameters_schema(first)
    assert (list(schema["properties"]), schema["required"]) == (["file", "text", "level"], ["text"])
    assert schema["properties"]["level"]["enum"] == ["high", "low", "middle"]
    assert list(parameters_schema(second)["properties"]) == ["file", "number"]
    assert [[variable.name for variable in tool.env] for tool in (first, second)] == [["PLACE"], []]
    assert {tool.required_tools for tool in (first, second, third)} == {("cat",)}
    assert {tool.version for tool in (first, second, third)} == {"1.2"}


def test_each_command_is_called_by_itself(desk):
    first, second, third = tools_of(COMMANDS)
    assert desk.run(COMMANDS, {"text": "sleep"}, tool=first).out == "add sleep in todo.txt at here (add_todo)\n"
    assert desk.run(COMMANDS, {"number": 3}, tool=second).out == "delete 3 of nowhere\n"
    assert desk.run(COMMANDS, tool=third).out == "all my tool's show all\n"
    bare = COMMANDS.replace(ARGC_LINE, "")
    assert desk.run(bare, {"number": 3}, tool=tools_of(bare)[1]).out == "delete 3 of nowhere\n"


def test_a_command_may_be_described_by_a_tag_of_its_own():
    first, second = tools_of("# @describe All\n# @cmd\n# @describe One\na() { :; }\n# @cmd\nb() { :; }\n")
    assert (first.description, second.description) == ("One", "All")


def test_the_line_of_argc_may_stand_without_quotes(desk):
    functions = 'main() { echo "<$argc_name>"; }\n_argc_after() { echo after; }\n'
    source = f'# @option --name!\n{functions}eval $(argc --argc-eval "$0" "$@")\n'
    assert desk.run(source, {"name": "a  b"}).out == "<a  b>\nafter\n"


def test_a_script_without_main_works_at_its_top_level():
    tool = tool_of(f"# @flag --loud\n{ARGC_LINE}\necho $argc_loud\n")
    assert (tool.function, tool.has_argc_line) == (None, True)


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("# @option\nmain() { :; }", [(1, "@option says nothing")]),
        ("# @option name\nmain() { :; }", [(1, "'@option name' is not understood")]),
        ("# @option --a?\n# @arg a{}\n# @env *\nmain() { :; }", [(1, "--a?"), (2, "a{}"), (3, "@env *")]),
        ("# @option --a!=b\nmain() { :; }", [(1, "not understood")]),
        ("# @option ---a\nmain() { :; }", [(1, "not understood")]),
        ("# @env A*\nmain() { :; }", [(1, "A can only hold a single value")]),
        ("# @option --_args\nmain() { :; }", [(1, "argc__args is not free")]),
        ("# @flag -D-\nmain() { :; }", [(1, "'D-' is only the beginning")]),
        ("# @option -D-=x\nmain() { :; }", [(1, "has no value of its own")]),
        ("# @option -D- $$\nmain() { :; }", [(1, "has no value of its own")]),
        ("# @option --3d $$\nmain() { :; }", [(1, "'3D' cannot be the name")]),
        ("# @option --a-b\n# @flag --a.b\nmain() { :; }", [(2, "'a_b' is declared twice, first at line 1")]),
        ("# @option --a=`_x`\n# @arg b[`_y`]\nmain() { :; }", [(1, "function _x"), (2, "function _y")]),
        ("# @cmd One\na-b() { :; }\n# @cmd Two\na_b() { :; }", [(3, "called 'a_b', the first at line 1")]),
        ("# @cmd One\n# @arg x\n# @flag --x\na() { :; }\n# @cmd Two\n# @arg x\nb() { :; }", [(3, "'x' is declared")]),
        (
            "# @optoin --name\n# @flga --loud\n# @evn KEY\nmain() { :; }\n# @flag --x\n",
            [(1, "@optoin is no tag"), (2, "@flga is no tag"), (3, "@evn is no tag"), (5, "@flag stands below")],
        ),
        (
            "# @flag --a\n# @description Does it\n# @command x\nmain() { :; }",
            [(2, "@description is no tag"), (3, "@command is no tag")],
        ),
        ("# @cmd One\n", [(1, "no function follows @cmd")]),
        ("helper() { :; }\n# @option --a\nmain() { :; }", [(2, "@option stands below a function")]),
        ("# @option --a\nother() { :; }", [(1, "no function main")]),
        ('# @option --a\nmain() { :; }\nmain "$@"\n', [(3, "calls main itself")]),
        ('# @option --a\nmain() { :; }\nif x; then\n  main "$@"\nfi\n', [(4, "calls main itself")]),
        ('# @option --a\nmain() { :; }\n_argc_run "$@"\n', [(3, "calls _argc_run itself")]),
    ],
)
def test_every_fault_is_told_with_its_line(source, faults):
    told = faults_of(source)
    assert [line for line, _ in told] == [line for line, _ in faults]
    for (_, message), (_, part) in zip(told, faults, strict=True):
        assert part in message


def test_a_line_full_of_quotes_is_read_in_no_time():
    choices = '"x"|' * 5000
    assert [line for line, _ in faults_of(f"# @option --a[{choices}\nmain() {{ :; }}")] == [1]


def test_every_shape_reaches_the_script(desk):
    arguments = {"text": "-a 'b' $(c)\n", "kind": "large", "loud": True, "count": 3, "ratio": 0.5, "tag": ["x", "y z"]}
    ran = desk.run(SHAPES, arguments)
    assert ran == Ran(0, "-a 'b' $(c)\n|large|unset|1|3|0.5|x|y z|0|", "")


@pytest.mark.parametrize(
    ("source", "out"),
    [
        (f'# @arg a\nmain() {{ echo main "$1"; }}\n{ARGC_LINE}\n', "main x\n"),
        ('# @arg a\nmain() { echo main "$1"; }\n', "main x\n"),
        (f'# @arg a\n{ARGC_LINE}\necho top "$argc_a"\n', "top x\n"),
        (f'# @cmd\n# @arg a\ndo-it() {{ echo it "$1"; }}\nmain() {{ echo no; }}\n{ARGC_LINE}\n', "it x\n"),
        ('# @cmd\n# @arg a\ntest() { echo test "$1"; }\n', "test x\n"),
        ('# @arg a\nmain() { echo main; }\neval "$(TERM_WIDTH=9 argc --argc-eval "$0" "$@")"\n', "main\n"),
        ('# @arg a\nmain() { echo main; }\ncode=$(argc --argc-eval "$0" "$@")\neval "$code"\n', "main\n"),
    ],
)
def test_the_function_is_called_once_whoever_calls_it(desk, source, out):
    assert desk.run(source, {"a": "x"}) == Ran(0, out, "")


def test_the_beginning_of_a_name_takes_a_mapping(desk):
    source = """set -euo pipefail
# @option -D-! What is set
# @option -L-*[`_levels`] Levels
_levels() { echo low; }
main() { for name in "${!argc_D[@]}"; do printf '%s=%s|' "$name" "${argc_D[$name]}"; done; declare -p argc_L; }
"""
    schema = parameters_schema(tool_of(source))
    values = {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^[^=]+$"}}
    assert schema["properties"] == {
        "D": {**values, "description": "What is set"},
        "L": {**values, "description": "Levels"},
    }
    assert schema["required"] == ["D"]
    given = {"a": "1=2", "$(touch x)": "", "b]": "`id`", "'": "*"}
    ran = desk.run(source, {"D": given, "L": {"of": "none"}})
    assert (ran.code, ran.err) == (0, "")
    *pairs, levels = ran.out.split("|")
    assert dict(pair.split("=", 1) for pair in pairs) == given
    assert levels == 'declare -A argc_L=([of]="none" )\n'
    assert not (desk.folder / "x").exists()
    line = """# @option -D-
# @option --other
main() { printf '%s|' "${argc__args[@]:1}"; }
"""
    assert desk.run(line, {"D": {"a": "1", "b": ""}, "other": "-Dc"}).out == "-Da=1|-Db=|--other=-Dc|"


@pytest.mark.parametrize("entry", [ARGC_LINE, ""])
@settings(deadline=None, max_examples=60)
@given(values=st.lists(TEXT, min_size=1, max_size=5), word=TEXT)
@example(values=["\x01\x7f\x01", "\n", "", " ", "'\"\\`$(exit 3)$((1/0))"], word="--argc-eval")
@example(values=["-n", "--", "*", "~", "a\r\n", "@(x)", "${argc_word}", "!!"], word="=+")
def test_every_text_reaches_the_script_exactly(desk, entry, values, word):
    source = f"""set -euo pipefail
# @option --word!
# @option --values+
# @arg first!
# @arg rest*
main() {{ printf '%s\\0' "$argc_word" "${{argc_values[@]}}" "$argc_first" "${{argc_rest[@]}}" "$@"; }}
{entry}
"""
    ran = desk.run(source, {"word": word, "values": values, "first": word, "rest": values})
    assert ran == Ran(0, "".join(f"{text}\0" for text in [word, *values, word, *values, word, *values]), "")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_values_of_any_length_and_locale_reach_the_script(desk, locale):
    source = '# @option --text!\nmain() { printf %s "$argc_text"; }\n'
    text = "日本€é\n'" * 20_000
    assert desk.run(source, {"text": text}, env={"LC_ALL": locale}) == Ran(0, text, "")
    words = program_argv(BASH, Path("/x.sh"), tool_of(source), {"text": text})
    assert max(len(word.encode()) for word in words) < 131_072


LINE = """# @flag -l --loud
# @flag -v*
# @option --name
# @option --pair <A> <B>
# @option --pairs* <A> <B>
# @option --tag*,
# @option --mode:
# @option +plus
# @option --rest~
# @arg first
# @arg second
# @arg others*
main() { printf '<%s>' "$@"; printf ' [%s]' "${argc__args[@]}"; printf ' %s' "$argc__fn" "${argc__positionals[@]}"; }
"""


@pytest.mark.parametrize(
    ("arguments", "places", "words"),
    [
        ({}, [], []),
        ({"loud": True, "v": 2}, [], ["--loud", "-v", "-v"]),
        ({"loud": False, "v": 0, "name": None}, [], []),
        ({"name": "x y"}, [], ["--name", "x y"]),
        ({"name": ""}, [], ["--name", ""]),
        ({"name": "-x", "plus_plus": "+y"}, [], ["--name=-x", "+plus=+y"]),
        (
            {"pair": ["a", "b"], "pairs": ["a", "b", "c", "d"]},
            [],
            ["--pair", "a", "b", "--pairs", "a", "b", "--pairs", "c", "d"],
        ),
        ({"tag": ["a,b", "c"], "mode": "m"}, [], ["--tag", "a,b", "--tag", "c", "--mode=m"]),
        ({"first": "a", "others": ["c"]}, ["a", "", "c"], ["a", "", "c"]),
        ({"first": "-a"}, ["-a"], ["--", "-a"]),
        ({"rest": ["-r", "s"], "first": "a"}, ["a"], ["a", "--rest", "-r", "s"]),
    ],
)
def test_the_script_sees_the_command_line_that_would_say_the_same(desk, arguments, places, words):
    ran = desk.run(LINE, arguments)
    expected = "".join(f"<{place}>" for place in places) or "<>"
    expected += "".join(f" [{word}]" for word in ["my tool's", *words]) + " main"
    assert ran == Ran(0, expected + "".join(f" {place}" for place in places), "")


def test_at_its_top_level_the_script_has_the_command_line_as_its_parameters(desk):
    source = f'# @option --name\n# @arg a\necho "$# $*"\n{ARGC_LINE}\n'
    assert desk.run(source, {"name": "x", "a": "y z"}).out == "3 --name x y z\n"


def test_absent_values_are_unset_whatever_the_environment_holds(desk):
    source = """set -u
# @option --a
# @flag --b
# @option --c*
main() { echo "${argc_a-no}${argc_b-no}${argc_c-no}"; }
"""
    assert desk.run(source, {"b": False}, env={"argc_a": "1", "argc_b": "1", "argc_c": "1"}).out == "nonono\n"


def test_nothing_but_prefixed_names_is_left_in_the_shell(desk):
    probe = "compgen -v; compgen -A function"
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **COMMENT_ENVIRONMENT}
    plain = subprocess.run([BASH, "-c", probe], env=env, capture_output=True, text=True, check=False, timeout=30).stdout
    source = f"""# @option --a=`_fn`
# @arg b[`_ch`]
_fn() {{ echo 1; }}
_ch() {{ {{ {probe}; }} >&2; echo x; }}
main() {{ {probe}; }}
"""
    ran = desk.run(source, {"b": "x"})
    known = {*plain.split(), "_fn", "_ch", "main", "argc", "FUNCNAME", "PIPESTATUS"}
    for names in (ran.out, ran.err):
        extra = set(names.split()) - known
        assert {name for name in extra if not name.startswith(("argc_", "__toolyard_"))} == set()


def test_a_default_is_a_word_or_what_a_function_prints(desk):
    source = """set -euo pipefail
# @option --word="a b"
# @option --kind[=x|y]
# @option --tags*[=p|q]
# @option --who=`_who`
# @arg place=`_place`
name=script
_who() { echo "$name's $argc_word"; }
_place() { echo "at $argc_who"; }
main() { printf '%s|' "$argc_word" "$argc_kind" "${argc_tags[@]}" "$argc_who" "$@"; }
"""
    assert desk.run(source).out == "a b|x|p|script's a b|at script's a b|"
    given_all = {"word": "", "kind": "y", "tags": ["q", "p"], "who": "me", "place": "here"}
    assert desk.run(source, given_all).out == "|y|q|p|me|here|"


def test_a_default_function_that_fails_ends_a_strict_script(desk):
    source = "set -e\n# @option --a=`_fn`\n_fn() { echo no >&2; return 7; }\nmain() { echo main; }\n"
    assert desk.run(source) == Ran(7, "", "no\n")


CHOICES = """# @option --animal[`_animals`]
# @option --free[?`_animals`]
# @arg many*[`_animals`]
_animals() { cat; printf '  cat\\ndog\\tthat barks\\n\\nbig bird \\n'; return 1; }
main() { printf '%s|' "$argc_animal" "$argc_free" "$@"; cat; }
"""


def test_choices_of_a_function_are_checked_unless_it_says_otherwise(desk):
    arguments = {"animal": "dog", "free": "wolf", "many": ["cat", "big bird"]}
    assert desk.run(f"set -e\n{CHOICES}", arguments, stdin="input") == Ran(0, "dog|wolf|cat|big bird|input", "")
    ran = desk.run(CHOICES, {"many": ["cat", "wo'lf"]})
    assert ran == Ran(1, "", "error: 'wo'lf' is no value for many; possible are: cat dog big\\ bird\n")


@pytest.mark.parametrize("before", ["", "set -euo pipefail\nIFS=e\n", "shopt -s nocasematch\nset -f\n"])
def test_a_choice_is_checked_by_its_exact_text(desk, before):
    source = f'{before}# @option --a[one|*] $$\nmain() {{ echo "$argc_a"; }}\n'
    assert desk.run(source, env={"A": "one"}).out == "one\n"
    assert desk.run(source, env={"A": "ONE"}).code == 1
    assert "possible are: one" in desk.run(source, env={"A": "x"}).err


BOUND = """# @flag --loud $$
# @option --key! $API_KEY
# @option --list*: $$
# @option --word=w $$
# @arg place $PLACE
main() { printf '%s|' "${argc_loud-}" "$argc_key" "${argc_list[@]}" "$argc_word" "$@"; }
"""


@pytest.mark.parametrize(
    ("env", "arguments", "out"),
    [
        ({"API_KEY": "k"}, {}, "|k|w|"),
        ({"API_KEY": "k", "LOUD": "true", "LIST": "a b::c", "WORD": "$v", "PLACE": "p"}, {}, "1|k|a b||c|$v|p|"),
        ({"API_KEY": "k", "LOUD": "0"}, {}, "|k|w|"),
        ({"API_KEY": "k", "LOUD": "1"}, {"loud": False, "key": "g", "word": "x", "place": "q"}, "|g|x|q|"),
    ],
)
def test_the_environment_stands_in_for_what_is_not_given(desk, env, arguments, out):
    assert desk.run(BOUND, arguments, env=env) == Ran(0, out, "")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({}, "error: key is required, but not given\n"),
        ({"API_KEY": "k", "LOUD": "yes"}, "error: the environment variable LOUD must be true or false\n"),
    ],
)
def test_what_the_environment_says_wrongly_is_told(desk, env, message):
    assert desk.run(BOUND, env=env) == Ran(1, "", message)


ENVIRONMENT = """set -eu
# @env TOKEN! Required
# @env MODE=fast
# @env HOST=`_host`
# @env LEVEL[=low|high]
# @env COLOUR[`_colours`]
_host() { echo "$TOKEN.example"; }
_colours() { echo red; }
main() { bash -c 'echo "$TOKEN $MODE $HOST $LEVEL ${COLOUR-none}"'; }
"""


@pytest.mark.parametrize(
    ("env", "ran"),
    [
        ({"TOKEN": "t"}, Ran(0, "t fast t.example low none\n", "")),
        (
            {"TOKEN": "t", "MODE": "m", "HOST": "h", "LEVEL": "high", "COLOUR": "red"},
            Ran(0, "t m h high red\n", ""),
        ),
        ({}, Ran(1, "", "error: these environment variables are required, but not set: TOKEN\n")),
        (
            {"TOKEN": "t", "LEVEL": "odd"},
            Ran(1, "", "error: 'odd' is no value for the environment variable LEVEL; possible are: low high\n"),
        ),
        (
            {"TOKEN": "t", "COLOUR": "blue"},
            Ran(1, "", "error: 'blue' is no value for the environment variable COLOUR; possible are: red\n"),
        ),
    ],
)
def test_declared_environment_variables_are_checked_and_exported(desk, env, ran):
    assert desk.run(ENVIRONMENT, env=env) == ran


def test_all_variables_that_are_missing_are_told_at_once_and_those_withheld_as_that(desk):
    variables = "# @env A!\n# @env B_KEY!\n# @env C!\n# @env D!\n"
    source = f"{variables}# @option --e! $E_TOKEN\n# @option --f $F_KEY\nmain() {{ :; }}\n"
    ran = desk.run(source, env={"D": "d"}, withheld=("B_KEY", "D", "E_TOKEN", "F_KEY"))
    assert ran.code == 1
    assert ran.err == (
        "error: these environment variables are required, but not set: A C; these are set, but withheld from tools, "
        "since they look like credentials: B_KEY E_TOKEN (name them in plugin_policy.pass_env)\n"
    )
    ran = desk.run(source, {"e": "given"}, env={"A": "a", "C": "c", "D": "d"}, withheld=("B_KEY", "E_TOKEN"))
    assert "look like credentials: B_KEY (" in ran.err
    assert desk.run(source, {"e": "given"}, env={"A": "a", "B_KEY": "b", "C": "c", "D": "d"}).code == 0


def test_a_file_of_variables_fills_the_gaps_and_is_never_code(desk):
    lines = [
        "# comment",
        "A=1",
        "export B='two words'",
        'C="$(touch hit)"',
        "D=x=y=",
        "PATH=/nowhere",
        "bad name=1",
        "E=z",
    ]
    (desk.folder / "vars").write_text("\n".join(lines), encoding="utf-8")
    source = (
        'set -eu\n# @describe x\n# @meta dotenv vars\nmain() { bash -c \'printf "%s|" "$A" "$B" "$C" "$D" "$E"\'; }\n'
    )
    assert desk.run(source, env={"A": "own"}) == Ran(0, "own|two words|$(touch hit)|x=y=|z|", "")
    assert not (desk.folder / "hit").exists()
    assert (
        desk.run(source.replace("dotenv vars", "dotenv missing"), env=dict.fromkeys("ABCDE", "e")).out == "e|e|e|e|e|"
    )


def test_tools_that_are_missing_are_named(desk):
    source = "# @describe x\n# @meta require-tools bash,no-such-tool,nor-this\nmain() { echo main; }\n"
    assert desk.run(source) == Ran(1, "", "error: these tools are not installed: no-such-tool nor-this\n")
    assert desk.run(source.replace(",no-such-tool,nor-this", "")).out == "main\n"


@pytest.mark.parametrize("entry", [ARGC_LINE, ""])
@pytest.mark.parametrize(
    ("hooks", "ran"),
    [
        ("main() { echo main; return 3; }", Ran(3, "main\n", "")),
        ("main() { echo main; return 3; }\n_argc_after() { echo after $?; }", Ran(0, "main\nafter 3\n", "")),
        ("_argc_before() { echo before $argc_a $#; }\nmain() { echo main; }", Ran(0, "before x 0\nmain\n", "")),
        ("_argc_before() { exit 4; }\nmain() { echo main; }", Ran(4, "", "")),
        ("set -e\nmain() { false; echo main; }\n_argc_after() { echo after; }", Ran(1, "", "")),
        ("trap 'echo bye' EXIT\nmain() { exit 5; }", Ran(5, "bye\n", "")),
        ('set -u\nmain() { echo "$argc_b"; }', None),
        ("main() { kill -TERM $$; }", Ran(-15, "", "")),
        ('main() { read -r line; echo "got $line"; }', Ran(0, "got input\n", "")),
        (
            'main() { [[ ${BASH_SOURCE[0]} == "$0" ]] && cd "$(dirname "${BASH_SOURCE[0]}")" && ls *.sh; }',
            Ran(0, "my tool's.sh\n", ""),
        ),
    ],
)
def test_hooks_and_statuses_are_those_that_argc_would_give(desk, entry, hooks, ran):
    source = f"# @option --a\n# @option --b\n{hooks}\n{entry}\n"
    got = desk.run(source, {"a": "x"}, stdin="input\n")
    if ran is None:
        assert got.code != 0
        assert "argc_b: unbound variable" in got.err
        assert f"{desk.folder}/my tool's.sh: line 4:" in got.err
    else:
        assert got == ran


@pytest.mark.parametrize("entry", [ARGC_LINE, ""])
@pytest.mark.parametrize(
    ("body", "arguments", "env"),
    [
        (SHAPES, {"text": "t", "kind": "small", "count": 1, "ratio": 1.5, "tag": ["a"], "other_tag": ["b"]}, {}),
        (CHOICES, {"animal": "cat", "free": "x", "many": ["dog"]}, {}),
        (BOUND, {}, {"API_KEY": "k", "LOUD": "0", "LIST": "a:b"}),
        (ENVIRONMENT, {}, {"TOKEN": "t", "COLOUR": "red"}),
    ],
)
def test_nothing_of_ours_fails_where_a_script_watches_every_failure(desk, entry, body, arguments, env):
    strict = "set -Eeuo pipefail\ntrap 'echo ERR \"$BASH_COMMAND\" >&2' ERR\n"
    ran = desk.run(f"{strict}{body.replace(ARGC_LINE, '')}{entry}\n", arguments, env=env)
    assert (ran.code, ran.err) == (0, "")


def test_what_follows_the_line_is_run_with_the_status_of_the_function(desk):
    assert desk.run(f"# @describe x\nmain() {{ return 3; }}\n{ARGC_LINE}\necho rest $?\n") == Ran(0, "rest 3\n", "")


def test_a_real_argc_is_only_asked_for_what_we_do_not_do(desk):
    folder = desk.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "argc").write_text('#!/bin/sh\necho "real $*"\n', encoding="utf-8")
    (folder / "argc").chmod(0o755)
    source = f"# @describe x\nmain() {{ argc --argc-version; }}\n{ARGC_LINE}\n"
    assert desk.run(source, env={"PATH": f"{folder}:{os.environ['PATH']}"}) == Ran(0, "real --argc-version\n", "")


def test_functions_of_the_script_may_have_the_names_of_builtins(desk):
    names = ("read", "export", "exit", "set", "shift", "printf", "declare", "test", "echo", "command")
    functions = "\n".join(f"{name}() {{ builtin echo 'wrong {name}'; }}" for name in names)
    source = f"""# @option --a=1
# @env B=2
# @arg c[`_c`]
_c() {{ builtin echo x; }}
{functions}
main() {{ builtin echo "$argc_a$B$1"; }}
{ARGC_LINE}
"""
    assert desk.run(source, {"c": "x"}) == Ran(0, "12x\n", "")


def test_the_program_holds_no_data_and_passes_the_checker():
    tool = tool_of("# @option --name\nmain() { :; }\n")
    argv = program_argv(BASH, Path("/a b.sh"), tool, {"name": "secret"})
    assert argv[:4] == [BASH, "-c", PROGRAM, "/a b.sh"]
    checker = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    allowed = "SC1090,SC2016,SC2034,SC2178"
    checked = subprocess.run(
        [checker, "--shell=bash", f"--exclude={allowed}", "-"],
        input=PROGRAM,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert checked.stdout == ""
