"""`toolyard call` and `toolyard preview`: the answer on standard output, all else beside it, and what an exit means."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from pathlib import Path

import pytest

from repositories import descriptor, greeting, write
from support import PNG, CommandLine, need
from yard import script

ECHO = "template_bash_echo"


@pytest.fixture(autouse=True)
def users_tools(toolyard: CommandLine) -> None:
    """The user's own configuration: all that is built in, and the template of a tool."""
    plugins = ["bash:${env:BUILTIN_PLUGINS}/template-bash-tool", "bash:${env:BUILTIN_PLUGINS}/bash-read-line-range"]
    config = {"plugins": [*plugins, "shell:session", "shell:command"], "plugin_policy": {"allow_bash_tools": True}}
    folder = toolyard.home / "config" / "toolyard"
    folder.mkdir(parents=True)
    (folder / "toolyard.json").write_text(json.dumps(config))


@pytest.fixture
def probe(toolyard: CommandLine):
    """Loads a tool `probe` that runs a script."""

    def load(run: str, *, policy=None, settings=None, **schema) -> None:
        toolyard.file("probe.bash", script("probe", run=run, **schema))
        toolyard.config("bash:probe.bash", policy=policy, **(settings or {}))

    return load


def test_the_final_text_is_the_whole_standard_output(toolyard: CommandLine):
    ran = toolyard("call", ECHO, '{"value": "hello"}')
    assert (ran.code, ran.out, ran.err) == (0, "hello\n", "")


def test_an_answer_ends_its_line_so_that_nothing_runs_into_it(toolyard: CommandLine, probe):
    probe("printf one")
    assert toolyard.run(["bash", "-c", "toolyard call probe; toolyard call probe"]).out == "one\none\n"
    probe("printf 'one\\n\\n'")
    assert toolyard("call", "probe").out == "one\n\n"
    probe("true")
    assert toolyard("call", "probe").out == ""


def test_a_call_without_arguments_is_a_call_with_none(toolyard: CommandLine, probe):
    probe('echo "$#"')
    assert toolyard("call", "probe").out == "0\n"


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["read_line_range", '{"path": "none", "start_line": 1, "end_line": 2}'], 1, "there is no file 'none'", ""),
        ([ECHO, '{"value": {}}'], 2, "", "- value: expected a string"),
        ([ECHO, '{"value": "a"'], 2, "", "not valid JSON at line 1, column 14"),
        ([ECHO, "[]"], 2, "", "Invalid arguments for"),
        (["template_bash_ech", "{}"], 2, "", "Did you mean 'template_bash_echo'?"),
        (["nonsense", "{}"], 2, "", "Known tools: template_bash_echo, read_line_range, bash, bash_job, shell."),
        ([ECHO, '{"value": "a"}', "--agent", "none"], 2, "", "there is no agent 'none'; known: default"),
        ([ECHO, b'{"value": "\xff"}'], 2, "", "ARGS_JSON is not UTF-8 text"),
    ],
)
def test_the_exit_code_says_who_is_at_fault(toolyard: CommandLine, words, code, out, err):
    ran = toolyard("call", *words)
    assert ran.code == code
    assert out in ran.out
    assert bool(ran.out) == bool(out)
    assert err in ran.err


@pytest.mark.parametrize(
    ("run", "text", "ending"),
    [
        ("echo out; echo problem >&2; exit 7", ["exit code 7", "problem", "out"], {"exit_code": 7}),
        ("kill -9 $$", ["signal 9"], {"exit_code": 137, "signal": 9}),
        ("sleep 300", ["timed out after 1 second "], {"exit_code": 124, "timed_out": True}),
    ],
)
def test_what_a_failed_tool_said_is_the_answer(toolyard: CommandLine, probe, run, text, ending):
    probe(run, policy={"bash_timeout_seconds": 1})
    ran = toolyard("call", "probe")
    assert ran.code == 1
    assert all(part in ran.out for part in text)
    record = toolyard("call", "probe", "--json").json
    assert record.items() >= ending.items()
    assert record["text"].rstrip("\n") == ran.out.rstrip("\n")


def test_json_is_the_whole_result_of_a_success(toolyard: CommandLine):
    ran = toolyard("call", ECHO, '{"value": "hello"}', "--json")
    record = ran.json
    assert ran.code == 0
    assert record.pop("call_id").startswith("call_")
    assert record.pop("duration_ms") > 0
    assert record == {
        "tool": ECHO,
        "ok": True,
        "text": "hello",
        "failure": None,
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "preview": "template_bash_echo value=hello uppercase=false",
        "bytes_out": 5,
        "truncated": None,
        "data": None,
        "attachments": [],
    }


def test_json_is_a_record_also_when_the_call_could_not_begin(toolyard: CommandLine):
    ran = toolyard("call", "nonsense", "--json")
    assert (ran.code, ran.json["ok"], ran.json["failure"]) == (2, False, "unknown_tool")


def test_what_was_left_out_of_a_long_text_is_in_the_record(toolyard: CommandLine, probe):
    probe("seq 1000", settings={"output": {"limit_bytes": 100, "spill": True}})
    record = toolyard("call", "probe", "--json").json
    assert record["bytes_out"] == 3893
    assert record["truncated"]["omitted_bytes"] == 3793
    with open(record["truncated"]["kept_at"]) as whole:
        assert whole.read() == "".join(f"{number}\n" for number in range(1, 1001))


def test_what_is_attached_is_saved_and_told_or_in_the_record(toolyard: CommandLine, probe):
    probe("echo drawn; printf '%s\\n' dot.png 'https://example.org/a A page' >&3")
    (toolyard.folder / "dot.png").write_bytes(PNG)
    ran = toolyard("call", "probe")
    assert (ran.code, ran.out) == (0, "drawn\n")
    saved, link = ran.err.splitlines()
    what, _, path = saved.partition(" saved as ")
    assert (what, link) == (f"[image: image/png, {len(PNG)} bytes]", "[link: A page, https://example.org/a]")
    assert path.endswith(".png")
    assert Path(path).read_bytes() == PNG
    image, page = toolyard("call", "probe", "--json").json["attachments"]
    assert (image["type"], image["media_type"], b64decode(image["data"])) == ("image", "image/png", PNG)
    assert (page["type"], page["uri"], page["name"]) == ("link", "https://example.org/a", "A page")


@pytest.mark.parametrize("stdin", ['{"value": "from a pipe"}', '\ufeff{"value": "from a pipe"}\n'])
def test_arguments_can_come_from_standard_input(toolyard: CommandLine, stdin):
    assert toolyard("call", ECHO, "-", stdin=stdin).out == "from a pipe\n"
    assert (
        toolyard("preview", ECHO, "-", stdin=stdin).out == "template_bash_echo value=from\\ a\\ pipe uppercase=false\n"
    )


def test_standard_input_of_any_size_reaches_a_tool_that_can_take_it(toolyard: CommandLine, probe):
    probe("wc -c", args_mode="json")
    stdin = '{"value": "' + "x" * 8_000_000 + '"}'
    assert toolyard("call", "probe", "-", stdin=stdin).out == "8000012\n"


def test_arguments_too_large_for_a_command_line_are_refused_in_words(toolyard: CommandLine):
    ran = toolyard("call", ECHO, "-", stdin='{"value": "' + "x" * 8_000_000 + '"}')
    assert (ran.code, ran.out) == (2, "")
    assert "too large for a command line" in ran.err


def test_standard_input_that_is_no_text_is_wrong_usage(toolyard: CommandLine):
    ran = toolyard("call", ECHO, "-", stdin=b'{"value": "\xff"}')
    assert (ran.code, ran.out) == (2, "")
    assert "standard input is not UTF-8 text" in ran.err


def test_standard_input_that_is_closed_is_wrong_usage(toolyard: CommandLine):
    ran = toolyard.run(["sh", "-c", f"toolyard call {ECHO} - <&-"])
    assert (ran.code, ran.out) == (2, "")
    assert "standard input is closed" in ran.err


def test_a_person_edits_a_file_without_having_read_it_by_a_call(toolyard: CommandLine):
    toolyard.config("files:all")
    toolyard.file("a.txt", "one\ntwo\n")
    change = json.dumps({"file_path": "a.txt", "old_string": "two", "new_string": "2"})
    shown = toolyard("preview", "edit", change)
    assert (shown.code, shown.out.splitlines()[-2:]) == (0, ["-two", "+2"])
    ran = toolyard("call", "edit", change)
    assert (ran.code, (toolyard.folder / "a.txt").read_text()) == (0, "one\n2\n"), ran
    again = toolyard("call", "edit", change)
    assert (again.code, "was not found" in again.out) == (1, True), again
    whole = toolyard("call", "write", json.dumps({"file_path": "a.txt", "content": "all\n"}))
    assert (whole.code, (toolyard.folder / "a.txt").read_text()) == (0, "all\n"), whole


def test_a_preview_is_one_line_and_nothing_runs(toolyard: CommandLine, probe):
    probe("touch ran", cases="preview) echo 'touch a file'; echo more ;;")
    ran = toolyard("preview", "probe")
    assert (ran.code, ran.out, ran.err) == (0, "touch a file\n", "")
    assert not (toolyard.folder / "ran").exists()


def test_a_tool_without_a_preview_is_said_beside_an_empty_answer(toolyard: CommandLine, probe):
    probe("true")
    ran = toolyard("preview", "probe")
    assert (ran.code, ran.out) == (0, "")
    assert "probe gives no preview of this call" in ran.err


@pytest.mark.parametrize("words", [["nonsense"], [ECHO, "{}"]])
def test_a_preview_of_a_call_that_cannot_begin_is_refused_like_the_call(toolyard: CommandLine, words):
    called, previewed = toolyard("call", *words), toolyard("preview", *words)
    assert (previewed.code, previewed.out, previewed.err) == (called.code, "", called.err)


def test_an_unknown_tool_is_explained_by_what_did_not_load(toolyard: CommandLine):
    toolyard.file("probe.bash", "exit 5\n")
    toolyard.config("bash:probe.bash")
    ran = toolyard("call", "probe")
    assert ran.code == 2
    assert "The tool 'probe' could not be loaded" in ran.err
    assert "probe.bash:1: `schema` exited with status 5" in ran.err


def test_errors_of_the_configuration_are_said_beside_the_answer_but_warnings_are_not(toolyard: CommandLine, probe):
    probe("echo done", settings={"output": {"limit_bytes": "many"}, "note": "${env:NOT_SET_ANYWHERE}"})
    ran = toolyard("call", "probe")
    assert (ran.code, ran.out) == (0, "done\n")
    assert "'output.limit_bytes'" in ran.err
    assert "NOT_SET_ANYWHERE" not in ran.err


def test_every_call_is_recorded_before_and_after(toolyard: CommandLine):
    toolyard("call", ECHO, '{"value": "hello"}')
    assert [(line["event"], line["tool"]) for line in toolyard.audit()] == [("start", ECHO), ("end", ECHO)]


def test_a_record_that_cannot_be_written_is_said(toolyard: CommandLine):
    ran = toolyard("--sessions", "/dev/null/sessions", "call", ECHO, '{"value": "hello"}')
    assert (ran.code, ran.out) == (0, "hello\n")
    assert "/dev/null/sessions/audit: the audit log cannot be written: Not a directory" in ran.err


def test_a_record_that_cannot_be_written_refuses_the_call_when_policy_says_so(toolyard: CommandLine, probe):
    probe("touch ran", settings={"audit": {"on_failure": "stop"}})
    ran = toolyard("--sessions", "/dev/null/sessions", "call", "probe", "--yes")
    assert (ran.code, ran.out) == (3, "")
    assert "The call was not run: the audit log" in ran.err
    assert not (toolyard.folder / "ran").exists()


def test_sessions_in_a_folder_without_permission_are_said(toolyard: CommandLine):
    if os.geteuid() == 0:
        # Without this capability root is a user like any other.
        command = [need("setpriv"), "--bounding-set=-dac_override", "--inh-caps=-dac_override", toolyard.path]
    else:
        command = [toolyard.path]
    closed = toolyard.folder / "closed"
    closed.mkdir(mode=0o500)
    ran = toolyard.run([*command, "--sessions", closed, "call", ECHO, '{"value": "hello"}'])
    assert (ran.code, ran.out) == (0, "hello\n")
    assert "cannot be written: Permission denied" in ran.err


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        ({"LC_ALL": "C"}, "ü → 漢"),
        ({"LC_ALL": "POSIX", "LANG": "C"}, "ü → 漢"),
        ({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "\\xfc \\u2192 \\u6f22"),
        ({"PYTHONIOENCODING": "ascii"}, "\\xfc \\u2192 \\u6f22"),
    ],
)
def test_what_a_locale_cannot_print_is_spelled_out_and_breaks_nothing(toolyard: CommandLine, probe, env, shown):
    probe(r"printf '\303\274 \342\206\222 \346\274\242'")
    ran = toolyard("call", "probe", env=env)
    assert (ran.code, ran.out) == (0, f"{shown}\n")


@pytest.mark.parametrize(
    ("place", "word", "message"),
    [
        ("--config", "none.json", "File 'none.json' does not exist."),
        ("--config", ".", "File '.' is a directory."),
        ("--sessions", "file", "Directory 'file' is a file."),
        ("--workspace", "none", "Directory 'none' does not exist."),
        ("--workspace", "file", "Directory 'file' is a file."),
    ],
)
def test_a_place_that_cannot_be_is_wrong_usage(toolyard: CommandLine, place, word, message):
    toolyard.file("file", "")
    ran = toolyard(place, word, "call", ECHO)
    assert (ran.code, ran.out) == (2, "")
    assert f"Invalid value for '{place}': {message}" in ran.err


NOISY = """
import os
from base64 import b64decode
from pathlib import Path
os.write(1, b"at import")
os.system("echo from a process")
from toolyard.plugins.contract import tool

@tool(freeform=True)
def shout(text: str) -> str:
    "Say it loudly."
    os.system("echo while it runs")
    return text.upper()
"""


def test_only_answers_come_on_standard_output_whatever_a_plugin_writes_there(toolyard: CommandLine):
    toolyard.file("noisy.py", NOISY)
    toolyard.config("path:noisy.py")
    ran = toolyard("call", "shout", '{"input": "hi"}')
    assert (ran.code, ran.out) == (0, "HI\n")
    for words in ("at import", "from a process", "while it runs"):
        assert words in ran.err
    assert [row["name"] for row in toolyard("tools", "--format", "json").json] == ["shout"]


@pytest.mark.parametrize("text", ["hello", '"hello"', "{not json", '{"other": "x"}', ""])
def test_free_text_is_typed_as_it_is(toolyard: CommandLine, text):
    toolyard.file("noisy.py", NOISY)
    toolyard.config("path:noisy.py")
    shown = f"{text.upper()}\n" if text else ""
    assert toolyard("call", "shout", text).out == shown
    assert toolyard("call", "shout", "-", stdin=text).out == shown


@pytest.mark.parametrize(
    "how",
    [
        "import atexit; atexit.register(done)",
        "import threading as t; t.Thread(target=lambda: (t.main_thread().join(), done()), daemon=False).start()",
    ],
)
def test_what_an_author_left_for_the_end_is_done_before_the_process_is_gone(toolyard: CommandLine, how):
    mark = toolyard.home / "done"
    plugin = f"def done(): open({str(mark)!r}, 'w').close()\n{how}\n{greeting('greet', 'hello')}"
    write(toolyard.folder / "plugin", {**descriptor("plugin.greet"), "plugin.py": plugin})
    toolyard.config("path:plugin")
    assert toolyard("call", "greet").out == "hello\n"
    assert mark.exists()
