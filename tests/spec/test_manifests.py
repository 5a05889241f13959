"""`tools.json` manifests: what they may say, which names and paths are allowed, and what happens when they change."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import need
from toolyard.config.document import Document, parse_document
from toolyard.core.problems import Problem
from toolyard.kinds.manifest.entries import (
    Manifest,
    passed_name,
    program_path,
    quoted,
    read_manifest,
    without_repeats,
    wrong_path,
)
from yard import ANYTHING, named

pytestmark = pytest.mark.anyio

MUST_START = "relative command[0] must start with ./tools/bin/"


def read(*entries) -> Manifest:
    document = parse_document(Path("/yard/tools.json"), json.dumps({"tools": entries}))
    assert isinstance(document, Document)
    return read_manifest(document)


def messages(*entries) -> list[str]:
    manifest = read(*entries)
    assert list(manifest.entries) == []
    return [problem.message for problem in manifest.problems]


# What a manifest says of its tools


@pytest.mark.parametrize(
    "schema",
    [
        {
            "required": ["zone"],
            "type": "object",
            "properties": {"zone": {"type": "string", "x-note": [1, 2.50, None]}, "at": {"type": "integer"}},
            "additionalProperties": False,
        },
        {"type": "object"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "title": "Zeit ü"},
        {"properties": {"b": {"type": "string"}, "a": {}}},
        {},
    ],
)
async def test_M01_a_tool_is_exported_with_its_schema_exactly_as_given(yard, schema):
    yard.manifest(named("get_time", description="Tell the time", schema=schema))
    async with yard.app("manifest:tools.json") as app:
        (tool,) = app.tool_specs(format="openai")
        (flat,) = app.tool_specs(format="responses")
    function = {"name": "get_time", "description": "Tell the time", "parameters": schema}
    assert tool == {"type": "function", "function": function}
    assert json.dumps(tool["function"]["parameters"]) == json.dumps(schema), "in the same order, too"
    assert flat["parameters"] == schema


async def test_M01_tools_keep_the_order_of_the_manifest(yard):
    names = ["zebra", "apple", "Mango", "_1", "banana"]
    yard.manifest(*(named(name) for name in names))
    async with yard.app("manifest:tools.json") as app:
        assert [tool["function"]["name"] for tool in app.tool_specs(format="openai")] == names


async def test_M01_what_is_optional_may_be_absent_or_null(yard):
    yard.manifest(
        {"name": "bare", "command": [ANYTHING]},
        named("null", description=None, schema=None, timeoutSec=None, envPassthrough=None),
    )
    async with yard.app("manifest:tools.json") as app:
        assert app.get_config_errors() == []
        for tool, name in zip(app.tool_specs(format="openai"), ["bare", "null"], strict=True):
            anything = {"type": "object", "properties": {}}
            assert tool == {"type": "function", "function": {"name": name, "parameters": anything}}


@pytest.mark.parametrize(
    "plugin",
    ["manifest:tools.json", "manifest:.", {"manifest": {"path": "./tools.json"}}, {"manifest": {"path": "."}}, None],
    ids=str,
)
async def test_M01_every_way_to_name_a_manifest_loads_it(yard, plugin):
    manifest = yard.manifest(named(command=[yard.program("probe", "echo 1")]))
    async with yard.open(yard.config(plugin) if plugin else manifest) as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("probe", {})).text == "1"
        assert app.origin("probe") == str(manifest)


async def test_M01_a_manifest_alone_has_no_placeholders(yard):
    text = "${env:NO_SUCH_NAME} ${file:nothing}"
    manifest = yard.manifest(named(description=text))
    async with yard.open(manifest) as app:
        assert app.get_config_errors() == []
        assert app.tools()[0].spec.description == text


@pytest.mark.parametrize(
    "plugin", ["manifest:", {"manifest": {}}, {"manifest": "tools.json"}, {"manifest": {"path": 1}}]
)
async def test_M01_a_reference_without_a_path_is_a_problem_where_it_stands(yard, plugin):
    async with yard.app(plugin) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["line"]) == ("plugin_spec", 3)
    assert "manifest:./tools.json" in problem["hint"]


# What is wrong with it

FAULTY = {
    "name": "",
    "command": [],
    "envPassthrough": ["1BAD"],
    "description": 1,
    "timeoutSec": 1,
    "schema": {"type": "object"},
}
IN_ORDER = [
    ({}, "tool[1]: name is required"),
    ({"name": "a"}, 'tool[1] "a": duplicate name'),
    ({"name": "b"}, 'tool[1] "b": command must have at least program name'),
    ({"command": ["../x"]}, 'tool[1] "b": envPassthrough[0]: invalid name "1BAD" (must match [A-Z_][A-Z0-9_]*)'),
    ({"envPassthrough": ["OK"]}, f'tool[1] "b": {MUST_START}'),
    ({"command": ["./tools/bin/x"]}, 'tool[1] "b": description must be a string, not an integer'),
]


def test_M02_the_faults_of_an_entry_come_in_their_order():
    entry = FAULTY
    for change, message in IN_ORDER:
        entry = {**entry, **change}
        assert messages(named("a"), entry) == [message]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "tool[0]: name is required"),
        ({"name": ""}, "tool[0]: name is required"),
        ({"name": None, "command": []}, "tool[0]: name is required"),
        ({"name": "get_time"}, 'tool[0] "get_time": command must have at least program name'),
        (named(command=[]), 'tool[0] "probe": command must have at least program name'),
        (named(command=None), 'tool[0] "probe": command must have at least program name'),
        (named(command=["get_time"]), f'tool[0] "probe": {MUST_START}'),
        (
            named(command=["./tools/bin/../hack"]),
            'tool[0] "probe": command[0] escapes ./tools/bin after normalization '
            '(got "./tools/bin/../hack" -> "./tools/hack")',
        ),
        (
            named(envPassthrough=["TZ", "OAI-API-KEY"]),
            'tool[0] "probe": envPassthrough[1]: invalid name "OAI-API-KEY" (must match [A-Z_][A-Z0-9_]*)',
        ),
        (
            named(envPassthrough=["1BAD"]),
            'tool[0] "probe": envPassthrough[0]: invalid name "1BAD" (must match [A-Z_][A-Z0-9_]*)',
        ),
        (
            named(envPassthrough=["  "]),
            'tool[0] "probe": envPassthrough[0]: invalid name "  " (must match [A-Z_][A-Z0-9_]*)',
        ),
        (named(name='say "hi"\\\n', command=[]), r'tool[0] "say \"hi\"\\\n": command must have at least program name'),
        (named(name="zeit für\x01\u200b", command=[]), r'tool[0] "zeit für\x01\u200b": command must have at least '
         "program name"),
        # What the tools of other makers leave to their JSON parser
        (7, "tool[0]: an entry is an object, not an integer"),
        ({"name": 7}, "tool[0]: name must be a string, not an integer"),
        (named(command="ls -l"), 'tool[0] "probe": command must be a list of strings, not a string'),
        (named(command=["/bin/ls", 1]), 'tool[0] "probe": command[1] must be a string, not an integer'),
        (named(command=["/bin/\0"]), r'tool[0] "probe": command[0] holds what no command line can carry: "/bin/\x00"'),
        (named(envPassthrough="TZ"), 'tool[0] "probe": envPassthrough must be a list of strings, not a string'),
        (named(envPassthrough=[None]), 'tool[0] "probe": envPassthrough[0] must be a string, not null'),
        (named(timeoutSec="5"), 'tool[0] "probe": timeoutSec must be an integer, not a string'),
        (named(timeoutSec=2.5), 'tool[0] "probe": timeoutSec must be an integer, not a number'),
        (named(timeoutSec=True), 'tool[0] "probe": timeoutSec must be an integer, not a boolean'),
    ],
)  # fmt: skip
def test_M02_the_message_of_a_fault(entry, message):
    assert messages(entry) == [message]


def test_M02_every_faulty_entry_is_reported_and_none_of_the_manifest_loads():
    assert messages(
        named("good"), named("bad", command=[]), named("good"), {}, named("fine"), named("bad", command=["x"])
    ) == [
        'tool[1] "bad": command must have at least program name',
        'tool[2] "good": duplicate name',
        "tool[3]: name is required",
        'tool[5] "bad": duplicate name',
    ]


async def test_M02_a_faulty_manifest_loads_nothing_and_says_where_and_what_to_do(yard):
    yard.tool("other", run="echo fine")
    yard.manifest(named("good"), named("bad", command=["./tools/bin/ok", "x"], envPassthrough=["A", "A-B"]))
    async with yard.app("manifest:tools.json", "bash:other.bash") as app:
        (problem,) = app.get_config_errors()
        assert (await app.call_tool("other", {})).text == "fine\n"
        assert (await app.call_tool("good", {})).failure == "unknown_tool"
    lines = (yard.folder / "tools.json").read_text().splitlines()
    assert problem["detail"].startswith('tool[1] "bad": envPassthrough[1]: invalid name "A-B"')
    assert (problem["type"], problem["severity"]) == ("manifest_env_name", "error")
    assert '"A-B"' in lines[problem["line"] - 1]
    assert problem["file"] == str(yard.folder / "tools.json")
    assert problem["hint"]


@pytest.mark.parametrize("value", ["{}", "[]", '{"tools": {}}', '{"tools": null}', "7"])
async def test_M02_a_manifest_that_is_none_is_a_problem(yard, value):
    yard.file("tools.json", value)
    async with yard.app("manifest:tools.json") as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["detail"]) == ("manifest_type", "a manifest is an object with 'tools', a list")


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        (b'{"tools": [],}', "manifest_syntax", "trailing comma"),
        (b'{"tools": ["\xff"]}', "manifest_not_text", "not UTF-8"),
        (None, "manifest_unreadable", "No such file"),
    ],
)
async def test_M02_a_manifest_that_cannot_be_read_is_a_problem(yard, text, code, detail):
    if text is not None:
        (yard.folder / "tools.json").write_bytes(text)
    async with yard.app("manifest:tools.json") as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == code
    assert detail in problem["detail"]


def test_M02_an_empty_manifest_is_a_manifest():
    assert (list(read().entries), list(read().problems)) == ([], [])


def test_M02_a_misspelt_field_is_a_warning_and_nothing_more():
    manifest = read(named(timeoutSecs=5))
    (problem,) = manifest.problems
    assert len(manifest.entries) == 1
    assert (problem.severity, problem.message) == ("warning", 'tool[0]: nothing reads the field "timeoutSecs"')
    assert problem.hint == "did you mean 'timeoutSec'?"


def test_M02_a_schema_that_is_none_is_a_fault_of_its_entry():
    (message,) = messages(named(schema={"type": "object", "properties": {"a": {"type": "strnig"}}}))
    assert message.startswith('tool[0] "probe": schema is not a JSON Schema for arguments: properties.a.type')
    (message,) = messages(named(schema=[]))
    assert message == (
        'tool[0] "probe": schema is not a JSON Schema for arguments: a schema is an object, not an array'
    )


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=6))
def test_M02_each_entry_is_judged_by_itself_but_for_its_name(entries):
    manifest = read(*(named(name, command=[ANYTHING] if good else []) for name, good in entries))
    taken, expected = set(), []
    for index, (name, good) in enumerate(entries):
        if name in taken:
            expected.append(f'tool[{index}] "{name}": duplicate name')
        elif not good:
            expected.append(f'tool[{index}] "{name}": command must have at least program name')
        taken.add(name)
    assert [problem.message for problem in manifest.problems] == expected
    assert len(manifest.entries) == (0 if expected else len(entries))


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["name", "description", "schema", "command", "timeoutSec", "envPassthrough", "other"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), ANY_JSON) | ANY_JSON, max_size=3) | ANY_JSON)
def test_M02_whatever_stands_in_a_manifest_gives_entries_or_problems(tools):
    document = parse_document(Path("/yard/tools.json"), json.dumps({"tools": tools}))
    assert isinstance(document, Document)
    manifest = read_manifest(document)
    assert manifest.is_sound or len(manifest.entries) == 0
    if manifest.is_sound:
        assert [entry.name for entry in manifest.entries] == [entry["name"] for entry in tools]


@given(st.text())
def test_M02_quotes_hide_nothing_and_can_be_undone(text):
    shown = quoted(text)
    assert shown.isprintable()
    assert eval(shown) == text


# Where its programs are


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("./tools/bin/x", "./tools/bin/x"),
        ("./tools/bin/x.exe", "./tools/bin/x.exe"),
        (r".\tools\bin\x.exe", "./tools/bin/x.exe"),
        (r"./tools\bin/x", "./tools/bin/x"),
        ("./tools/bin/sub/x", "./tools/bin/sub/x"),
        ("./tools/bin//x", "./tools/bin/x"),
        ("./tools/bin/./x", "./tools/bin/x"),
        ("./tools/bin/../bin/x", "./tools/bin/x"),
        (r"./tools/bin/sub\..\x", "./tools/bin/x"),
        ("./tools/bin/..x", "./tools/bin/..x"),
        ("./tools/bin/ x y ", "./tools/bin/ x y "),
        ("/usr/bin/env", "/usr/bin/env"),
        ("/yard/../x", "/yard/../x"),
    ],
)
def test_M03_a_path_that_may_be_used(written, found):
    assert program_path(written) == found


@pytest.mark.parametrize(
    "written",
    [
        "", "x", "tools/bin/x", r"tools\bin\x", "./x", "./tools/x", "./tools/bin", "./tools/binx", ".//tools/bin/x",
        "../tools/bin/x", "..", r"..\x", "./../tools/bin/x", "./tools/../../x", "./Tools/bin/x", "~/tools/bin/x",
        r"C:\tools\bin\x.exe", "C:/tools/bin/x.exe", r"\tools\bin\x", r"\\host\tools\bin\x", " ./tools/bin/x",
    ],
)  # fmt: skip
def test_M03_a_path_without_the_prefix_is_told_so(written):
    assert program_path(written) == wrong_path(MUST_START)


@pytest.mark.parametrize(
    ("written", "got"),
    [
        ("./tools/bin/../hack", '"./tools/bin/../hack" -> "./tools/hack"'),
        ("./tools/bin/../../hack", '"./tools/bin/../../hack" -> "./hack"'),
        ("./tools/bin/../../../hack", '"./tools/bin/../../../hack" -> "../hack"'),
        ("./tools/bin/a/../../b/../../x", '"./tools/bin/a/../../b/../../x" -> "./x"'),
        ("./tools/bin/", '"./tools/bin/" -> "./tools/bin"'),
        ("./tools/bin/.", '"./tools/bin/." -> "./tools/bin"'),
        ("./tools/bin/../binx", '"./tools/bin/../binx" -> "./tools/binx"'),
        (r".\tools\bin\..\hack", r'".\\tools\\bin\\..\\hack" -> "./tools/hack"'),
        (r"./tools/bin/..\..\..\x", r'"./tools/bin/..\\..\\..\\x" -> "../x"'),
    ],
)
def test_M03_a_path_that_leaves_by_a_detour_is_told_where_it_leads(written, got):
    assert program_path(written) == wrong_path(reason=f"command[0] escapes ./tools/bin after normalization (got {got})")


SEPARATORS = st.sampled_from(["/", "\\", "//"])
STEPS = st.lists(st.tuples(st.sampled_from(["..", ".", "tools", "bin", "x", "a b", "ü", "..."]), SEPARATORS))


@given(st.sampled_from(["", "./", "./tools/bin/", ".\\tools\\bin\\", "./tools\\bin/", "../", "/"]), STEPS)
@example("./tools/bin/", [("..", "/"), ("bin", "\\"), ("x", "/")])
def test_M03_a_path_is_judged_as_if_it_were_walked(start, steps):
    written = start + "".join(step + separator for step, separator in steps)
    if written.startswith("/"):
        assert program_path(written) == written
        return
    walked: list[str] = []
    for step in written.replace("\\", "/").split("/"):
        if step == ".." and walked and walked[-1] != "..":
            walked.pop()
        elif step not in ("", "."):
            walked.append(step)
    found = program_path(written)
    if not written.replace("\\", "/").startswith("./tools/bin/"):
        assert found == wrong_path(MUST_START)
    elif walked[:2] == ["tools", "bin"] and len(walked) > 2:
        assert found == "./" + "/".join(walked)
    else:
        assert isinstance(found, Problem)
        assert found.message.startswith("command[0] escapes ./tools/bin after normalization (got ")
        assert found.message.endswith(f' -> "{"" if walked[:1] == [".."] else "./"}{"/".join(walked) or "."}")')


# Which variables they get


def test_M04_names_are_trimmed_and_upper_cased_and_kept_once():
    (entry,) = read(named(envPassthrough=["oai_api_key", "OAI_API_KEY", " Path ", "TZ", "_x9", "tz\n"])).entries
    assert list(entry.env) == ["OAI_API_KEY", "PATH", "TZ", "_X9"]


LETTERS = string.ascii_uppercase + "_"
SPELLINGS = st.text(alphabet=string.ascii_letters + string.digits + "_- \t=ßıſÄ\0", max_size=5)


@given(st.one_of(SPELLINGS, st.text(max_size=5)))
@example("ß")
@example("ſ")
def test_M04_a_name_is_one_if_it_is_so_letter_by_letter(written):
    name = "".join(char.upper() if char.isascii() else char for char in written.strip())
    is_one = name[:1] in set(LETTERS) and all(char in LETTERS + string.digits for char in name)
    assert passed_name(written) == (name if is_one else None)


@given(st.lists(st.sampled_from("abc")))
def test_M04_of_equal_names_the_first_stays(names):
    expected: list[str] = []
    for name in names:
        if name not in expected:
            expected.append(name)
    assert list(without_repeats(names)) == expected


# A manifest is followed through its changes


async def test_M01_a_changed_manifest_takes_effect_at_the_next_call(yard):
    echo = yard.program("probe", 'echo "$1"')
    yard.manifest(named(command=[echo, "old"]))
    async with yard.open(yard.folder / "tools.json") as app:
        assert (await app.call_tool("probe", {})).text == "old"
        yard.manifest(named(command=[echo, "new"]), named("second", command=[echo, "also"]))
        assert (await app.call_tool("second", {})).text == "also"
        assert (await app.call_tool("probe", {})).text == "new"
        yard.manifest(named("third", command=[echo, "3"]))
        assert (await app.call_tool("probe", {})).failure == "unknown_tool"
        (yard.folder / "tools.json").unlink()
        await app.refresh()


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("broken", ['{"tools": [', '{"tools": [{"name": "probe"}]}', '{"tools": 1}'])
async def test_M02_a_broken_edit_keeps_the_last_good_version_and_is_told_once(yard, alone, broken):
    echo = yard.program("probe", 'echo "$1"')
    manifest = yard.manifest(named(command=[echo, "good"]))
    async with yard.open(manifest if alone else yard.config("manifest:tools.json")) as app:
        manifest.write_text(broken)
        assert (await app.call_tool("probe", {})).text == "good"
        (problem,) = app.get_config_errors()
        assert problem["file"] == str(manifest)
        yard.manifest(named(command=[echo, "mended"]))
        assert (await app.call_tool("probe", {})).text == "mended"
        assert app.get_config_errors() == []


async def test_M02_a_manifest_that_is_removed_takes_its_tools_with_it(yard):
    manifest = yard.manifest(named(command=[yard.program("probe", "echo 1")]))
    async with yard.app("manifest:tools.json") as app:
        manifest.unlink()
        assert (await app.call_tool("probe", {})).failure == "unknown_tool"
        (problem,) = app.get_config_errors()
        assert problem["type"] == "manifest_unreadable"
        yard.manifest(named(command=[yard.program("probe", "echo 2")]))
        assert (await app.call_tool("probe", {})).text == "2"


async def test_M01_manifests_need_no_bash(yard, monkeypatch):
    yard.manifest(named(command=[need("cat")]))
    monkeypatch.setenv("PATH", str(yard.folder / "empty"))
    async with yard.app("manifest:tools.json", "shell:command") as app:
        assert (await app.call_tool("probe", '{"a": 1}')).text == '{"a": 1}'
        assert [problem["type"] for problem in app.get_config_errors()] == ["bash_missing"]
