"""`tool check`: each way in which a tool can be wrong, at its line, and all of them at once."""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import CommandLine
from toolyard.authoring.check import check_tools
from toolyard.core.problems import Problem

pytestmark = pytest.mark.anyio

SOUND = r"""#!/usr/bin/env bash
# The "id", the "tools", "parameters" and "properties" of a schema are mentioned here { to mislead }.
set -euo pipefail

usage() {
  echo "usage"
}

case ${1:-} in
  schema)
    cat <<'JSON'
{
  "id": "probe",
  "version": "1.0",
  "args_mode": "positional",
  "positional": [
    {"name": "name", "required": true},
    {"name": "count", "default": 1}
  ],
  "config_keys": ["token"],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "probe",
        "description": "Probe.",
        "parameters": {
          "type": "object",
          "properties": {
            "name": {"type": "string", "description": "Whom."},
            "count": {"type": "integer", "minimum": 1, "description": "How often."}
          },
          "required": ["name"]
        }
      }
    }
  ]
}
JSON
    ;;
  preview) echo "probe $2" ;;
  run) echo done ;;
  error) echo "failed with $2" ;;
  *) usage; exit 2 ;;
esac
"""
SCHEMA = SOUND.partition("'JSON'\n")[2].partition("\nJSON")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing replaced in the sound tool, and the finding that must come of it."""

    old: str
    new: str
    code: str
    at: str
    """A text on the line where the finding belongs."""
    says: str
    severity: str = "error"
    patience: float = 30
    """How long each subcommand may take; short only where one is meant to take too long."""


def in_schema(key: str, new: str, code: str, says: str, *, at: str = "", severity: str = "error") -> Change:
    """A line of the schema, found by the text it has now."""
    (line,) = (line for line in SCHEMA.splitlines() if key in line)
    return Change(old=line, new=new, code=code, at=at or new.strip() or "{", says=says, severity=severity)


BROKEN = {
    "schema exits": Change(
        old="    cat <<'JSON'",
        new="    echo oh no >&2; exit 5; cat <<'JSON'",
        code="bash_schema_exit_status",
        at="schema)",
        says="`schema` exited with status 5: oh no",
    ),
    "schema hangs": Change(
        old="    cat <<'JSON'",
        new="    sleep 300; cat <<'JSON'",
        code="bash_schema_timeout",
        at="schema)",
        says="did not finish within 0.5 seconds",
        patience=0.5,
    ),
    "schema is silent": Change(
        old="    cat <<'JSON'",
        new="    : <<'JSON'",
        code="bash_schema_not_json",
        at="schema)",
        says="printed nothing",
    ),
    "schema chatters": Change(
        old="    cat <<'JSON'",
        new="    echo loading; cat <<'JSON'",
        code="bash_schema_not_json",
        at="echo loading",
        says="did not print JSON",
    ),
    "trailing comma": in_schema(
        '"required": ["name"]', '          "required": ["name"],', "bash_schema_not_json", "trailing comma before '}'"
    ),
    "missing comma": in_schema(
        '"version"',
        '  "version": "1.0"',
        "bash_schema_not_json",
        "expected ',' or '}'",
        at='"args_mode"',
    ),
    "not an object": Change(
        old=SCHEMA, new="[]", code="bash_schema_not_object", at="schema)", says="printed an array, not an object"
    ),
    "no id": in_schema('"id"', "", "bash_schema_missing_field", "'id' is missing", at="{\n"),
    "no version": in_schema('"version"', "", "bash_schema_missing_field", "'version' is missing", at="{\n"),
    "no args_mode": in_schema('"args_mode"', "", "bash_schema_missing_field", "'args_mode' is missing", at="{\n"),
    "no tools": in_schema('  "tools": [', '  "toolz": [', "bash_schema_missing_field", "'tools' is missing", at="{\n"),
    "empty version": in_schema('"version"', '  "version": "",', "bash_schema_missing_field", "must be a non-empty"),
    "unknown args_mode": in_schema('"args_mode"', '  "args_mode": "flagz",', "bash_schema_args_mode", '"flagz"'),
    "several tools": in_schema('  "tools": [', '  "tools": [{},', "bash_schema_tool_count", "has 2 entries"),
    "wrong type of tool": in_schema(
        '"type": "function"',
        '      "type": "custom",',
        "bash_schema_tool_type",
        "must have type 'function'",
        at="    {\n",
    ),
    "id and name differ": in_schema('"id"', '  "id": "other",', "bash_schema_name_mismatch", '"other"'),
    "no positional": in_schema(
        '"positional": [',
        '  "positionals": [',
        "bash_schema_positional_missing",
        "positional mode needs 'positional'",
        at='"args_mode"',
    ),
    "positional without names": in_schema(
        '"positional": [', '  "positional": ["name",', "bash_schema_positional_missing", "a list of objects"
    ),
    "positional unknown": in_schema(
        '{"name": "count", "default"',
        '    {"name": "counter", "default": 1}',
        "bash_schema_positional_unknown",
        "'counter', which is no property",
    ),
    "config_keys": in_schema(
        '"config_keys"', '  "config_keys": "token",', "bash_schema_config_keys", "list of strings"
    ),
    "parameters missing": in_schema(
        '"parameters": {',
        '        "parameterz": {',
        "bash_schema_parameters",
        "a schema is an object",
        at='"function": {',
    ),
    "parameters no JSON Schema": in_schema(
        '"count": {"type"',
        '            "count": {"type": "int", "description": "How often."}',
        "bash_schema_parameters",
        "properties.count.type",
    ),
    "bash syntax": Change(
        old='  echo "usage"\n}', new='  echo "usage" }', code="bash_syntax", at="esac", says="syntax error"
    ),
    "unclosed quote": Change(
        old="  run) echo done ;;",
        new="  run) echo 'done ;;",
        code="bash_syntax",
        at="run) echo 'done",
        says="unexpected EOF while looking for matching",
    ),
}

HURTING = {
    "no strict mode": Change(
        old="set -euo pipefail\n",
        new="\n",
        code="strict_mode",
        at="#!/usr/bin/env bash",
        says="`set -euo pipefail` is missing",
        severity="warning",
    ),
    "half of strict mode": Change(
        old="set -euo pipefail\n",
        new="set -e\n",
        code="strict_mode",
        at="set -e",
        says="`set -u -o pipefail` is missing",
        severity="warning",
    ),
    "no error": Change(
        old='  error) echo "failed with $2" ;;\n',
        new="",
        code="no_error",
        at="run) echo done",
        says="there is no `error`",
        severity="warning",
    ),
    "slow error": Change(
        old='error) echo "failed with $2"',
        new="error) sleep 300",
        code="error_slow",
        at="error) sleep 300",
        says="`error 1` did not finish",
        severity="warning",
        patience=2,
    ),
    "failing preview": Change(
        old='preview) echo "probe $2"',
        new="preview) echo 'not today' >&2; exit 4",
        code="preview_fails",
        at="preview) echo",
        says="exited with status 4 (not today)",
        severity="warning",
    ),
    "silent preview": Change(
        old='preview) echo "probe $2"',
        new="preview) true",
        code="preview_empty",
        at="preview) true",
        says="prints nothing",
        severity="warning",
    ),
    "long preview": Change(
        old='preview) echo "probe $2"',
        new="preview) seq 3",
        code="preview_lines",
        at="preview) seq 3",
        says="prints 3 lines",
        severity="warning",
    ),
    "tool without description": in_schema(
        '"description": "Probe."',
        "",
        "no_description",
        "the tool has no description",
        at='"function": {',
        severity="warning",
    ),
    "property without description": in_schema(
        '"name": {"type"',
        '            "name": {"type": "string"},',
        "no_description",
        "'name' has no description",
        severity="warning",
    ),
    "object as a place": in_schema(
        '"name": {"type"',
        '            "name": {"type": "object", "description": "Whom."},',
        "list_in_positional",
        "'name' is an object and arrives as JSON text",
        severity="warning",
    ),
    "argument that is never passed": in_schema(
        '{"name": "name", "required"',
        "",
        "not_passed",
        "'name' is not in 'positional'",
        at='"name": {"type"',
        severity="warning",
    ),
    "required but unknown": in_schema(
        '"required": ["name"]',
        '          "required": ["name", "other"]',
        "required_unknown",
        "'other' is required",
        severity="warning",
    ),
    "default that does not fit": in_schema(
        '{"name": "count", "default"',
        '    {"name": "count", "default": 0}',
        "default_does_not_fit",
        "properties.count: the default 0 does not fit",
        severity="warning",
    ),
    "name that model APIs refuse": Change(
        old='"probe"',
        new='"my.probe"',
        code="format_name_characters",
        at='"id": "my.probe"',
        says="names do not contain '.'",
        severity="warning",
    ),
    "list of anything": in_schema(
        '"count": {"type"',
        '            "count": {"type": ["integer", "array"], "description": "How often."}',
        "format_array_items_missing",
        "requires 'items' of every array",
        at='"parameters": {',
        severity="warning",
    ),
}


def write(folder: Path, text: str, name: str = "probe.bash") -> Path:
    file = folder / name
    file.write_text(text, newline="")
    return file


def line_of(text: str, clue: str) -> int:
    """The line of a clue, looked for in the schema first, where everything but the script itself is."""
    start = text.index("schema)") if clue in text[text.index("schema)") :] else 0
    return text.count("\n", 0, text.index(clue, start)) + 1


async def check(path: Path, patience: float = 30) -> list[Problem]:
    return await check_tools(path, timeout=patience)


async def test_a_sound_tool_has_no_findings(tmp_path: Path):
    assert await check(write(tmp_path, SOUND)) == []


@pytest.mark.parametrize("change", [*BROKEN.values(), *HURTING.values()], ids=[*BROKEN, *HURTING])
async def test_a_fault_is_found_at_its_line(tmp_path: Path, change: Change):
    assert change.old in SOUND
    text = SOUND.replace(change.old, change.new)
    all_findings = await check(write(tmp_path, text), change.patience)
    findings = [finding for finding in all_findings if finding.code == change.code]
    assert [(finding.where.line, finding.severity) for finding in findings] == [
        (line_of(text, change.at), change.severity)
    ]
    assert change.says in findings[0].message
    assert findings[0].hint


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
async def test_a_fault_is_not_joined_by_what_only_follows_from_it(tmp_path: Path, change: Change):
    findings = await check(write(tmp_path, SOUND.replace(change.old, change.new)), change.patience)
    assert {finding.code for finding in findings if finding.severity == "error"} == {change.code}


async def test_all_faults_are_reported_at_once_and_in_order(tmp_path: Path):
    together = ["no strict mode", "no version", "unknown args_mode", "config_keys", "id and name differ"]
    text = SOUND
    for name in together:
        change = {**BROKEN, **HURTING}[name]
        text = text.replace(change.old, change.new)
    text = text.replace('"type": "integer"', '"type": "int"')
    findings = await check(write(tmp_path, text))
    assert [finding.code for finding in findings] == [
        "strict_mode",
        "bash_schema_missing_field",
        "bash_schema_name_mismatch",
        "bash_schema_args_mode",
        "bash_schema_config_keys",
        "bash_schema_parameters",
    ]
    lines = [finding.where.line for finding in findings]
    assert lines == sorted(set(lines))


async def test_an_object_in_flags_mode_is_a_warning(tmp_path: Path):
    text = SOUND.replace('"positional",', '"flags",').replace('{"type": "string", "d', '{"type": "object", "d')
    (finding,) = await check(write(tmp_path, text))
    assert (finding.code, finding.where.line) == ("object_in_flags", line_of(text, '"name": {"type"'))
    assert '"args_mode": "json"' in finding.hint


async def test_windows_line_ends_are_one_fault_and_not_what_bash_makes_of_them(tmp_path: Path):
    (finding,) = await check(write(tmp_path, SOUND.replace("\n", "\r\n")))
    assert (finding.code, finding.where.line, finding.severity) == ("line_ends", 1, "error")
    assert finding.hint == f"convert them: sed -i 's/\\r$//' {tmp_path / 'probe.bash'}"


@pytest.mark.parametrize(
    "spelling", ["set -eu -o pipefail", "set -o errexit -o nounset -o pipefail", "set -Eeuo pipefail"]
)
async def test_strict_mode_may_be_spelled_in_any_way(tmp_path: Path, spelling):
    assert await check(write(tmp_path, SOUND.replace("set -euo pipefail", spelling))) == []


async def test_an_error_that_declines_most_codes_is_none_the_worse(tmp_path: Path):
    assert await check(write(tmp_path, SOUND.replace('error) echo "failed with $2"', "error) exit 1"))) == []


async def test_a_schema_in_quotes_is_found_as_well_as_one_in_a_here_document(tmp_path: Path):
    text = SOUND.replace("cat <<'JSON'\n", "printf '%s\\n' '").replace("\nJSON\n", "'\n").replace("1.0", "")
    (finding,) = await check(write(tmp_path, text))
    assert (finding.code, finding.where.line) == ("bash_schema_missing_field", line_of(text, '"version"'))


async def test_a_schema_that_is_nowhere_written_out_is_still_checked(tmp_path: Path):
    schema = json.loads(SCHEMA) | {"args_mode": "flagz"}
    text = (
        f"#!/bin/bash\nset -euo pipefail\ncase $1 in\n  schema) base64 -d <<<{shlex.quote(encoded(schema))} ;;\nesac\n"
    )
    (finding,) = await check(write(tmp_path, text))
    assert (finding.code, finding.where.line) == ("bash_schema_args_mode", 4)


async def test_comments_are_checked_at_their_lines(tmp_path: Path):
    text = "set -euo pipefail\n\n# @option --dry-run <TEXT>\n# @option --dry_run Again.\n# @flag\nmain() { :; }\n"
    findings = await check(write(tmp_path, text))
    assert [(finding.where.line, finding.severity) for finding in findings] == [(4, "error"), (5, "error")]
    findings = await check(write(tmp_path, text.replace("# @option --dry_run Again.\n# @flag\n", "")))
    assert [(finding.where.line, finding.message) for finding in findings] == [
        (1, "the tool has no description, and models choose tools by it"),
        (3, "'dry_run' has no description"),
    ]


async def test_check_never_runs_run_and_leaves_no_file(tmp_path: Path):
    text = SOUND.replace("run) echo done", "run) touch ran").replace(
        'echo "probe $2"', 'touch previewed; echo "probe $2"'
    )
    assert await check(write(tmp_path, text)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["probe.bash"]


async def test_a_folder_is_checked_with_all_the_tools_that_it_lists(tmp_path: Path):
    write(tmp_path, SOUND)
    write(tmp_path, SOUND.replace('"probe"', '"other"').replace('"1.0"', '""'), "other.bash")
    listed = {"bash_tools": [{"file": "probe.bash"}, {"file": "other.bash"}, {"file": "../out.bash"}, {}]}
    (tmp_path / "agent_plugin.json").write_text(json.dumps(listed, indent=1))
    findings = await check(tmp_path)
    assert [(finding.where.file.name, finding.where.line, finding.code) for finding in findings] == [
        ("agent_plugin.json", 10, "plugin_outside"),
        ("agent_plugin.json", 12, "plugin_descriptor"),
        ("other.bash", 14, "bash_schema_missing_field"),
    ]


async def test_a_folder_without_a_descriptor_is_checked_with_all_the_scripts_in_it(tmp_path: Path):
    write(tmp_path, SOUND, "one.bash")
    write(tmp_path, "exit 3\n", "two.sh")
    assert {finding.where.file.name for finding in await check(tmp_path)} == {"two.sh"}


@pytest.mark.parametrize(
    ("descriptor", "line", "code"),
    [
        ('{"bash_tools": [\n{"file": "probe.bash"},\n]}', 2, "config_syntax"),
        ('{"bash_tools": []}', 1, "plugin_descriptor"),
        ('{\n"bash_tools":\n"probe.bash"}', 3, "plugin_descriptor"),
        ('{"bash_tools": [{"file": "missing.bash"}]}', 1, "bash_file_missing"),
        ('{"bash_tools": [{"file": "folder"}]}', 1, "bash_file_is_directory"),
        ('{"bash_tools": [{"file": "loop.bash"}]}', 1, "bash_file_unreadable"),
    ],
)
async def test_a_descriptor_at_fault_is_found_out(tmp_path: Path, descriptor, line, code):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop.bash").symlink_to("loop.bash")
    (tmp_path / "agent_plugin.json").write_text(descriptor)
    (finding,) = await check(tmp_path)
    assert (finding.where.line, finding.code, finding.severity) == (line, code, "error")
    assert finding.hint


@pytest.mark.parametrize("name", ["agent_plugin.json", "notes.txt", "tool.rb"])
async def test_a_file_that_is_no_bash_script_is_not_run_to_find_out(tmp_path: Path, name):
    text = "#!/usr/bin/env ruby\n" if name == "tool.rb" else ""
    (finding,) = await check(write(tmp_path, f"{text}touch {tmp_path}/ran\n", name))
    assert (finding.code, finding.where.line) == ("tool_unknown_kind", 1)
    assert not (tmp_path / "ran").exists()


async def test_a_script_may_have_any_name_when_it_says_that_it_is_one(tmp_path: Path):
    assert await check(write(tmp_path, SOUND, "probe")) == []


def test_the_command_prints_findings_as_file_line_and_problem(toolyard: CommandLine):
    file = toolyard.file("tools/probe.bash", SOUND.replace('"1.0"', '""').replace("set -euo pipefail", ""))
    ran = toolyard("tool", "check", "tools")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "tools/probe.bash:1: warning: `set -euo pipefail` is missing: failures inside the script pass unseen",
        "  hint: begin the script with `set -euo pipefail`",
        "tools/probe.bash:14: error: 'version' must be a non-empty string",
        '  hint: for example "version": "0.1.0"',
    ]
    assert ran.err == "1 error, 1 warning\n"
    record = toolyard("tool", "check", file, "--json").json[1]
    assert (record["file"], record["line"], record["code"]) == (str(file), 14, "bash_schema_missing_field")


def test_warnings_fail_a_check_only_when_it_is_strict(toolyard: CommandLine):
    file = toolyard.file("probe.bash", SOUND.replace("set -euo pipefail", ""))
    assert toolyard("tool", "check", file).code == 0
    assert toolyard("tool", "check", file, "--strict").code == 1


def test_a_folder_with_nothing_to_check_says_how_to_begin(toolyard: CommandLine):
    ran = toolyard("tool", "check")
    assert ran.code == 1
    assert "no tool files here" in ran.out
    assert "toolyard tool new" in ran.out


def test_without_a_bash_a_check_says_what_to_install(toolyard: CommandLine):
    toolyard.file("probe.bash", SOUND)
    ran = toolyard("tool", "check", env={"PATH": "/nonexistent"})
    assert ran.code == 1
    assert "there is no bash on PATH" in ran.out


def encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()
