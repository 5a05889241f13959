"""The JSON Schema agrees with what `config check` says, and so does the fast way through the settings."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.config.configuration import resolve
from toolyard.config.document import parse_document
from toolyard.config.placeholders import Names
from toolyard.config.schema import config_schema
from toolyard.config.settings import SECTIONS, FileSettings, NodeSettings, PermissionRule, PermissionSettings
from toolyard.config.shape import faults
from toolyard.kinds import KINDS
from toolyard.plugins.entries import settings_of

SCHEMA = config_schema(settings_of(KINDS))
CHECKER = jsonschema.Draft202012Validator(SCHEMA)
NAMES = Names(config_env={"P": "${env:P}"}, overrides={}, builtin={}, process={})

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from([0.5, 2.0, -1.0, 1e300, "", "x", "deep", "shallow", "npm", "continue", "default"])
)
ANY = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("x"), inner), max_leaves=3
)


def section(name: str):
    """An object with keys of a section, mostly fitting."""
    keys = st.sampled_from([*SECTIONS[name].__struct_encode_fields__, "nobody_knows_this"])
    return st.dictionaries(keys, SCALARS | st.lists(st.just("x") | SCALARS, max_size=2), max_size=3) | ANY


RULES = st.dictionaries(
    st.sampled_from([*PermissionRule.__struct_encode_fields__, "tol"]),
    st.just("x") | st.dictionaries(st.just("x"), st.just("x") | ANY, max_size=1) | SCALARS,
    max_size=3,
)
PERMISSIONS = st.dictionaries(
    st.sampled_from([*PermissionSettings.__struct_encode_fields__, "dney"]),
    st.lists(st.just("x") | RULES | SCALARS, max_size=2) | st.sampled_from(["trusted", "${env:P}", "no"]) | SCALARS,
    max_size=3,
)
NODES = st.fixed_dictionaries(
    {},
    optional={
        key: PERMISSIONS | ANY if key == "permissions" else st.lists(st.just("x") | SCALARS, max_size=2) | ANY
        for key in NodeSettings.__struct_encode_fields__
    },
)
SETTINGS = {name: section(name) for name in SECTIONS}
NAMED = {
    name: st.dictionaries(st.sampled_from(["a", "b"]), NODES | ANY, max_size=2) | ANY
    for name in ("agents", "providers", "mixins")
}
OTHERS = {
    key: st.lists(st.just("x") | SCALARS, max_size=2) | ANY
    for key in (*FileSettings.__struct_encode_fields__, "a_key_for_tools")
    if key not in SETTINGS and key not in NAMED
}
OTHERS["permissions"] |= PERMISSIONS
CONFIGS = st.fixed_dictionaries({}, optional={**OTHERS, **NAMED, **SETTINGS})


def check(config) -> list[str]:
    """What `config check` has to say about the shape of a file."""
    document = parse_document(Path("c.json"), json.dumps(config))
    found = resolve(document, NAMES, settings_of(KINDS))
    unknown = [one.problem.message for one in found.unknown if not one.key]
    codes = ("config_type", "plugin_spec", "permissions_rule")
    return [problem.message for problem in found.problems if problem.code in codes] + unknown


@settings(max_examples=200, deadline=None)
@given(CONFIGS)
def test_the_schema_accepts_exactly_what_the_check_accepts(config):
    refused = [error.message for error in CHECKER.iter_errors(config)]
    assert bool(check(config)) == bool(refused), (check(config), refused)


@settings(max_examples=200, deadline=None)
@given(CONFIGS)
def test_the_words_for_faults_agree_with_the_fast_conversion(config):
    found = list(faults(config, msgspec.inspect.type_info(FileSettings), ()))
    try:
        msgspec.convert(config, FileSettings)
        assert not found
    except msgspec.ValidationError:
        whole = json.loads(
            json.dumps(config), parse_float=lambda text: int(float(text)) if float(text) % 1 == 0 else 0.5
        )
        assert found or msgspec.convert(whole, FileSettings), "only 5.0 for 5 is forgiven"


def test_the_schema_is_one_and_knows_every_key_with_its_default():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]) == set(FileSettings.__struct_encode_fields__)
    policy = SCHEMA["$defs"]["PluginPolicy"]["properties"]
    expected = {
        "allow_remote": False,
        "allowed_git_hosts": [],
        "install_deps": False,
        "pip_args": [],
        "pip_cache_dir": None,
        "node_timeout_seconds": 60,
        "node_install_deps": True,
        "node_build": True,
        "node_package_manager": None,
        "node_allow_install_scripts": True,
        "node_build_command": None,
        "allow_bash_tools": False,
        "bash_timeout_seconds": 60,
        "bash_error_timeout_seconds": 5,
        "bash_stream_stderr": False,
        "pass_env": [],
    }
    assert {key: policy[key]["default"] for key in expected} == expected


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"plugin_policy": {"allow_bash_tools": 1}}, "'plugin_policy.allow_bash_tools' must be true or false, not 1"),
        ({"plugin_policy": {"bash_timeout_seconds": 0}}, "must be a number above 0, not 0"),
        ({"plugin_policy": {"pass_env": ["A", 2]}}, "'plugin_policy.pass_env[1]' must be a string, not 2"),
        ({"permissions": {"preset": "workspce"}}, "not \"workspce\"; did you mean 'workspace'?"),
        ({"plugin_policy": {"node_package_manager": "bun"}}, 'must be "npm" or "pnpm" or "yarn", not "bun"'),
        ({"limits": {"cpu_seconds": 1.5}}, "'limits.cpu_seconds' must be a whole number, at least 1, not 1.5"),
        ({"mixin_policy": {"max_depth": 101}}, "'mixin_policy.max_depth' must be a whole number from 1 to 100"),
        ({"agents": {"a": {"system_message": 3}}}, "'agents.a.system_message' must be a string or an object, not 3"),
        ({"agents": ["a"]}, "'agents' must be an object"),
        ({"permissions": {"dney": []}}, "'permissions.dney' is not known here; did you mean 'deny'?"),
        (
            {"agents": {"a": {"permissions": {"preset": "trust"}}}},
            "'agents.a.permissions.preset' must be",
        ),
        ({"mixins": {"m": {"permissions": {"deny": "rm"}}}}, "'mixins.m.permissions.deny' must be a list, not \"rm\""),
        ({"permissions": {"ask": [{"tol": "x"}]}}, "'permissions.ask[0].tol' is not known here; did you mean 'tool'?"),
        ({"permissions": {"ask": [{"tool": 5}]}}, "'permissions.ask[0].tool' must be a string, not 5"),
        ({"disabled_plugins": "a"}, "'disabled_plugins' must be a list, not \"a\""),
    ],
)
def test_a_fault_says_what_is_expected(config, words):
    (message,) = check(config)
    assert words in message


def test_a_reader_of_the_schema_is_told_nothing_of_our_code():
    assert SCHEMA["$defs"]["PluginPolicy"]["description"] == "'plugin_policy': what plugins may be and do."


def test_five_point_zero_is_a_whole_number_as_json_has_it():
    found = resolve(
        parse_document(Path("c.json"), '{"limits": {"cpu_seconds": 5.0, "open_files": "x"}}'), NAMES, settings_of(KINDS)
    )
    assert (found.limits.cpu_seconds, found.limits.open_files) == (5, None)
    assert len(found.problems) == 1
