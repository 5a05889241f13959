"""Bash tool files: every line of the contract, on a real bash."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from toolyard.core.events import OutputChunk

pytestmark = pytest.mark.anyio

PRINT_ARGV = r"""printf '<%s>' "$command" "$@" """
PRINT_STDIN = "cat"


def codes(app) -> list[str]:
    return [problem["type"] for problem in app.get_config_errors()]


async def test_B01_a_file_runs_as_bash_file_subcommand_with_plain_words(yard):
    file = yard.tool(run=r"""printf '%s|' "$BASH" "$0" "$command" "$#"; ps -o pgid= -o sid= -p $$; echo "$$"; cat""")
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool("probe", {"value": "a b; $(id) `id` && rm *"})
    bash, name, command, count, rest = result.text.split("|")
    group, session, pid = rest.split()
    assert bash.endswith("bash")
    assert (name, command, count) == (str(file), "run", "2")
    assert group == session == pid, "its own session and process group"
    assert group != str(os.getpgid(0))


async def test_B01_standard_input_is_at_its_end(yard):
    yard.tool(run="read -r line && echo got || echo end; wc -c")
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {})).text == "end\n0\n"


async def test_B02_nothing_of_a_bash_tool_runs_unless_policy_allows_it(yard):
    yard.file("spy.bash", f"echo ran >> {yard.folder}/log")
    for config in (
        '{"plugins": ["bash:spy.bash"]}',
        '{"plugins": [{"bash_tool": {"file": "spy.bash"}}], "plugin_policy": {"allow_bash_tools": false}}',
        '{"plugins": [{"bash_tool": {"file": "spy.bash"}}], "plugin_policy": {"allow_bash_tools": "yes"}}',
    ):
        app = yard.open(yard.file("toolyard.json", config))
        problem = next(p for p in app.get_config_errors() if p["type"] == "bash_tools_not_allowed")
        assert "allow_bash_tools" in problem["hint"]
        assert problem["line"] == 1
        async with app:
            assert (await app.call_tool("spy", {})).failure == "unknown_tool"
    assert yard.log() == []


async def test_B03_the_schema_is_one_object_with_one_function(yard):
    yard.tool(
        args_mode="positional",
        positional=[{"name": "value", "required": True}],
        config_keys=["smtp_user"],
        run=PRINT_ARGV,
    )
    async with yard.app("bash:probe.bash") as app:
        assert app.get_config_errors() == []
        (spec,) = app.tool_specs()
        assert spec.name == "probe"
        assert spec.description == "A probe."
        assert spec.input.schema == {"type": "object", "properties": {"value": {"type": "string"}}}


TOOL = {"type": "function", "function": {"name": "probe", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("bash_schema_exit_status", "echo oops >&2; exit 3"),
        ("bash_schema_timeout", "sleep 60"),
        ("bash_schema_too_large", "head -c 3000000 /dev/zero | tr '\\0' x"),
        ("bash_schema_not_json", "echo '{not json'"),
        ("bash_schema_not_json", ":"),
        ("bash_schema_not_object", "echo '[1]'"),
    ],
)
async def test_B04_each_way_in_which_schema_fails_has_its_code(yard, code, text):
    yard.file("probe.bash", text + "\n")
    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 1}) as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == code
    assert problem["file"] == str(yard.folder / "probe.bash")
    assert problem["line"]
    assert problem["hint"]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("bash_schema_missing_field", {"version": None}),
        ("bash_schema_missing_field", {"id": None}),
        ("bash_schema_missing_field", {"args_mode": None}),
        ("bash_schema_missing_field", {"tools": None}),
        ("bash_schema_args_mode", {"args_mode": "words"}),
        ("bash_schema_tool_count", {"tools": []}),
        ("bash_schema_tool_count", {"tools": [TOOL, TOOL]}),
        ("bash_schema_tool_type", {"tools": [{"type": "custom"}]}),
        ("bash_schema_name_mismatch", {"id": "other"}),
        ("bash_schema_positional_missing", {"args_mode": "positional"}),
        ("bash_schema_positional_missing", {"args_mode": "positional", "positional": ["value"]}),
        ("bash_schema_positional_unknown", {"args_mode": "positional", "positional": [{"name": "nope"}]}),
        ("bash_schema_config_keys", {"config_keys": "smtp_user"}),
        ("bash_schema_config_keys", {"config_keys": [1]}),
        ("bash_schema_parameters", {"function": {"parameters": {"type": "objekt"}}}),
        ("bash_schema_parameters", {"function": {"parameters": []}}),
    ],
)
async def test_B04_each_way_in_which_a_schema_object_is_wrong_has_its_code(yard, code, parts):
    yard.tool(**parts)
    async with yard.app("bash:probe.bash") as app:
        problems = app.get_config_errors()
    assert [problem["type"] for problem in problems] == [code]
    assert problems[0]["file"] == str(yard.folder / "probe.bash")
    assert problems[0]["hint"]


async def test_B04_all_faults_of_a_schema_are_reported_at_once(yard):
    yard.tool(version=None, args_mode="words", config_keys=3)
    async with yard.app("bash:probe.bash") as app:
        assert set(codes(app)) == {
            "bash_schema_missing_field",
            "bash_schema_args_mode",
            "bash_schema_config_keys",
        }


async def test_B05_an_unchanged_file_is_not_run_again_and_a_changed_one_is(yard):
    counting = f'echo "$1" >> {yard.folder}/log\n'
    file = yard.tool(run="echo one")
    file.write_text(counting + file.read_text())
    unkept = {"mode": "off"}  # in a sandbox, `schema` could not write that it ran
    async with yard.app("bash:probe.bash", sandbox=unkept) as app:
        assert (await app.call_tool("probe", {})).text == "one\n"
    async with yard.app("bash:probe.bash", sandbox=unkept) as app:
        assert (await app.call_tool("probe", {})).text == "one\n"
        assert yard.log() == ["schema", "run", "run"], "the second application did not run schema again"
        file.write_text(file.read_text().replace("echo one", "echo two; echo three"))
        assert (await app.call_tool("probe", {})).text == "two\nthree\n", "a change takes effect while running"


async def test_B05_schemas_are_read_side_by_side(yard):
    # Each schema waits until the other has started: one after the other they would never end.
    for me, other in (("a", "b"), ("b", "a")):
        file = yard.tool(me)
        file.write_text(f"touch /tmp/{me}; until [ -e /tmp/{other} ]; do :; done\n" + file.read_text())
    async with yard.app("bash:a.bash", "bash:b.bash", policy={"bash_timeout_seconds": 20}) as app:
        assert [spec.name for spec in app.tool_specs()] == ["a", "b"]


async def test_B06_flags_are_verbatim_names_in_the_schemas_order(yard):
    properties = {
        "z_name": {"type": "string"},
        "a-name": {"type": "integer"},
        "on": {"type": "boolean"},
        "off": {"type": "boolean"},
        "many": {"type": "array", "items": {"type": ["string", "integer", "boolean"]}},
        "thing": {"type": "object"},
        "absent": {"type": "string"},
        "nothing": {"type": ["string", "null"]},
        "ratio": {"type": "number"},
    }
    yard.tool(properties=properties, run=PRINT_ARGV)
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool(
            "probe",
            {
                "ratio": 0.5,
                "nothing": None,
                "thing": {"b": [1, 2], "a": "é"},
                "many": ["x", 1, True],
                "off": False,
                "on": True,
                "a-name": 3,
                "z_name": "v w",
            },
        )
    assert result.text == (
        "<run><--z_name><v w><--a-name><3><--on><--no-off><--many><x><--many><1><--many><true>"
        '<--thing><{"b":[1,2],"a":"é"}><--ratio><0.5>'
    )


PLACES = {
    "args_mode": "positional",
    "properties": {
        "first": {"type": "string"},
        "second": {"type": "integer"},
        "third": {"type": "boolean"},
        "last": {"type": "number"},
    },
    "positional": [
        {"name": "first", "required": True},
        {"name": "second"},
        {"name": "third", "default": False},
        {"name": "last"},
    ],
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"first": "a"}, "<run><a><><false>"),
        ({"first": "a", "last": 1.5}, "<run><a><><false><1.5>"),
        ({"first": "a", "second": 2, "third": True}, "<run><a><2><true>"),
        ({"first": "", "second": 0, "third": False, "last": 1e100}, "<run><><0><false><1e+100>"),
    ],
)
async def test_B07_positional_words_come_in_order_with_defaults_in_the_gaps(yard, arguments, words):
    yard.tool(run=PRINT_ARGV, **PLACES)
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", arguments)).text == words


async def test_B07_a_missing_required_place_is_refused_before_anything_runs(yard):
    yard.tool(run=f"echo ran >> {yard.folder}/log", **PLACES)
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool("probe", {"second": 1})
    assert result.failure == "invalid_arguments"
    assert "first" in result.text
    assert yard.log() == []


@pytest.mark.parametrize(
    ("schema", "given", "seen"),
    [
        ({"type": "integer"}, "3", "3"),
        ({"type": "integer"}, 3.0, "3"),
        ({"type": "number"}, "2.5", "2.5"),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", "[1,2]"),
        ({"type": "object"}, '{"a": 1}', '{"a":1}'),
        ({"type": "string"}, "3", "3"),
    ],
)
async def test_B08_lenient_in(yard, schema, given, seen):
    yard.tool(
        properties={"value": schema}, args_mode="positional", positional=[{"name": "value"}], run=r"""printf %s "$1" """
    )
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {"value": given})).text == seen


async def test_B08_true_as_text_is_a_boolean_and_defaults_are_filled_in_first(yard):
    yard.tool(
        properties={"on": {"type": "boolean"}, "size": {"type": "integer", "default": 7}, "place": {"type": "string"}},
        required=["on", "size", "place"],
        args_mode="positional",
        positional=[{"name": "on"}, {"name": "size"}, {"name": "place", "default": "here"}],
        run=PRINT_ARGV,
    )
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {"on": "true"})).text == "<run><true><7><here>"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"value": "x"}, ["value", "integer", '"x"']),
        ({}, ["value", "missing"]),
        ({"value": 1, "extra": 2}, ["extra"]),
        ("[1]", ["object"]),
        ("{", ["JSON"]),
        ('{"value": 1} x', ["JSON"]),
    ],
)
async def test_B08_what_does_not_fit_says_which_property_and_what_was_expected(yard, arguments, words):
    parameters = {
        "type": "object",
        "properties": {"value": {"type": "integer"}},
        "required": ["value"],
        "additionalProperties": False,
    }
    yard.tool(function={"parameters": parameters}, run=f"echo ran >> {yard.folder}/log")
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool("probe", arguments)
    assert result.failure == "invalid_arguments"
    assert all(word in result.text for word in words), result.text
    assert yard.log() == []


async def test_B09_json_mode_gives_the_object_on_standard_input_to_every_subcommand(yard):
    say = r"""printf '%s ' "$@"; cat"""
    yard.tool(args_mode="json", run=f"{say}; exit 9", cases=f"preview) {say} ;;\n error) {say} ;;")
    async with yard.app("bash:probe.bash") as app:
        arguments = {"value": "ü\n'\"\x00\ud800", "deep": {"a": [1, None, True]}}
        text = '{"value":"\\u00fc\\n\'\\"\\u0000\\ud800","deep":{"a":[1,null,true]}}'
        assert await app.preview_tool("probe", arguments) == f"--args-json {text}"
        assert (await app.call_tool("probe", arguments)).text == f"9 --args-json {text}"
        plain = await app.call_tool("probe", {"value": "ü"})
        assert plain.text == '9 --args-json {"value":"ü"}'


@pytest.mark.parametrize(
    ("case", "shown"),
    [
        ("echo first; echo second", "first"),
        ("printf 'no newline'", "no newline"),
        ("printf '%0300d' 0", "0" * 199 + "…"),
        ("echo text; exit 1", ""),
        ("echo text; sleep 60", ""),
        (":", ""),
    ],
)
async def test_B10_a_preview_is_the_first_line_or_nothing(yard, case, shown):
    yard.tool(cases=f"preview) {case} ;;")
    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 1}) as app:
        assert await app.preview_tool("probe", {}) == shown


async def test_B11_stdout_is_streamed_while_the_tool_runs(yard):
    yard.tool(run=f"echo first; until [ -e {yard.folder}/go ]; do sleep 0.02; done; echo second; echo err >&2")

    def see(event):
        yard.watch(event)
        if isinstance(event, OutputChunk):
            (yard.folder / "go").touch()

    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 30}) as app:
        result = await app.call_tool("probe", {}, on_event=see)
    assert result.text == "first\nsecond\n" == yard.streamed()
    assert yard.streamed("stderr") == ""


async def test_B11_output_is_byte_exact_and_characters_are_never_split(yard):
    # Half of é, a pause until the half was surely read, the other half; then an invalid byte, a NUL and half an €.
    yard.tool(run=r"printf 'a\303'; sleep 0.2; printf '\251b\377\0'; printf '\342\202'")
    async with yard.app("bash:probe.bash") as app:
        result = await app.call_tool("probe", {}, on_event=yard.watch)
    assert yard.streamed() == "aéb�\x00�"
    assert result.text == "aéb��", "a model reads no NUL"


async def test_B11_stderr_is_streamed_only_by_policy_and_never_part_of_success(yard):
    yard.tool(run="echo out; echo err >&2")
    async with yard.app("bash:probe.bash", policy={"bash_stream_stderr": True}) as app:
        result = await app.call_tool("probe", {}, on_event=yard.watch)
    assert result.text == "out\n"
    assert yard.streamed("stderr") == "err\n"


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (r"""printf 'sorry %s' "$*" """, "sorry 5 --value x"),
        ("echo nope; exit 1", None),
        ("echo '  '", None),
        ("sleep 60", None),
    ],
)
async def test_B12_error_makes_the_text_of_a_failure_or_the_default_does(yard, case, text):
    yard.tool(run="echo partial; echo reason >&2; exit 5", cases=f"error) {case} ;;")
    async with yard.app("bash:probe.bash", policy={"bash_error_timeout_seconds": 1}) as app:
        result = await app.call_tool("probe", {"value": "x"})
    assert (result.failure, result.exit_code) == ("exit_code", 5)
    if text is not None:
        assert result.text == text
    else:
        assert all(part in result.text for part in ("5", "reason", "partial"))


async def test_B12_a_time_out_is_124(yard):
    yard.tool(run="echo so far; sleep 60", cases=r"""error) printf '%s' "$1" ;;""")
    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 1}) as app:
        result = await app.call_tool("probe", {})
    assert (result.failure, result.exit_code, result.text) == ("timeout", 124, "124")


async def test_B12_without_error_a_time_out_says_what_was_printed(yard):
    yard.tool(run="echo so far; sleep 60")
    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 1}) as app:
        result = await app.call_tool("probe", {})
    assert all(part in result.text for part in ("124", "1 second", "so far"))


async def test_B13_the_time_limits_are_sixty_and_five_seconds_unless_policy_says_otherwise(yard):
    from toolyard.kinds.bash_script.settings import BashSettings

    assert BashSettings().bash_timeout_seconds == 60
    assert BashSettings().bash_error_timeout_seconds == 5
    yard.tool(run="sleep 60", cases="error) sleep 60 ;; preview) sleep 60 ;;")
    policy = {"bash_timeout_seconds": 0.5, "bash_error_timeout_seconds": 0.5}
    async with asyncio.timeout(30), yard.app("bash:probe.bash", policy=policy) as app:
        assert await app.preview_tool("probe", {}) == ""
        assert (await app.call_tool("probe", {})).failure == "timeout"


ENVIRONMENT = 'env | grep -a "^AGENT_TOOL_" | sort'


async def test_B14_the_environment_of_an_ordinary_call(yard, monkeypatch):
    monkeypatch.setenv("AGENT_TOOL_TIMED_OUT", "1")
    monkeypatch.setenv("AGENT_TOOL_TIMEOUT_SECONDS", "7")
    monkeypatch.setenv("AGENT_TOOL_CONFIG_STRAY", "x")
    yard.tool(
        run=ENVIRONMENT,
        config_keys=["smtp_user", "smtp-port", "useTls", "ratio", "nothing", "list", "object", "absent"],
    )
    config = {"smtp_user": "me", "smtp-port": 25, "useTls": True, "ratio": 0.5}
    async with yard.app("bash:probe.bash", nothing=None, list=[1], object={}, **config) as app:
        result = await app.call_tool("probe", {})
    assert result.text.splitlines() == [
        "AGENT_TOOL_CONFIG_RATIO=0.5",
        "AGENT_TOOL_CONFIG_SMTP_PORT=25",
        "AGENT_TOOL_CONFIG_SMTP_USER=me",
        "AGENT_TOOL_CONFIG_USE_TLS=true",
        f"AGENT_TOOL_PYTHON={sys.executable}",
    ]


async def test_B14_error_after_a_time_out_knows_the_limit_and_other_errors_do_not(yard):
    yard.tool(
        properties={"how": {"type": "string"}},
        run='[ "$2" = slow ] && sleep 60; exit 1',
        cases=f"error) {ENVIRONMENT} | grep TIME || echo none ;;",
    )
    async with yard.app("bash:probe.bash", policy={"bash_timeout_seconds": 1}) as app:
        slow = await app.call_tool("probe", {"how": "slow"})
        quick = await app.call_tool("probe", {"how": "quick"})
    assert slow.text == "AGENT_TOOL_TIMED_OUT=1\nAGENT_TOOL_TIMEOUT_SECONDS=1\n"
    assert quick.text == "none\n"


async def test_B14_values_of_an_agent_win_over_those_of_the_file(yard):
    yard.tool(run='echo "$AGENT_TOOL_CONFIG_WHO"', config_keys=["who"])
    async with yard.app("bash:probe.bash", who="file", agents={"default": {"who": "agent"}}) as app:
        assert (await app.call_tool("probe", {})).text == "agent\n"


async def test_B15_the_working_directory_comes_from_the_configuration(yard):
    place = yard.folder / "some where"
    place.mkdir()
    yard.tool(run="pwd")
    async with yard.app("bash:probe.bash", working_directory=str(place)) as app:
        assert (await app.call_tool("probe", {})).text == f"{place}\n"
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {})).text == f"{Path.cwd()}\n"
    async with yard.app("bash:probe.bash", working_directory=str(place / "gone")) as app:
        result = await app.call_tool("probe", {})
    assert result.failure == "crash"
    assert "working directory" in result.text
    assert str(place / "gone") in result.text


async def test_B16_credentials_reach_a_tool_only_by_name(yard, monkeypatch):
    secrets = {
        "OPENAI_API_KEY": "value-one-123",
        "GITHUB_TOKEN": "value-two-123",
        "MY_PASSWORD": "value-three-123",
        "DATABASE_URL": "postgres://me:secret-four@host/db",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HARMLESS", "yes")
    yard.tool(run="env -0 | tr '\\0' '\\n' | cut -d= -f1; echo $PPID", cases="preview) env | tr '\\n' ' ' ;;")
    config = {"policy": {"pass_env": ["GITHUB_TOKEN"]}}
    app = yard.open(yard.config("bash:probe.bash", **config), config_env={"ONLY_FOR_CONFIG": "hidden"})
    async with app:
        names = (await app.call_tool("probe", {})).text.split()
        shown = await app.preview_tool("probe", {})
    assert "HARMLESS" in names
    assert "GITHUB_TOKEN" in names
    assert not {"OPENAI_API_KEY", "MY_PASSWORD", "DATABASE_URL", "ONLY_FOR_CONFIG"} & set(names)
    assert "value-one" not in shown
    assert "secret-four" not in shown
    end = yard.audit()[-1]
    assert end["envKeys"] == ["GITHUB_TOKEN"]


async def test_B16_config_keys_are_the_way_to_hand_a_tool_a_secret_and_its_value_is_redacted(yard):
    yard.tool(config_keys=["api_key"], run='echo "key=$AGENT_TOOL_CONFIG_API_KEY"; echo ${#AGENT_TOOL_CONFIG_API_KEY}')
    config = yard.config("bash:probe.bash", api_key="${env:THE_KEY}")
    async with yard.open(config, config_env={"THE_KEY": "very-secret-value"}) as app:
        result = await app.call_tool("probe", {}, on_event=yard.watch)
    assert result.text.endswith("\n17\n"), "the tool did receive it"
    assert "very-secret-value" not in result.text + yard.streamed() + str(yard.audit())


async def test_B17_a_repository_lists_its_files_and_one_file_is_one_tool(yard):
    yard.tool("one", file="repo/one.bash")
    yard.tool("two", file="repo/deep er/two.bash")
    yard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "one.bash"}, {"file": "deep er/two.bash"}]}')
    for entry in ({"bash_tool": {"path": "repo"}}, "bash:./repo", f"bash:{yard.folder}/repo"):
        async with yard.app(entry) as app:
            assert app.get_config_errors() == []
            assert [spec.name for spec in app.tool_specs()] == ["one", "two"]


@pytest.mark.parametrize("name", ["../out.bash", "/etc/passwd", "link.bash", "deep/../../out.bash"])
async def test_B17_a_path_outside_the_repository_is_refused(yard, name):
    yard.file("out.bash", f"echo ran >> {yard.folder}/log")
    (yard.folder / "repo").mkdir()
    (yard.folder / "repo" / "link.bash").symlink_to(yard.folder / "out.bash")
    yard.tool("fine", file="repo/fine.bash")
    yard.file("repo/agent_plugin.json", f'{{"bash_tools": [\n{{"file": "{name}"}}, {{"file": "fine.bash"}}]}}')
    async with yard.app("bash:repo") as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["line"]) == ("plugin_outside", 2)
        assert [spec.name for spec in app.tool_specs()] == ["fine"], "one bad entry never stops the others"
    assert yard.log() == []


async def test_B18_a_bash_repository_loaded_with_path_gets_the_right_spelling_as_a_hint(yard):
    yard.tool("one", file="repo/one.bash")
    yard.file("repo/agent_plugin.json", '{"bash_tools": [{"file": "one.bash"}]}')
    async with yard.app("path:./repo") as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == "plugin_path_is_bash"
    assert '"bash:./repo"' in problem["hint"]
    assert problem["line"]
