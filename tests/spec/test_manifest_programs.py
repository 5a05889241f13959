"""The programs of manifests: where they are found, what they are given, and what a model reads of the outcome."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import is_alive, need
from toolyard.kinds.manifest.tool import success_text
from yard import named

pytestmark = pytest.mark.anyio


async def call(yard, arguments="{}", *, name="probe", **fields):
    """Call a tool of a manifest that has only that one."""
    yard.manifest(named(name, **fields))
    async with yard.app("manifest:tools.json") as app:
        assert app.get_config_errors() == []
        return await app.call_tool(name, arguments, on_event=yard.watch)


async def test_M03_a_program_is_found_beside_its_manifest_wherever_the_caller_is(yard, monkeypatch):
    yard.file("below/tools/bin/where", "#!/bin/sh\npwd\n").chmod(0o755)
    yard.manifest(named("where", command=["./tools/bin/where"]), file="below/tools.json")
    elsewhere = yard.folder / "elsewhere"
    (elsewhere / "tools" / "bin").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    async with yard.app("manifest:below/tools.json") as app:
        assert (await app.call_tool("where", {})).text == str(elsewhere)
    assert yard.audit()[0]["argv"] == [str(yard.folder / "below" / "tools" / "bin" / "where")]


async def test_M03_the_working_directory_can_be_configured(yard):
    yard.manifest(named("where", command=[yard.program("where", "pwd")]))
    (yard.folder / "there").mkdir()
    async with yard.app("manifest:tools.json", working_directory=str(yard.folder / "there")) as app:
        assert (await app.call_tool("where", {})).text == str(yard.folder / "there")


@pytest.mark.parametrize("linked", ["tools/bin/probe", "tools/bin", "tools"])
async def test_M03_a_link_that_leaves_the_folder_is_refused_when_it_is_run(yard, linked):
    elsewhere = yard.folder / "elsewhere" / linked
    place = yard.folder / linked
    yard.program("probe", f"echo ran >>{yard.folder}/log")
    elsewhere.parent.mkdir(parents=True)
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    result = await call(yard, command=["./tools/bin/probe"])
    assert result.failure == "denied"
    assert str(yard.folder / "tools" / "bin" / "probe") in json.loads(result.text)["error"]
    assert yard.log() == []
    assert [line["failure"] for line in yard.audit() if line["event"] == "end"] == ["denied"]


async def test_M03_a_link_that_stays_in_the_folder_is_followed(yard):
    yard.program("real/probe", 'echo "${0##*/}"')
    (yard.folder / "tools" / "bin" / "probe").symlink_to("real/probe")
    assert (await call(yard, command=["./tools/bin/probe"])).text == "probe"


async def test_M03_the_folder_of_the_manifest_may_itself_be_reached_by_a_link_of_its_owners(yard, tmp_path_factory):
    yard.program("probe", "echo 1")
    yard.manifest(named(command=["./tools/bin/probe"]))
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(yard.folder)
    async with yard.app(
        f"manifest:{link}/tools.json", sandbox={"mode": "off"}
    ) as app:  # which hides other temporary files
        assert (await app.call_tool("probe", {})).text == "1"


def broken_missing(path):
    path.unlink()
    return f"there is no program {path}"


def broken_mode(path):
    path.chmod(0o644)
    return f"the program {path} may not be executed"


def broken_folder(path):
    path.unlink()
    path.mkdir()
    return f"{path} is not a program"


def broken_link(path):
    path.unlink()
    path.symlink_to("nothing")
    return f"the link {path} leads to nothing"


def broken_interpreter(path):
    path.write_text("#!/no/such/interpreter\n")
    return f"the program {path} could not be started: its interpreter, named in its first line, does not exist"


def broken_format(path):
    path.write_bytes(b"\0\0\0\0nothing that runs")
    return f"the program {path} could not be started: it is neither a binary of this machine nor a script"


BROKEN = [broken_missing, broken_mode, broken_folder, broken_link, broken_interpreter, broken_format]


@pytest.mark.parametrize("breaks", BROKEN)
async def test_M03_a_program_that_cannot_run_is_named_when_it_is_called_and_not_before(yard, breaks):
    yard.manifest(
        named(command=[yard.program("probe", "echo 1")]), named("other", command=[yard.program("other", "echo 2")])
    )
    reason = breaks(yard.folder / "tools" / "bin" / "probe")
    async with yard.app("manifest:tools.json") as app:
        assert app.get_config_errors() == []
        result = await app.call_tool("probe", {})
        assert (await app.call_tool("other", {})).text == "2"
        assert result.failure == "crash"
        assert json.loads(result.text)["error"].startswith(reason)
        shutil.rmtree(yard.folder / "tools" / "bin")
        yard.program("probe", "echo mended")
        assert (await app.call_tool("probe", {})).text == "mended"


async def test_M03_a_working_directory_that_is_not_there_is_named(yard):
    yard.manifest(named())
    async with yard.app("manifest:tools.json", working_directory="nowhere") as app:
        result = await app.call_tool("probe", {})
    assert result.failure == "crash"
    assert "nowhere" in json.loads(result.text)["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": 1}',
        ' {\n\t"b" :  [1.0, 1e3, "\\u00e4ü\\ud83d\\ude00"], "a":"3" } \r\n',
        '{"a":12345678901234567890.1234567890}',
        "{}",
    ],
)
async def test_M05_standard_input_is_the_text_that_the_model_wrote(yard, arguments):
    # A default and a lenient conversion are in the way here; neither reaches the program.
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "c": {"default": 1}}}
    copy = yard.program("probe", f"cat >{yard.folder}/seen")
    assert (await call(yard, arguments, schema=schema, command=[copy])).ok
    assert (yard.folder / "seen").read_bytes() == arguments.encode()


@pytest.mark.parametrize("arguments", ["", " ", "\n\t "])
async def test_M05_nothing_is_an_empty_object(yard, arguments):
    assert (await call(yard, arguments, command=[need("cat")])).text == "{}"


async def test_M05_arguments_that_never_were_text_are_written_as_json(yard):
    result = await call(yard, {"a": "ü\ud800", "b": [1, None, True]}, command=[need("cat")])
    assert result.text == '{"a":"\\u00fc\\ud800","b":[1,null,true]}'


async def test_M05_half_a_character_in_the_text_arrives_as_its_escape(yard):
    assert (await call(yard, '{"a": "ü\ud83d"}', command=[need("cat")])).text == '{"a": "ü\\ud83d"}'


@pytest.mark.parametrize("arguments", ["{", "[]", '{"a": "x"}', '{"b": 1}', '{"a": 1, "a": 2}'])
async def test_M05_arguments_that_do_not_fit_run_nothing(yard, arguments):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    touch = yard.program("probe", f"echo ran >>{yard.folder}/log")
    assert (await call(yard, arguments, schema=schema, command=[touch])).failure == "invalid_arguments"
    assert yard.log() == []


async def test_M05_fixed_words_are_words_and_no_shell_sees_them(yard):
    words = ["", "a b", "$HOME", "*", ";id", "`id`", "-n", "ü", "'\""]
    program = yard.program("probe", "import json, sys; print(json.dumps(sys.argv[1:]))", interpreter=sys.executable)
    assert json.loads((await call(yard, command=[program, *words])).text) == words


async def test_M05_a_program_need_not_read_its_input(yard):
    big = json.dumps({"a": "x" * 1_000_000})
    assert (await call(yard, big, command=[yard.program("probe", "echo 1")])).text == "1"
    assert (await call(yard, big, command=[yard.program("probe", "wc -c")])).text == str(len(big))


# A program that prints its own environment is the proof; bash and Python would add to it.


def environment(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


async def test_M06_the_environment_is_path_and_home_and_what_is_passed_and_set(yard, monkeypatch):
    for name in ("LANG", "TERM", "USER", "SOME_TOKEN", "lower"):
        monkeypatch.setenv(name, "must not be seen")
    monkeypatch.setenv("TZ", "Europe/Helsinki")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    (yard.folder / "tools" / "bin").mkdir(parents=True)
    shutil.copy(need("env"), yard.folder / "tools" / "bin" / "env")
    passed = ["tz", "EMPTY", "UNSET", "Lower", "PATH"]
    result = await call(yard, command=["./tools/bin/env"], envPassthrough=passed)
    expected = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TZ": "Europe/Helsinki", "EMPTY": ""}
    assert environment(result.text) == expected


async def test_M06_nothing_is_invented_where_path_and_home_are_not_set(yard, monkeypatch):
    env, true = need("env"), need("true")
    yard.manifest(named(command=[env]), named("true", command=[true]))
    async with yard.app("manifest:tools.json") as app:
        await app.call_tool("true", {})  # what runs children is there by now and needs no PATH
        monkeypatch.delenv("PATH")
        monkeypatch.delenv("HOME")
        assert (await app.call_tool("probe", {})).text == "{}"


async def test_M06_a_variable_of_the_configuration_alone_reaches_no_program(yard):
    yard.manifest(named(command=[need("env")], envPassthrough=["ONLY_CONFIG", "INSTALLED"]))
    options = {"config_env": {"ONLY_CONFIG": "x"}, "env_overrides": {"INSTALLED": "y"}}
    async with yard.open(yard.folder / "tools.json", **options) as app:
        seen = environment((await app.call_tool("probe", {})).text)
    assert seen.keys() == {"PATH", "HOME", "INSTALLED"}


# What a model reads


@pytest.mark.parametrize(
    ("stdout", "text"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('  {"a":1}\n\n', '{"a":1}'),
        ("", "{}"),
        (" \n\t\n", "{}"),
        (
            '{\n  "a": "x  \\n y",\n  "b": [1, 2.50, 1e400],\n  "ü": {}\n}\n',
            '{"a": "x  \\n y", "b": [1, 2.50, 1e400], "ü": {}}',
        ),
        ('[\r\n"a,b:c",\r\n"\\"\\\\"\r\n]', '["a,b:c", "\\"\\\\"]'),
        ('{"a":\n1,"a":2}', '{"a": 1, "a": 2}'),
        ('"a\u2028b"', '"a\u2028b"'),
        ("not  JSON,\n  as it:is \n", "not  JSON,\n  as it:is"),
        ('{"a": 1}\n{"b": 2}\n', '{"a": 1}\n{"b": 2}'),
        ("[NaN,\n1]", "[NaN,\n1]"),
        ('{"a":\n', '{"a":'),
        ("[\n" * 12_000, ("[\n" * 12_000).strip()),
    ],
)  # fmt: skip
async def test_M07_success_is_standard_output_trimmed_and_json_on_one_line(yard, stdout, text):
    yard.file("out", stdout)
    result = await call(yard, command=[need("cat"), str(yard.folder / "out")])
    assert (result.ok, result.text) == (True, text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES, st.booleans())
def test_M07_json_on_one_line_is_what_json_itself_would_print(value, ascii):
    pretty = json.dumps(value, indent=2, ensure_ascii=ascii)
    plain = json.dumps(value, ensure_ascii=ascii)
    assert success_text(pretty) == (plain if "\n" in pretty else pretty.strip())


async def test_M07_standard_error_is_no_part_of_a_success(yard):
    result = await call(yard, command=[yard.program("probe", "echo careful >&2; echo '{\"a\": 1}'")])
    assert (result.ok, result.text) == (True, '{"a": 1}')


async def test_M07_output_is_passed_on_as_it_comes(yard):
    await call(yard, command=[yard.program("probe", "echo '{'; echo noise >&2; echo ' }'")])
    assert (yard.streamed(), yard.streamed("stderr")) == ("{\n }\n", "")


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo 'no such zone' >&2; exit 3", '{"error": "no such zone"}'),
        ("echo ignored; exit 3", '{"error": "exit status 3"}'),
        ("echo '  ' >&2; exit 1", '{"error": "exit status 1"}'),
        ("kill -9 $$", '{"error": "ended by signal 9"}'),
        ("""printf 'a\\n "b"  ü\\n' >&2; exit 1""", '{"error": "a\\n \\"b\\"  ü"}'),
        ("""echo '{"error":"bad zone", "code": 7}' >&2; exit 1""", '{"error":"bad zone", "code": 7}'),
        ("""printf '{\\n "error": {"a":  "b  c"}\\n}\\n' >&2; exit 1""", '{"error": {"a": "b  c"}}'),
        ("""echo '{"message": "x"}' >&2; exit 1""", '{"error": "{\\"message\\": \\"x\\"}"}'),
        ("""echo log >&2; echo '{"error": "x"}' >&2; exit 1""", '{"error": "log\\n{\\"error\\": \\"x\\"}"}'),
        ("""echo '["error"]' >&2; exit 1""", '{"error": "[\\"error\\"]"}'),
    ],
)
async def test_M08_failure_is_an_object_with_an_error(yard, script, text):
    result = await call(yard, command=[yard.program("probe", script)])
    assert (result.failure, result.text) == ("exit_code", text)


async def test_M08_an_error_is_cut_at_a_thousand_characters_and_never_inside_one(yard):
    yard.file("err", "é€😀" * 1000)
    result = await call(yard, command=[yard.program("probe", f"cat {yard.folder}/err >&2; exit 1")])
    error = json.loads(result.text)["error"]
    assert error == ("é€😀" * 1000)[:1000]
    assert result.truncated.omitted_bytes == 9000 - len(error.encode())


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        (json.dumps({"error": "x" * 2000, "code": 1}), "x" * 1000),
        (json.dumps({"error": ["y" * 2000]}), ('["' + "y" * 2000)[:1000]),
        (json.dumps({"error": "\ud800" * 2000}), "?" * 1000),
    ],
)
async def test_M08_an_error_that_is_too_long_as_it_is_is_cut_too(yard, stderr, error):
    yard.file("err", stderr)
    result = await call(yard, command=[yard.program("probe", f"cat {yard.folder}/err >&2; exit 1")])
    assert json.loads(result.text) == {"error": error}


async def test_M08_a_time_out_is_told_in_these_words(yard):
    forever = yard.program("probe", f"echo out; echo err >&2; echo $$ >{yard.folder}/pid; exec sleep 300")
    result = await call(yard, command=[forever], timeoutSec=5)
    assert (result.failure, result.text) == ("timeout", '{"error": "tool timed out"}')
    assert not is_alive(int((yard.folder / "pid").read_text()))
    end = yard.audit()[-1]
    assert (end["timed_out"], end["exit"]) == (True, 124)


@pytest.mark.parametrize(("given", "seconds"), [(5, 5), (1, 1), (0, 30), (-1, 30), (None, 30), (10**12, 10**9)])
async def test_M09_the_time_limit_of_a_tool(yard, given, seconds):
    yard.manifest(named(timeoutSec=given))
    async with yard.app("manifest:tools.json") as app:
        assert app.tools()[0].spec.timeout == seconds


async def test_M09_the_time_limit_of_tools_that_name_none_can_be_set(yard):
    yard.manifest(named("slow", timeoutSec=90), named("usual"))
    async with yard.app("manifest:tools.json", policy={"manifest_timeout_seconds": 7}) as app:
        assert [tool.spec.timeout for tool in app.tools()] == [90, 7]


async def test_M10_the_audit_has_the_names_of_variables_and_no_values(yard, monkeypatch):
    monkeypatch.setenv("OAI_API_KEY", "sk-123456789012345678")
    monkeypatch.setenv("TZ", "Europe/Helsinki")
    monkeypatch.delenv("UNSET", raising=False)
    command = [yard.program("probe", 'echo "$OAI_API_KEY $TZ"'), "--key", "sk-123456789012345678"]
    result = await call(yard, '{"zone": "secret-zone"}', command=command, envPassthrough=["oai_api_key", "TZ", "UNSET"])
    assert result.text == "[redacted OAI_API_KEY] Europe/Helsinki"
    start, end = yard.audit()
    for line in (start, end):
        assert line["kind"] == "manifest_command"
        assert line["envKeys"] == ["OAI_API_KEY", "TZ"]
        assert line["argv"] == [
            str(yard.folder / "tools" / "bin" / "probe"), "--key", "[redacted OAI_API_KEY]"
        ]  # fmt: skip
        for value in ("sk-1234", "Helsinki", "secret-zone"):
            assert value not in json.dumps(line)
    assert (end["exit"], end["failure"]) == (0, None)


async def test_M10_a_secret_is_redacted_in_an_error_although_it_is_escaped_there(yard, monkeypatch):
    monkeypatch.setenv("SOME_PASSWORD", 'pa"ss\\word')
    program = yard.program("probe", 'printf %s "$SOME_PASSWORD" >&2; exit 1')
    result = await call(yard, command=[program], envPassthrough=["SOME_PASSWORD"])
    assert result.text == '{"error": "[redacted SOME_PASSWORD]"}'
