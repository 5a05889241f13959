"""`toolyard doctor`: is everything there that tools need?"""

from __future__ import annotations

from pathlib import Path

from support import CommandLine, need_backend
from toolyard.core.reach import NAMED_REACHES
from toolyard.core.sandbox_properties import PROPERTIES

PROGRAMS = ["python", "bash", "git", "node", "npm", "uv", "bubblewrap"]


def rows(toolyard: CommandLine, *options: str, **how) -> dict[str, dict[str, str]]:
    return {row["check"]: row for row in toolyard(*options, "doctor", "--json", **how).json}


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_every_row_is_ok_a_warning_or_a_failure_with_what_to_type_next(toolyard: CommandLine):
    need_backend("bubblewrap", "bubblewrap-pids")
    found = rows(toolyard)
    meaning = ["preset", "unasked", "asked about"]
    sandbox = [
        "sandbox",
        *(f"reach {name}" for name in NAMED_REACHES),
        *meaning,
        *(f"sandbox {name}" for name in PROPERTIES),
    ]
    assert [*found] == [*PROGRAMS, *sandbox, "configuration", "plugin cache", "sessions", "audit log", "providers"]
    assert {row["status"] for row in found.values()} <= {"ok", "warning", "failure"}
    assert all(row["hint"] for row in found.values() if row["status"] != "ok")
    assert found["python"]["status"] == found["bash"]["status"] == found["configuration"]["status"] == "ok"
    table = toolyard("doctor")
    assert table.code == 0
    assert [line.split()[0] for line in table.out.splitlines() if "hint:" not in line] == [
        row["status"] for row in found.values()
    ]


def test_three_lines_say_what_is_asked_about_here(toolyard: CommandLine):
    need_backend("bubblewrap", "bubblewrap-pids")
    assert rows(toolyard)["preset"]["detail"].startswith("sandboxed")
    toolyard.config(sandbox={"mode": "off"})
    found = rows(toolyard)
    assert (found["preset"]["status"], found["preset"]["detail"].split(",")[0]) == ("warning", "workspace")
    assert "commands that look" in found["unasked"]["detail"]


def test_what_is_missing_is_a_warning_and_without_bash_it_is_a_failure(toolyard: CommandLine, tmp_path):
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    toolyard.config()
    ran = toolyard("doctor", "--json", env={"PATH": str(nothing)})
    found = {row["check"]: row for row in ran.json}
    assert ran.code == 1
    assert found["bash"]["status"] == "failure"
    assert {found[name]["status"] for name in PROGRAMS[2:]} == {"warning"}
    assert "needed for Node tools" in found["node"]["detail"]
    assert found["node"]["hint"].endswith("nodejs")


def test_a_version_that_is_too_old_or_unknown_is_said(toolyard: CommandLine, tmp_path):
    program(tmp_path / "bin", "node", "echo v16.20.2")
    program(tmp_path / "bin", "git", "exit 3")
    program(tmp_path / "bin", "npm", "echo 11.4.2")
    found = rows(toolyard, env={"PATH": f"{tmp_path / 'bin'}:{toolyard.env['PATH']}"})
    assert (found["node"]["status"], found["git"]["status"], found["npm"]["status"]) == ("warning", "warning", "ok")
    assert "16.20.2" in found["node"]["detail"]
    assert "at least 20" in found["node"]["detail"]
    assert found["npm"]["detail"] == f"11.4.2 ({tmp_path / 'bin' / 'npm'})"


def test_problems_of_the_configuration_are_counted(toolyard: CommandLine):
    toolyard.config("bash:missing.bash", plugin=[])
    ran = toolyard("doctor")
    assert ran.code == 1
    assert "toolyard.json: 1 error, 1 warning" in ran.out
    assert "hint: toolyard config check" in ran.out
    toolyard.file("toolyard.json", "{")
    assert rows(toolyard)["configuration"]["status"] == "failure"


def test_folders_that_cannot_be_written_to_are_failures(toolyard: CommandLine):
    file = toolyard.file("a-file", "")
    toolyard.config(plugin_cache_dir="a-file/cache")
    found = rows(toolyard, "--sessions", str(file / "sessions"))
    for check in ("plugin cache", "sessions", "audit log"):
        assert found[check]["status"] == "failure"
        assert f"{file} is not a folder" in found[check]["detail"]


def test_a_plugin_cache_is_made_when_it_is_needed(toolyard: CommandLine):
    toolyard.config(plugin_cache_dir="cache/plugins")
    found = rows(toolyard)["plugin cache"]
    assert (found["status"], found["detail"]) == (
        "ok",
        f"{toolyard.folder}/cache/plugins (made when it is needed)",
    )
    assert not (toolyard.folder / "cache").exists(), "looking changes nothing"


def test_keys_of_providers_are_present_or_not_and_never_shown(toolyard: CommandLine):
    providers = {
        "one": {"api_key": "${env:ONE_API_KEY}"},
        "two": {"api_key": "${env:TWO_API_KEY}", "model": "m"},
        "three": {"auth_token": "literal-secret"},
        "local": {"model": "m"},
    }
    toolyard.config(providers=providers)
    ran = toolyard("doctor", "--json", env={"ONE_API_KEY": "very-secret"})
    found = {row["check"]: row for row in ran.json}
    assert found["providers.one.api_key"] == {
        "check": "providers.one.api_key",
        "status": "ok",
        "detail": "is set",
        "hint": "",
    }
    assert (found["providers.two.api_key"]["status"], found["providers.two.api_key"]["hint"]) == (
        "warning",
        "export TWO_API_KEY=…",
    )
    assert found["providers.three.auth_token"]["status"] == "ok"
    assert not any(name.startswith("providers.local") for name in found)
    assert "very-secret" not in ran.out + ran.err
    assert "literal-secret" not in ran.out + ran.err


def test_a_sandbox_that_is_off_or_cannot_be_had_is_said_with_what_to_do(toolyard: CommandLine, tmp_path):
    need_backend("landlock")
    toolyard.config(sandbox={"mode": "off"})
    assert rows(toolyard)["sandbox"]["status"] == "warning"
    toolyard.config(sandbox={"mode": "require"})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to("/bin/bash")
    without = rows(toolyard, env={"PATH": str(tmp_path / "bin")})["sandbox"]
    assert (without["status"], "bwrap" in without["detail"]) == ("failure", True)
    assert without["hint"].endswith("bubblewrap")


def test_what_the_configuration_gives_up_is_no_warning(toolyard: CommandLine):
    need_backend("bubblewrap", "bubblewrap-pids")
    toolyard.config(sandbox={"network": True})
    row = rows(toolyard)["sandbox network"]
    assert (row["status"], row["detail"].startswith("given up by the configuration")) == ("ok", True)
