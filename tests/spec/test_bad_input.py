"""Bad input gets one clear result or problem, and nothing else is disturbed."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest

pytestmark = pytest.mark.anyio

ARGV_LIMIT = 131_072


def alive(marker: str) -> list[str]:
    found = subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True).stdout.split()
    return [pid for pid in found if pid != str(os.getpid())]


@pytest.mark.parametrize(
    "schema",
    [
        "echo nonsense",
        "head -c 100000000 /dev/zero",
        "sleep 60",
        "exit 3",
        "kill -9 $$",
        "setsid sleep 4{marker} >/dev/null 2>&1 & exit 3",
        "(setsid nohup sleep 4{marker} >/dev/null 2>&1 &) ; sleep 60",
        "exec >&-; exit 0",
        "exit 0",
        "printf '\\377\\0{{'",
        "if then fi",
    ],
)
async def test_a_bad_schema_is_one_problem_and_leaves_the_others_and_no_process(yard, schema):
    marker = str(abs(hash(str(yard.folder))))[:9]
    yard.file("bad.bash", schema.format(marker=marker) + "\n")
    yard.tool("good", run="echo fine")
    async with (
        asyncio.timeout(60),
        yard.app("bash:bad.bash", "bash:good.bash", policy={"bash_timeout_seconds": 2}) as app,
    ):
        problems = app.get_config_errors()
        assert [problem["file"] for problem in problems] == [str(yard.folder / "bad.bash")]
        assert (await app.call_tool("good", {})).text == "fine\n"
        assert alive(f"sleep 4{marker}") == []


@pytest.mark.parametrize(
    ("run", "failure", "text"),
    [
        ("exec >&-; exit 0", None, ""),
        ("printf 'a\\0b\\303'", None, "ab�"),
        ("trap '' TERM INT; while :; do sleep 0.1; done", "timeout", "timed out"),
        ("yes", "timeout", "left out"),
        ("kill -SEGV $$", "exit_code", "signal 11"),
        ("sleep 300 & disown; echo done", None, "done\n"),
        ("setsid sleep 300 & sleep 300", "timeout", "timed out"),
    ],
)
async def test_a_badly_behaved_tool_has_one_result(yard, run, failure, text):
    yard.tool(run=run)
    async with asyncio.timeout(60), yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 1}) as app:
        result = await app.call_tool("probe", {})
        assert result.failure == failure
        assert text in result.text
        if failure is None:
            assert result.text == text
        again = await app.call_tool("probe", {})
        assert again.failure == failure, "the next call is not disturbed"


@pytest.mark.parametrize("how", ["missing", "directory", "crlf", "binary", "empty"])
async def test_a_file_that_cannot_be_a_tool_is_one_problem(yard, how):
    path = yard.folder / "bad.bash"
    match how:
        case "directory":
            path.mkdir()
        case "crlf":
            yard.tool("bad")
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        case "binary":
            path.write_bytes(bytes(range(256)) * 20)
        case "empty":
            path.write_text("")
    yard.tool("good", run="echo fine")
    async with yard.app({"bash_tool": {"file": "bad.bash"}}, "bash:good.bash") as app:
        (problem,) = app.get_config_errors()
        assert problem["file"] == str(path if path.exists() else yard.folder / "toolyard.json")
        assert problem["hint"]
        if how == "crlf":
            assert "Windows line ends" in problem["detail"]
        assert (await app.call_tool("good", {})).text == "fine\n"


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "huge.bash"])
async def test_what_would_never_end_is_not_read(yard, path):
    os.mkfifo(yard.folder / "pipe")
    with (yard.folder / "huge.bash").open("wb") as file:
        file.truncate(1 << 40)
    async with asyncio.timeout(20), yard.app({"bash_tool": {"file": path}}) as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == "bash_file_unreadable"


async def test_an_unreadable_file_is_one_problem(yard):
    if os.getuid() == 0:
        # Root reads everything; a file in /proc that even root may not read stands in for one.
        path = "/proc/self/mem"
    else:
        path = str(yard.tool("bad"))
        os.chmod(path, 0)
    async with yard.app({"bash_tool": {"file": path}}) as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == "bash_file_unreadable"
    assert "cannot be read" in problem["detail"]


async def test_a_file_that_is_not_executable_with_quotes_and_spaces_in_its_path_works(yard):
    name = 'it\'s a "tool" $HOME `id`;é.bash'
    file = yard.tool("probe", file=name, run='echo "$0"')
    file.chmod(0o644)
    async with yard.app({"bash_tool": {"file": name}}) as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("probe", {})).text == f"{yard.folder}/{name}\n"


async def test_a_file_deleted_between_load_and_call_is_a_clear_result(yard):
    file = yard.tool(run="echo here")
    yard.tool("good", run="echo fine")
    async with yard.app("bash:probe.bash", "bash:good.bash") as app:
        file.unlink()
        result = await app.call_tool("probe", {})
        assert result.failure == "unknown_tool"
        assert "probe" in result.text
        assert [problem["type"] for problem in app.get_config_errors()] == ["bash_file_missing"]
        assert (await app.call_tool("good", {})).text == "fine\n"
        yard.tool(run="echo back")
        assert (await app.call_tool("probe", {})).text == "back\n"
        assert app.get_config_errors() == []


@pytest.mark.parametrize("mode", ["flags", "positional"])
@pytest.mark.parametrize("value", ["x" * ARGV_LIMIT, "é" * (ARGV_LIMIT // 2)])
async def test_arguments_too_large_for_a_command_line_say_to_use_json_mode(yard, mode, value):
    yard.tool(args_mode=mode, positional=[{"name": "value"}], run=f"echo ran >> {yard.folder}/log")
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool("probe", {"value": value})
    assert result.failure == "invalid_arguments"
    assert "json" in result.text
    assert yard.log() == []


async def test_many_arguments_that_together_are_too_large_are_refused_alike(yard):
    yard.tool(properties={"value": {"type": "array", "items": {"type": "string"}}}, run="echo $#")
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {"value": ["x" * 100_000] * 10})).text == "20\n"
        assert (await app.call_tool("probe", {"value": ["x" * 100_000] * 40})).failure == "invalid_arguments"


async def test_json_mode_takes_what_no_command_line_could(yard):
    yard.tool(args_mode="json", run="wc -c")
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool("probe", {"value": "x" * 10_000_000})
    assert result.text.strip() == str(10_000_000 + len('{"value":""}'))


@pytest.mark.parametrize("mode", ["flags", "positional"])
@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
async def test_what_no_command_line_can_carry_is_refused(yard, mode, value):
    yard.tool(args_mode=mode, positional=[{"name": "value"}], run=f"echo ran >> {yard.folder}/log")
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {"value": value})).failure == "invalid_arguments"
    assert yard.log() == []


@pytest.mark.parametrize("arguments", ["null", "[]", '"text"', "3", "{", "", "{'a': 1}", '{"a": NaN}'])
async def test_arguments_that_are_no_object_run_nothing(yard, arguments):
    yard.tool(required=["value"], run=f"echo ran >> {yard.folder}/log")
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", arguments)).failure == "invalid_arguments"
    assert yard.log() == []


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ("{", "config_syntax"),
        ('{"plugins": ["bash:x.bash",]}', "config_syntax"),
        ("[]", "config_type"),
        ('{"plugins": "bash:x"}', "plugin_spec"),
        ('{"plugins": [3]}', "plugin_spec"),
        ('{"plugins": ["bash:"]}', "plugin_spec"),
        ('{"plugins": [{"bash_tool": {}}]}', "plugin_spec"),
        (
            '{"plugins": [{"bash_tool": {"path": "nowhere"}}], "plugin_policy": {"allow_bash_tools": true}}',
            "plugin_missing",
        ),
        ('{"plugins": ["some.module.Class"]}', "plugin_entry"),
        ('{"plugin_policy": []}', "config_type"),
        ('{"plugin_policy": {"bash_timeout_seconds": -1}}', "config_type"),
        ('{"plugin_policy": {"bash_timeout_seconds": "60"}}', "config_type"),
    ],
)
async def test_a_bad_configuration_is_a_problem_with_its_place(yard, config, code):
    app = yard.open(yard.file("toolyard.json", config))
    (problem,) = app.get_config_errors()
    assert problem["type"] == code
    assert problem["file"]
    assert problem["detail"]
    async with app:
        assert (await app.call_tool("x", {})).failure == "unknown_tool"


async def test_a_name_that_is_no_text_is_an_unknown_tool(yard):
    async with yard.app() as app:
        assert (await app.call_tool("a\ud800", {}, call_id="\udc00")).failure == "unknown_tool"
    assert [line["tool"] for line in yard.audit()] == ["a\ud800"]


async def test_a_missing_configuration_is_a_problem_too(yard):
    (problem,) = yard.open(yard.folder / "none.json").get_config_errors()
    assert problem["type"] == "config_unreadable"
