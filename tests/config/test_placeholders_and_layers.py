"""Placeholders, layers and sections of a configuration."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.config.configuration import builtin_names, read_configuration
from toolyard.config.document import parse_document
from toolyard.config.layers import effective_config, merge_deep
from toolyard.config.placeholders import Names, expand_placeholders
from toolyard.kinds import KINDS
from toolyard.plugins.entries import settings_of


def names(**process: str) -> Names:
    return Names(config_env={}, overrides={}, builtin={}, process=process)


def expand(tmp_path, text, **process):
    expanded = expand_placeholders(parse_document(tmp_path / "c.json", text), names(**process))
    return expanded.value, expanded.problems


def test_a_name_is_replaced_anywhere_in_a_string_and_only_once(tmp_path):
    value, problems = expand(tmp_path, '{"a": ["x${env:A}y${env:B}z"], "k${env:A}": 1}', A="1", B="${env:A}")
    assert value == {"a": ["x1y${env:A}z"], "k${env:A}": 1}
    assert problems == []


def test_a_missing_name_becomes_nothing_and_is_recorded_with_its_place(tmp_path):
    value, problems = expand(tmp_path, '{\n  "a": "<${env:NOPE}>"}')
    assert value == {"a": "<>"}
    assert [(p.code, p.where.line, p.where.column, p.severity) for p in problems] == [("env_missing", 2, 8, "warning")]


def test_a_file_is_read_only_as_the_whole_string_relative_to_the_configuration(tmp_path):
    (tmp_path / "note.md").write_text("text ${env:A}")
    text = '{"a": "${file:${env:NAME}.md}", "b": "x ${file:note.md}", "c": "${file:none.md}"}'
    value, problems = expand(tmp_path, text, NAME="note", A="1")
    assert value == {"a": "text ${env:A}", "b": "x ${file:note.md}", "c": ""}
    assert [problem.code for problem in problems] == ["file_not_whole", "file_missing"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:SLY}", "${file:note.md}"),
        ("${env:HALF}note.md}", "${file:note.md}"),
        ("${file:${env:NAME}.md}", "secret"),
        ("${file:note.md}${file:note.md}", "${file:note.md}${file:note.md}"),
    ],
)
def test_the_value_of_a_variable_is_never_taken_for_a_placeholder(tmp_path, text, value):
    (tmp_path / "note.md").write_text("secret")
    names = {"SLY": "${file:note.md}", "HALF": "${file:", "NAME": "note"}
    assert expand(tmp_path, json.dumps({"a": text}), **names)[0] == {"a": value}


def test_a_variable_without_a_name_is_told_how_to_name_one(tmp_path):
    _, (problem,) = expand(tmp_path, '{"a": "${env:}"}')
    assert problem.hint == "name a variable: ${env:NAME}"


def test_the_first_source_that_has_a_name_wins():
    sources = {"config_env": {}, "overrides": {}, "builtin": {}, "process": {"N": "process"}}
    seen = []
    for source in ("process", "builtin", "overrides", "config_env"):
        sources[source]["N"] = source
        seen.append(Names(**sources).get("N"))
    assert seen == ["process", "builtin", "overrides", "config_env"]


def test_the_built_in_names_are_absolute(tmp_path):
    found = builtin_names(tmp_path / "sub" / "c.json", tmp_path)
    assert found["CONFIG_DIR"] == str(tmp_path / "sub")
    assert found["WORKING_DIR"] == str(tmp_path)
    assert found["BUILTIN_PLUGINS"].endswith("builtin_plugins")


def test_an_agents_values_win_over_its_providers_over_the_top_level():
    config = {
        "plugins": ["bash:x"],
        "a": {"x": 1, "y": 1},
        "b": 1,
        "providers": {"p": {"a": {"y": 2, "z": 2}, "b": 2}},
        "agents": {"one": {"provider": "p", "a": {"z": 3}}, "two": {}},
    }
    assert effective_config(config, "one") == {"a": {"x": 1, "y": 2, "z": 3}, "b": 2, "provider": "p"}
    assert effective_config(config, "two") == {"a": {"x": 1, "y": 1}, "b": 1}
    assert effective_config(config, "none") == {"a": {"x": 1, "y": 1}, "b": 1}


VALUES = st.recursive(st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3))
LAYERS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(LAYERS, LAYERS)
def test_merging_takes_every_value_from_the_upper_layer_that_has_one(below, above):
    merged = merge_deep(below, above)
    assert merged.keys() == below.keys() | above.keys()
    for key, value in merged.items():
        lower, upper = below.get(key), above.get(key)
        if isinstance(lower, dict) and isinstance(upper, dict):
            assert value == merge_deep(lower, upper)
        else:
            assert value == (upper if key in above else lower)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"plugin_policy": {"allow_bash_tools": 1}}', "plugin_policy.allow_bash_tools"),
        ('{"plugin_policy": {"pass_env": "X"}}', "plugin_policy.pass_env"),
        ('{"output": {"limit_bytes": 0}}', "output.limit_bytes"),
        ('{"limits": {"open_files": 1.5}}', "limits.open_files"),
        ('{"audit": {"on_failure": "panic"}}', "audit.on_failure"),
        ('{"audit": 3}', "'audit' must be an object"),
    ],
)
def test_a_field_that_does_not_fit_is_a_problem_and_keeps_its_default(tmp_path, text, message):
    (tmp_path / "c.json").write_text(text)
    configuration = read_configuration(tmp_path / "c.json", names(), settings_of(KINDS))
    (problem,) = configuration.problems
    assert message in problem.message
    assert problem.where.line == 1
    assert (configuration.output.limit_bytes, configuration.output.spill) == (30_000, True)
    assert configuration.policy.allow_bash_tools is False


def test_all_problems_of_a_file_are_reported_at_once(tmp_path):
    (tmp_path / "c.json").write_text(
        '{"plugin_policy": {"allow_bash_tools": 1, "pass_env": 2}, "output": [], "x": "${env:NOPE_}"}'
    )
    found = read_configuration(tmp_path / "c.json", names(), settings_of(KINDS)).problems
    assert sorted(problem.code for problem in found) == ["config_type", "config_type", "config_type", "env_missing"]
