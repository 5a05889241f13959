"""`toolyard config`: what the configuration says, and why."""

from __future__ import annotations

import json

import jsonschema
import pytest

from support import CommandLine
from yard import script

LAYERED = """{
  "model": "small",
  "plugins": ["shell:session"],
  "disabled_plugins": ["shell:session"],
  "mixins": {
    "large": {"model": "large", "mail": {"from": "bot"}}
  },
  "providers": {
    "main.1": {
      "mixin_refs": ["large"],
      "api_key": "${env:MY_API_KEY}",
      "header": "Bearer ${env:MY_TOKEN}!",
      "mail": {"to": "me"},
      "plugins": ["shell:command"]
    }
  },
  "agents": {
    "default": {"provider": "main.1", "mail": {"subject": "Hello"}, "pin": {"password": "1234"}},
    "other": {"model": "own"}
  }
}"""
SECRETS = {"MY_API_KEY": "k-e-y", "MY_TOKEN": "tok"}


def test_check_says_nothing_is_wrong_or_what_and_where(toolyard: CommandLine):
    toolyard.file("toolyard.json", LAYERED)
    ran = toolyard("config", "check", env=SECRETS)
    assert (ran.code, ran.out, ran.err) == (0, "", "toolyard.json: no problems\n")
    toolyard.file("toolyard.json", '{\n  "plugin": [],\n  "limits": {"cpu_seconds": "x"}\n}')
    ran = toolyard("config", "check")
    assert ran.code == 2
    assert ran.out.splitlines() == [
        "toolyard.json:3:29: 'limits.cpu_seconds' must be a whole number, at least 1, not \"x\"",
        "toolyard.json:2:3: warning: unknown key 'plugin'",
        "  hint: did you mean 'plugins'?",
    ]
    assert ran.err == "toolyard.json: 1 error, 1 warning\n"
    rows = toolyard("config", "check", "--json").json
    assert [(row["type"], row["line"], row["severity"]) for row in rows] == [
        ("config_type", 3, "error"),
        ("config_unknown_key", 2, "warning"),
    ]


def test_check_fails_on_warnings_only_if_it_is_strict_and_names_the_way_of_a_value(toolyard: CommandLine):
    mixins = {"m": {"x": "${env:NOBODY_SETS_THIS}"}}
    toolyard.config(mixins=mixins, agents={"a": {"mixin_refs": ["m"]}})
    ran = toolyard("config", "check")
    assert ran.code == 0
    assert "is replaced by nothing (by agents.a → mixins.m)" in ran.out
    assert toolyard("config", "check", "--strict").code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,}', "toolyard.json:1:8: trailing comma before '}'"),
        ('{"a" 1}', "toolyard.json:1:6: expected ':' after the key; found '1'"),
        ('{"a": [1, 2}', "toolyard.json:1:12: expected ',' or ']'; found '}'"),
        ('{"a": "x', "toolyard.json:1:7: expected '\"' at the end of this string"),
        ("{a: 1}", "toolyard.json:1:2: expected a key in double quotes; found 'a'"),
        ('{"a": 1} x', "toolyard.json:1:10: expected the end of the file; found 'x'"),
    ],
)
def test_a_syntax_error_says_where_and_what_was_expected(toolyard: CommandLine, text, message):
    toolyard.file("toolyard.json", text)
    for words in (["check"], ["show"]):
        ran = toolyard("config", *words)
        assert ran.code == 2
        assert message in ran.out + ran.err


def test_show_prints_all_that_holds_for_an_agent_as_one_object_without_secrets(toolyard: CommandLine):
    toolyard.file("toolyard.json", LAYERED)
    ran = toolyard("config", "show", "--json", env=SECRETS)
    assert (ran.code, ran.err) == (0, "")
    shown = ran.json
    values = {key: shown[key] for key in ("model", "mail", "api_key", "header", "pin", "provider")}
    assert values == {
        "model": "large",
        "mail": {"to": "me", "subject": "Hello"},
        "api_key": "[redacted api_key]",
        "header": "Bearer [redacted MY_TOKEN]!",
        "pin": {"password": "[redacted password]"},
        "provider": "main.1",
    }
    assert shown["plugins"] == ["shell:session", "shell:command"]
    assert shown["disabled_plugins"] == ["shell:session"]
    assert shown["plugin_policy"]["bash_timeout_seconds"] == 60
    kept = {"keep_days": 30, "keep_bytes": 1 << 30}
    assert shown["output"] == {"limit_bytes": 30000, "spill": True, "reader": None, **kept}
    assert not {"mixins", "agents", "providers", "mixin_refs"} & shown.keys()
    assert toolyard("config", "show", "--agent", "other", "--json", env=SECRETS).json["model"] == "own"
    assert toolyard("config", "show", env=SECRETS).json == shown


@pytest.mark.parametrize("words", [["show"], ["show", "--json"], ["explain", "api_key"], ["explain", "providers"]])
def test_no_way_of_asking_shows_a_secret(toolyard: CommandLine, words):
    config = json.loads(LAYERED)
    config["providers"]["main.1"] |= {"other_key": "literal-secret", "url": "https://me:hunter2@example.org/"}
    toolyard.file("toolyard.json", json.dumps(config))
    ran = toolyard("config", *words, env=SECRETS)
    assert ran.code == 0
    for secret in ("k-e-y", "tok!", "1234", "literal-secret", "hunter2"):
        assert secret not in ran.out + ran.err


def explained(toolyard: CommandLine, key: str, *options: str):
    return toolyard("config", "explain", key, "--json", *options, env=SECRETS).json


def test_explain_gives_the_value_every_layer_that_set_it_and_which_won(toolyard: CommandLine):
    config = toolyard.file("toolyard.json", LAYERED)
    found = explained(toolyard, "agents.default.model")
    assert (found["key"], found["value"]) == ("agents.default.model", "large")
    assert [tuple(row.values()) for row in found["layers"]] == [
        ("provider 'main.1'", "won", "large", f"{config}:6:24", "providers.main.1 → mixins.large"),
        ("top level", "overridden", "small", f"{config}:2:12", ""),
    ]
    assert explained(toolyard, "model") == found
    assert explained(toolyard, "model", "--agent", "other")["value"] == "own"
    table = toolyard("config", "explain", "agents.default.model").out.splitlines()
    assert table[0] == 'agents.default.model = "large"'
    assert table[1].split()[:3] == ["won", "provider", "'main.1'"]
    assert "(toolyard.json:6:24) by providers.main.1 → mixins.large" in table[1]


def test_explain_tells_a_default_where_there_is_one(toolyard: CommandLine):
    toolyard.config()
    found = explained(toolyard, "output.keep_days")
    assert (found["value"], [layer["layer"] for layer in found["layers"]]) == (30, ["default"])
    unknown = toolyard("config", "explain", "output.nothing")
    assert unknown.out == ""
    assert "nothing sets 'agents.default.output.nothing'" in unknown.err


def test_explain_tells_merged_objects_and_lists_that_add_up(toolyard: CommandLine):
    toolyard.file("toolyard.json", LAYERED)
    mail = explained(toolyard, "mail")
    assert mail["value"] == {"to": "me", "subject": "Hello"}
    assert [(row["verdict"], row["value"]) for row in mail["layers"]] == [
        ("won", {"subject": "Hello"}),
        ("merged", {"to": "me"}),
        ("overridden", {"from": "bot"}),
    ]
    assert explained(toolyard, "mail.to")["layers"][0]["layer"] == "provider 'main.1'"
    plugins = explained(toolyard, "plugins")
    assert plugins["value"] == ["shell:session", "shell:command"]
    assert [row["verdict"] for row in plugins["layers"]] == ["added", "added"]


@pytest.mark.parametrize(
    ("key", "value", "layer"),
    [
        ("providers.main.1.api_key", "[redacted api_key]", "provider 'main.1'"),
        ("plugin_policy.allow_remote", False, "default"),
        ("mixin_policy.max_depth", 16, "default"),
        ("output.limit_bytes", 30000, "default"),
        ("permissions.ask_timeout_seconds", 300, "default"),
        ("plugins[0]", "shell:session", "top level"),
        ("agents.default.pin.password", "[redacted password]", "agent 'default'"),
    ],
)
def test_any_key_can_be_explained(toolyard: CommandLine, key, value, layer):
    toolyard.file("toolyard.json", LAYERED)
    found = explained(toolyard, key)
    assert (found["value"], found["layers"][0]["layer"]) == (value, layer)


def test_permissions_are_shown_and_explained_as_they_hold(toolyard: CommandLine):
    toolyard.config(
        permissions={"preset": "read-only", "deny": ["rm **"]},
        providers={"p": {"permissions": {"deny": [{"tool": "x"}]}}},
        agents={"default": {"provider": "p", "permissions": {"preset": "trusted", "deny": ["dd **"]}}},
    )
    holds = {"preset": "trusted", "deny": ["rm **", {"tool": "x"}, "dd **"]}
    assert toolyard("config", "show").json["permissions"] == holds
    deny = explained(toolyard, "permissions.deny")
    assert deny["value"] == holds["deny"]
    assert [row["verdict"] for row in deny["layers"]] == ["added"] * 3
    preset = explained(toolyard, "agents.default.permissions.preset")
    assert [(row["verdict"], row["value"]) for row in preset["layers"]] == [
        ("won", "trusted"),
        ("overridden", "read-only"),
    ]


def test_a_key_that_nothing_sets_is_said_to_be_so(toolyard: CommandLine):
    toolyard.config()
    ran = toolyard("config", "explain", "agents.default.nothing")
    assert (ran.code, ran.out) == (2, "")
    assert "nothing sets 'agents.default.nothing'" in ran.err
    assert "did you mean" not in ran.err
    for key, near in (("outptu", "agents.default.output"), ("plugin_policy.pas_env", "plugin_policy.pass_env")):
        assert f"did you mean '{near}'?" in toolyard("config", "explain", key).err
    assert toolyard("config", "explain", "nothing", "--json").json["set"] is False


def test_an_unknown_agent_is_wrong_usage(toolyard: CommandLine):
    toolyard.config(agents={"writer": {}})
    for words in (["show"], ["explain", "model"]):
        ran = toolyard("config", *words, "--agent", "nobody")
        assert ran.code == 2
        assert "there is no agent 'nobody'; known: writer" in ran.err


def test_schema_prints_a_schema_that_accepts_a_good_file(toolyard: CommandLine):
    schema = toolyard("config", "schema").json
    jsonschema.validate(json.loads(LAYERED), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"plugins": "x"}, schema)


def test_check_also_loads_what_is_named(toolyard: CommandLine):
    toolyard.file("bad.bash", script("bad", args_mode="flagz"))
    toolyard.config("bash:bad.bash")
    ran = toolyard("config", "check")
    assert ran.code == 2
    assert "bad.bash:" in ran.out


def test_a_workspace_is_where_values_are_meant_from_and_not_where_the_configuration_is(toolyard: CommandLine):
    toolyard.file("elsewhere/toolyard.json", "not this one")
    toolyard.config(here="${env:WORKING_DIR}", there="${env:CONFIG_DIR}")
    inside = ["--config", "toolyard.json", "--sessions", "kept", "--workspace", "elsewhere"]
    shown = toolyard(*inside, "config", "show", "--json").json
    assert (shown["here"], shown["there"]) == (str(toolyard.folder / "elsewhere"), str(toolyard.folder))
    assert toolyard(*inside, "config", "check").code == 0
    rows = {row["check"]: row for row in toolyard(*inside, "doctor", "--json").json}
    assert rows["configuration"]["detail"] == f"{toolyard.folder}/toolyard.json: no problems"
    assert rows["sessions"]["detail"].startswith(str(toolyard.folder / "kept"))


def test_system_message_prints_what_a_model_is_told_first(toolyard: CommandLine):
    feature = "path:${env:BUILTIN_PLUGINS}/feature-system-message"
    agents = {
        "default": {"system_message": {"template": "Work in {{W}}.\n", "variables": {"W": {"inline_code": "'a' * 3"}}}},
        "broken": {"system_message": {"template": "[{{W}}]", "variables": {"W": {"inline_code": "1 / 0"}}}},
        "silent": {},
    }
    toolyard.config(plugins=[feature], agents=agents)
    ran = toolyard("config", "system-message")
    assert (ran.code, ran.out, ran.err) == (0, "Work in aaa.\n", "")
    ran = toolyard("config", "system-message", "--agent", "broken")
    assert (ran.code, ran.out) == (2, "[]\n")
    assert "ZeroDivisionError" in ran.err
    ran = toolyard("config", "system-message", "--agent", "silent")
    assert (ran.code, ran.out) == (0, "")
    assert "has no system message" in ran.err
    assert "feature-system-message" in ran.err
    checked = toolyard("config", "check")
    assert checked.code == 2
    assert "ZeroDivisionError" in checked.out
    called = toolyard("tools")
    assert "ZeroDivisionError" not in called.out + called.err, "nobody asked for it"
