"""The configuration: C01 to C09, C11, C15 and C17."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolyard.errors import UnknownAgent
from yard import Yard

pytestmark = pytest.mark.anyio


def codes(app) -> list[str]:
    return [problem["type"] for problem in app.get_config_errors()]


def write(yard: Yard, text: str) -> Path:
    return yard.file("toolyard.json", text)


def value_tool(yard: Yard, *keys: str) -> None:
    """A tool that prints the values it is configured with."""
    run = "; ".join(f'echo "${{AGENT_TOOL_CONFIG_{key.upper()}-unset}}"' for key in keys)
    yard.tool("probe", run=run, config_keys=list(keys))


# C01


async def test_C01_problems_are_mappings_with_a_place_and_a_hint_and_stop_nothing_else(yard):
    yard.tool("good", run="echo fine")
    config = write(
        yard,
        """{
  "plugins": ["bash:good.bash",
    "bash:missing.bash", "nonsense:x", {"bash_tool": 3}],
  "plugin_policy": {"allow_bash_tools": true,
    "bash_timeout_seconds": "soon"}
}""",
    )
    async with yard.open(config) as app:
        found = app.get_config_errors()
        assert all({"type", "detail", "file", "line", "column", "hint"} <= problem.keys() for problem in found)
        places = {(problem["type"], problem["line"], problem["column"]) for problem in found}
        assert places == {
            ("bash_file_missing", 3, 5),
            ("plugin_unsupported", 3, 26),
            ("plugin_spec", 3, 40),
            ("config_type", 5, 29),
        }
        assert (await app.call_tool("good", {})).text == "fine\n"


async def test_C01_arguments_may_be_given_by_place_and_problems_are_known_before_it_is_opened(yard):
    from toolyard import AgentApplication

    value_tool(yard, "a", "b")
    config = yard.config("bash:probe.bash", a="${env:C01_A}", b="${env:C01_B}")
    app = AgentApplication(str(config), str(yard.folder / "s"), {"C01_A": "one"}, {"C01_B": "two"})
    try:
        assert app.get_config_errors() == []
        async with app:
            assert (await app.call_tool("probe", {})).text == "one\ntwo\n"
    finally:
        os.environ.pop("C01_A", None)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', '{"plugins": 3, "agents": [], "mixins": "x"}'])
async def test_C01_no_configuration_is_bad_enough_to_raise(yard, text):
    async with yard.open(write(yard, text)) as app:
        assert app.get_config_errors()
        assert app.tools() == []
        assert app.agents() == ["default"]


async def test_C01_all_problems_come_at_once_errors_first_and_in_the_order_of_the_file(yard):
    config = write(
        yard,
        """{
  "a": "${env:C01_NOPE}",
  "plugin_polcy": {},
  "b": "${file:nope.md}",
  "agents": {"default": {"mixin_refs": ["nope"]}},
  "limits": {"cpu_seconds": 0}
}""",
    )
    async with yard.open(config) as app:
        found = app.get_config_errors()
    assert [(problem["severity"], problem["line"], problem["type"]) for problem in found] == [
        ("error", 4, "file_missing"),
        ("error", 5, "mixin_unknown"),
        ("error", 6, "config_type"),
        ("warning", 2, "env_missing"),
        ("warning", 3, "config_unknown_key"),
    ]


# C02 and C03


async def test_C02_a_name_is_replaced_anywhere_in_a_string_and_a_missing_one_by_nothing(yard, monkeypatch):
    monkeypatch.setenv("C02_X", "x")
    monkeypatch.delenv("C02_NOPE", raising=False)
    value_tool(yard, "a", "b")
    async with yard.app("bash:probe.bash", a="<${env:C02_X}${env:C02_X}>", b="<${env:C02_NOPE}>") as app:
        assert (await app.call_tool("probe", {})).text == "<xx>\n<>\n"
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["severity"]) == ("env_missing", "warning")
        assert "'C02_NOPE'" in problem["detail"]


async def test_C03_a_file_is_read_as_a_whole_string_only_and_not_expanded_again(yard, monkeypatch):
    monkeypatch.setenv("C03_NAME", "note")
    monkeypatch.chdir(yard.file("elsewhere/x", "").parent)
    yard.file("note.md", "text ${env:C03_NAME}")
    value_tool(yard, "a", "b", "c")
    app = yard.app(
        "bash:probe.bash", a="${file:${env:C03_NAME}.md}", b="x ${file:note.md}", c=f"${{file:{yard.folder}/note.md}}"
    )
    async with app:
        text = "text ${env:C03_NAME}"
        assert (await app.call_tool("probe", {})).text == f"{text}\nx ${{file:note.md}}\n{text}\n"
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["severity"]) == ("file_not_whole", "warning")


async def test_C03_a_missing_file_is_a_problem_at_its_place(yard):
    async with yard.open(write(yard, '{\n "a": [1,\n  "${file:none.md}"]}')) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["line"], problem["column"]) == ("file_missing", 3, 3)
    assert str(yard.folder / "none.md") in problem["detail"]


# C04


async def test_C04_names_come_from_config_env_then_overrides_then_built_ins_then_the_process(yard, monkeypatch):
    for name in ("C04_A", "C04_B", "C04_C"):
        monkeypatch.setenv(name, "process")
    monkeypatch.setenv("WORKING_DIR", "process")
    monkeypatch.setenv("CONFIG_DIR", "process")
    value_tool(yard, "a", "b", "c", "d", "e")
    values = {"a": "C04_A", "b": "C04_B", "c": "C04_C", "d": "WORKING_DIR", "e": "CONFIG_DIR"}
    config = yard.config("bash:probe.bash", **{key: f"${{env:{name}}}" for key, name in values.items()})
    overrides = {"C04_A": "override", "C04_B": "override", "CONFIG_DIR": "override"}
    app = yard.open(config, env_overrides=overrides, config_env={"C04_A": "config"})
    assert os.environ["C04_B"] == "process", "making an application changes nothing"
    async with app:
        lines = (await app.call_tool("probe", {})).text.splitlines()
        assert (os.environ["C04_A"], os.environ["C04_B"]) == ("override", "override"), "installed, unlike config_env"
    assert lines == ["config", "override", "process", os.getcwd(), "override"]
    assert (os.environ["C04_A"], os.environ["C04_B"]) == ("process", "process"), "and put back when it is closed"


async def test_C04_the_built_in_names_are_the_folders_that_they_say(yard):
    value_tool(yard, "a", "b")
    config = yard.config("bash:probe.bash", a="${env:CONFIG_DIR}", b="${env:BUILTIN_PLUGINS}")
    async with yard.open(config) as app:
        here, builtin = (await app.call_tool("probe", {})).text.splitlines()
    assert here == str(yard.folder)
    assert (Path(builtin) / "template-bash-tool" / "agent_plugin.json").is_file()


# C05


async def test_C05_an_unused_mixin_complains_of_nothing(yard):
    mixins = {"unused": {"a": "${env:C05_NOPE}", "b": "${file:nope}", "mixin_refs": ["nope", "unused"]}}
    async with yard.app(mixins=mixins, agents={"default": {"a": 1}}) as app:
        assert app.get_config_errors() == []


async def test_C05_a_used_one_complains_where_it_is_written_and_names_the_way(yard):
    config = write(
        yard,
        """{"mixins": {
  "base": {"a": "${env:C05_NOPE}"},
  "middle": {"mixin_refs": ["base"]}},
 "agents": {"one": {"mixin_refs": ["middle"]}, "two": {"mixin_refs": ["middle"]}}}""",
    )
    async with yard.open(config) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["line"], problem["column"]) == ("env_missing", 2, 17)
    assert problem["via"] == "agents.one → mixins.middle → mixins.base"


# C06


def effective(yard: Yard, agent: str = "default", **config) -> dict:
    from toolyard.config.configuration import read_configuration
    from toolyard.config.placeholders import Names
    from toolyard.kinds import KINDS
    from toolyard.plugins.entries import settings_of

    path = write(yard, json.dumps(config, indent=1))
    names = Names(config_env={}, overrides={}, builtin={}, process={})
    configuration = read_configuration(path, names, settings_of(KINDS))
    assert configuration.problems == ()
    return configuration.for_agent(agent)


MIXINS = {
    "first": {"a": 1, "b": 1, "deep": {"x": 1, "list": [1, 2]}},
    "second": {"b": 2, "c": 2, "deep": {"y": 2, "list": [3]}},
    "third": {"mixin_refs": ["first", "second"], "c": 3},
}


def test_C06_later_mixins_win_and_own_keys_win_over_all_and_whole_keys_are_replaced(yard):
    agents = {"default": {"mixin_refs": ["first", "second"], "c": 9}}
    found = effective(yard, mixins=MIXINS, agents=agents)
    assert found == {"a": 1, "b": 2, "c": 9, "deep": {"y": 2, "list": [3]}}


@pytest.mark.parametrize("how", ["node", "policy"])
def test_C06_deep_merges_mappings_and_replaces_lists(yard, how):
    node = {"mixin_refs": ["first", "second"], "deep": {"z": 9}}
    policy = {"default_merge": "deep"} if how == "policy" else {}
    merge = {"mixin_merge": "deep"} if how == "node" else {}
    found = effective(yard, mixins=MIXINS, mixin_policy=policy, agents={"default": {**node, **merge}})
    assert found["deep"] == {"x": 1, "y": 2, "list": [3], "z": 9}
    assert "mixin_refs" not in found
    assert "mixin_merge" not in found


def test_C06_a_mixin_refers_to_mixins_and_merges_by_its_own_word(yard):
    mixins = {**MIXINS, "fourth": {"mixin_refs": ["third"], "mixin_merge": "deep", "deep": {"z": 4}}}
    agents = {"default": {"mixin_refs": ["fourth"]}}
    found = effective(yard, mixins=mixins, agents=agents)
    assert found == {"a": 1, "b": 2, "c": 3, "deep": {"y": 2, "list": [3], "z": 4}}


def test_C06_providers_have_mixins_too_and_layers_come_after(yard):
    found = effective(
        yard,
        mixins={"m": {"a": "mixin", "b": "mixin", "c": "mixin"}},
        providers={"p": {"mixin_refs": ["m"], "b": "provider"}},
        agents={"default": {"provider": "p", "c": "agent"}},
    )
    assert found == {"a": "mixin", "b": "provider", "c": "agent", "provider": "p"}


@pytest.mark.parametrize(
    ("config", "code", "words"),
    [
        (
            {"mixins": {"base": {}}, "agents": {"a": {"mixin_refs": ["bsae"]}}},
            "mixin_unknown",
            "there is no mixin 'bsae': agents.a → bsae",
        ),
        (
            {"mixins": {"m": {"mixin_refs": ["n"]}}, "providers": {"p": {"mixin_refs": ["m"]}}},
            "mixin_unknown",
            "there is no mixin 'n': providers.p → m → n",
        ),
        (
            {
                "mixins": {"m": {"mixin_refs": ["n"]}, "n": {"mixin_refs": ["o"]}, "o": {"mixin_refs": ["n"]}},
                "agents": {"a": {"mixin_refs": ["m"]}},
            },
            "mixin_circle",
            "in a circle: agents.a → m → n → o → n",
        ),
        (
            {"mixins": {"m": {"mixin_refs": ["m"]}}, "agents": {"a": {"mixin_refs": ["m"]}}},
            "mixin_circle",
            "in a circle: agents.a → m → m",
        ),
        (
            {
                "mixins": {"m": {"mixin_refs": ["n"]}, "n": {"mixin_refs": ["o"]}, "o": {}},
                "mixin_policy": {"max_depth": 2},
                "agents": {"a": {"mixin_refs": ["m"]}, "b": {"mixin_refs": ["n"]}},
            },
            "mixin_depth",
            "more than 2 mixins in a chain: agents.a → m → n → o",
        ),
        (
            {
                "mixins": {"m": {"mixin_refs": ["n"]}, "n": {"mixin_merge": "deeply"}},
                "agents": {"a": {"mixin_refs": ["m"]}},
            },
            "config_type",
            '\'mixins.n.mixin_merge\' must be "deep" or "shallow", not "deeply": agents.a → m → n',
        ),
        ({"agents": {"a": {"mixin_merge": "deeply"}}}, "config_type", "'agents.a.mixin_merge' must be"),
        ({"mixin_policy": {"default_merge": 1}}, "config_type", "'mixin_policy.default_merge' must be"),
        ({"mixin_policy": {"max_depth": 0}}, "config_type", "'mixin_policy.max_depth' must be"),
        ({"mixins": {"m": []}}, "config_type", "'mixins.m' must be an object"),
        ({"agents": {"a": {"mixin_refs": "m"}}}, "config_type", "'agents.a.mixin_refs' must be a list"),
    ],
)
async def test_C06_every_mistake_is_a_problem_with_the_chain_of_names(yard, config, code, words):
    async with yard.open(write(yard, json.dumps(config, indent=1))) as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == code
    assert words in problem["detail"]
    assert problem["line"] > 1


def test_C06_sixteen_mixins_are_deep_enough_by_default(yard):
    chain = {f"m{n}": {"mixin_refs": [f"m{n + 1}"], f"k{n}": n} for n in range(15)} | {"m15": {"last": True}}
    found = effective(yard, mixins=chain, agents={"default": {"mixin_refs": ["m0"]}})
    assert found["last"] is True
    assert found["k0"] == 0


# C07


def test_C07_agent_over_provider_over_top_level_and_mappings_merge_deep(yard):
    found = effective(
        yard,
        "one",
        a={"x": 1, "y": 1, "list": [1]},
        b=1,
        c=1,
        providers={"p": {"a": {"y": 2, "z": 2, "list": [2, 2]}, "b": 2}},
        agents={"one": {"provider": "p", "a": {"z": 3}}, "two": {}},
    )
    assert found == {"a": {"x": 1, "y": 2, "z": 3, "list": [2, 2]}, "b": 2, "c": 1, "provider": "p"}


async def test_C07_a_problem_in_what_a_layer_brings_is_shown_where_that_layer_stands(yard):
    config = write(
        yard,
        """{"plugin_policy": {"allow_bash_tools": true},
 "mixins": {"m": {
   "plugins": ["nonsense:x"]}},
 "providers": {"p": {"mixin_refs": ["m"]}},
 "agents": {"a": {"provider": "p"}}}""",
    )
    async with yard.open(config) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["line"], problem["column"]) == ("plugin_unsupported", 3, 16)
    assert problem["via"] == "providers.p → mixins.m"


async def test_C07_each_agent_calls_with_its_own_values(yard):
    value_tool(yard, "who")
    agents = {"one": {"who": "one"}, "two": {"provider": "p"}, "three": {}}
    providers = {"p": {"who": "provider"}}
    async with yard.app("bash:probe.bash", who="file", providers=providers, agents=agents) as app:
        for agent, who in (("one", "one"), ("two", "provider"), ("three", "file")):
            assert (await app.call_tool("probe", {}, agent=agent)).text == f"{who}\n"


async def test_C07_how_much_output_is_kept_may_be_set_for_each_agent(yard):
    yard.tool(run="seq 5000")
    agents = {"much": {}, "little": {"output": {"limit_bytes": 2000}}}
    async with yard.app("bash:probe.bash", agents=agents) as app:
        assert (await app.call_tool("probe", {}, agent="much")).truncated is None
        assert (await app.call_tool("probe", {}, agent="little")).truncated is not None


# C08


LEVELS = {
    "providers": {"p": {"plugins": ["bash:provider.bash"]}},
    "agents": {"whole": {"provider": "p", "plugins": ["bash:agent.bash"]}, "plain": {}},
}


async def test_C08_plugins_of_the_top_level_the_provider_and_the_agent_add_up_in_this_order(yard):
    for name in ("top", "provider", "agent"):
        yard.tool(name, run=f"echo {name}")
    async with yard.app("bash:top.bash", **LEVELS) as app:
        assert [spec.name for spec in app.tool_specs("whole")] == ["top", "provider", "agent"]
        assert [spec.name for spec in app.tool_specs("plain")] == ["top"]
        assert (await app.call_tool("agent", {}, agent="whole")).text == "agent\n"
        assert (await app.call_tool("agent", {}, agent="plain")).failure == "unknown_tool"
        assert app.get_config_errors() == []


async def test_C08_the_first_of_an_id_wins_and_the_other_is_remembered_and_shown(yard):
    for place in ("top", "provider", "agent"):
        yard.tool("same", file=f"{place}.bash", run=f"echo {place}")
    async with yard.app("bash:top.bash", **LEVELS) as app:
        assert (await app.call_tool("same", {}, agent="whole")).text == "top\n"
        found = app.get_config_errors()
        assert {(problem["type"], Path(problem["file"]).name) for problem in found} == {
            ("plugin_id_taken", "provider.bash"),
            ("plugin_id_taken", "agent.bash"),
        }
        assert all("top.bash" in problem["detail"] for problem in found)


async def test_C08_one_reference_of_many_agents_is_loaded_once_and_a_change_reaches_all(yard):
    file = yard.tool("shared", cases="")
    file.write_text(file.read_text().replace("  schema) cat", f"  schema) echo x >>{yard.folder}/log; cat"))
    agents = {name: {"plugins": ["bash:shared.bash", {"bash_tool": {"file": "./shared.bash"}}]} for name in "abc"}
    async with yard.app(agents=agents, sandbox={"mode": "off"}) as app:  # in which `schema` can write
        assert [[spec.name for spec in app.tool_specs(name)] for name in "abc"] == [["shared"]] * 3
        assert yard.log() == ["x"]
        yard.tool("shared", run="echo new")
        assert (await app.call_tool("shared", {}, agent="b")).text == "new\n"
        assert (await app.call_tool("shared", {}, agent="a")).text == "new\n"
        yard.tool("renamed", file="shared.bash", run="echo again")
        assert (await app.call_tool("renamed", {}, agent="c")).text == "again\n"
        assert [[spec.name for spec in app.tool_specs(name)] for name in "abc"] == [["renamed"]] * 3


async def test_C08_every_agent_has_a_live_shell_of_its_own_that_lasts_through_a_reload(yard):
    agents = {name: {"permissions": {"preset": "trusted"}} for name in ("one", "two")}
    async with yard.app("shell:session", agents=agents) as app:

        async def bash(agent: str, command: str) -> str:
            return (await app.call_tool("bash", {"command": command}, agent=agent)).text.strip()

        await bash("one", f"secret=mine; cd {yard.file('below/x', '').parent}; sleep 600 & disown")
        assert await bash("two", 'echo "<${secret-}>"; pwd; jobs') == f"<>\n{os.getcwd()}"
        yard.config("shell:session", agents=agents, something="else")
        assert await bash("one", "echo $secret; basename $PWD") == "mine\nbelow"
        await app.call_tool("bash", {"restart": True}, agent="two")
        assert await bash("one", "echo $secret") == "mine"


async def test_C08_an_unknown_agent_is_an_error_that_names_the_known_ones(yard):
    async with yard.app(agents={"writer": {}, "reader": {}}) as app:
        for ask in (app.tools, app.tool_specs, lambda agent: app.origin("x", agent)):
            with pytest.raises(UnknownAgent, match="there is no agent 'reeder'; known: writer, reader"):
                ask("reeder")
        with pytest.raises(UnknownAgent, match="reeder"):
            await app.call_tool("x", {}, agent="reeder")
        assert app.tools() == [], "the first where none is called default"


# C11


async def test_C11_a_trailing_comma_in_a_descriptor_is_a_problem_that_points_at_it(yard):
    yard.tool("one", file="repo/one.bash")
    yard.file("repo/agent_plugin.json", '{\n  "bash_tools": [{"file": "one.bash"}],\n}\n')
    async with yard.app("bash:repo") as app:
        (problem,) = app.get_config_errors()
    assert problem["file"] == str(yard.folder / "repo" / "agent_plugin.json")
    assert (problem["line"], problem["column"]) == (2, 39)
    assert "trailing comma" in problem["detail"]
    assert problem["hint"] == "remove the comma"


# C15


async def test_C15_ids_where_packages_belong_get_the_advice_to_move_them(yard):
    yard.tool("good")
    config = write(
        yard,
        """{"plugin_policy": {"allow_bash_tools": true},
  "agents": {"default": {"plugins": ["bash:good.bash",
    "apply_patch", "web-search"]}}}""",
    )
    async with yard.open(config) as app:
        (problem,) = app.get_config_errors()
        assert [spec.name for spec in app.tool_specs()] == ["good"]
    assert (problem["type"], problem["line"], problem["column"]) == ("plugins_are_ids", 3, 5)
    assert "'apply_patch', 'web-search'" in problem["detail"]
    assert "'disabled_plugins'" in problem["hint"]
    assert "metadata" in problem["hint"]


# C17


@pytest.mark.parametrize(
    ("config", "place", "near"),
    [
        ('{\n "plugin_polcy": {}}', (2, 2), "plugin_policy"),
        ('{\n "agnets": {}}', (2, 2), "agents"),
        ('{"agents": {"a": {\n "disabled_plugin": []}}}', (2, 2), "disabled_plugins"),
        ('{"providers": {"a": {\n "mixin_ref": []}}}', (2, 2), "mixin_refs"),
        ('{"plugin_policy": {\n "allow_bash_tool": true}}', (2, 2), "allow_bash_tools"),
        ('{"limits": {\n "cpu": 3}}', (2, 2), "cpu_seconds"),
        ('{"agents": {"a": {"output": {\n "limit": 3}}}}', (2, 2), "limit_bytes"),
    ],
)
async def test_C17_an_unknown_key_is_a_warning_with_the_nearest_known_one(yard, config, place, near):
    async with yard.open(write(yard, config)) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["severity"]) == ("config_unknown_key", "warning")
    assert (problem["line"], problem["column"]) == place
    assert near in problem["hint"]


async def test_C17_a_key_in_the_wrong_place_is_told_the_right_one(yard):
    async with yard.app(mixin_refs=["m"], agents={"a": {"limits": {}}}) as app:
        hints = {problem["detail"]: problem["hint"] for problem in app.get_config_errors()}
    assert hints == {
        "'mixin_refs' does nothing here": "its place is in a provider, an agent or a mixin",
        "'limits' does nothing here": "its place is at the top level",
    }


async def test_C17_a_key_that_a_tool_asks_for_is_known_and_so_is_schema(yard):
    value_tool(yard, "agent", "models")
    rest = {"$schema": "https://example.org/x.json", "agent": "a", "models": "b", "anything": 1}
    async with yard.app("bash:probe.bash", **rest) as app:
        assert app.get_config_errors() == []


# C09


async def test_C09_disabled_beats_enabled_and_all_levels_count(yard):
    for name in "abcd":
        yard.tool(name)
    app = yard.app(
        *(f"bash:{name}.bash" for name in "abcd"),
        disabled_plugins=["a"],
        enabled_plugins=["a", "b"],
        providers={"p": {"disabled_plugins": ["b"]}},
        agents={"one": {"provider": "p", "disabled_plugins": ["c"]}, "two": {}},
    )
    async with app:
        assert [spec.name for spec in app.tool_specs("one")] == ["d"]
        assert [spec.name for spec in app.tool_specs("two")] == ["b", "c", "d"]
        assert (await app.call_tool("b", {}, agent="one")).failure == "unknown_tool"
        assert (await app.call_tool("b", {}, agent="two")).ok
        assert app.get_config_errors() == []


async def test_C09_metadata_of_the_session_replaces_what_the_configuration_says(yard):
    for name in "abc":
        yard.tool(name)
    plugins = [f"bash:{name}.bash" for name in "abc"]
    config = yard.config(*plugins, disabled_plugins=["a"], force_enabled_plugins=["c"])
    async with yard.open(config, session_metadata={"plugins": ["a"]}) as app:
        assert [spec.name for spec in app.tool_specs()] == ["a", "c"], "force is over everything"
        assert {found.plugin: found.reason for found in app.plugins()} == {
            "a": "among the plugins of the session's metadata",
            "b": "not among the plugins of the session's metadata",
            "c": "listed in force_enabled_plugins",
        }
    async with yard.open(config, session_metadata={"title": "x"}) as app:
        assert [spec.name for spec in app.tool_specs()] == ["b", "c"], "without `plugins` nothing is replaced"


async def test_C09_force_is_over_everything_but_a_plugin_that_failed_to_load(yard):
    yard.tool("good")
    yard.file("bad.bash", "exit 1\n")
    app = yard.app("bash:good.bash", "bash:bad.bash", disabled_plugins=["good"], force_enabled_plugins=["good", "bad"])
    async with app:
        assert [spec.name for spec in app.tool_specs()] == ["good"]
        assert codes(app) == ["bash_schema_exit_status"]


async def test_C09_every_decision_has_its_reason_and_its_place_even_through_a_mixin(yard):
    yard.tool("a")
    yard.tool("b")
    config = write(
        yard,
        """{"plugin_policy": {"allow_bash_tools": true},
 "plugins": ["bash:a.bash", "bash:b.bash"],
 "mixins": {"quiet": {
   "disabled_plugins": ["b"]}},
 "agents": {"default": {"mixin_refs": ["quiet"]}}}""",
    )
    async with yard.open(config) as app:
        on, off = app.plugins()
    assert (on.plugin, on.on, on.reason, str(on.where)) == ("a", True, "on by default", f"{config}:2:14")
    assert (off.plugin, off.on, off.reason) == ("b", False, "listed in disabled_plugins")
    assert str(off.where) == f"{config}:4:25"
    assert off.where.via == ("agents.default", "mixins.quiet")


async def test_C09_an_id_that_no_plugin_has_is_a_warning_unless_it_may_belong_to_one_that_failed(yard):
    yard.tool("search_text")
    lists = {"disabled_plugins": ["serch_text"], "agents": {"one": {"enabled_plugins": ["other"]}, "two": {}}}
    async with yard.app("bash:search_text.bash", **lists) as app:
        first, second = app.get_config_errors()
    assert {first["type"], second["type"]} == {"plugin_id_unknown"}
    assert "'serch_text' is turned off here" in first["detail"]
    assert "did you mean 'search_text'?" in first["hint"]
    async with yard.app("bash:search_text.bash", "bash:missing.bash", **lists) as app:
        assert codes(app) == ["bash_file_missing"]


@pytest.mark.parametrize(
    "spec", ["bash:nothing.bash", "path:nothing", "path:nothing.py", "node:nothing", "manifest:nothing.json"]
)
async def test_C10_what_is_not_there_is_told_where_it_is_named_and_by_which_way_it_came(yard, spec):
    text = f"""{{"mixins": {{"m": {{
  "plugins": ["{spec}"]}}}},
 "plugin_policy": {{"allow_bash_tools": true}},
 "agents": {{"a": {{"mixin_refs": ["m"]}}}}}}"""
    async with yard.open(write(yard, text)) as app:
        (problem,) = app.get_config_errors()
    assert (problem["file"], problem["line"], problem["column"]) == (str(yard.folder / "toolyard.json"), 2, 15)
    assert str(yard.folder / "nothing") in problem["detail"]
    assert problem["via"] == "agents.a → mixins.m"
    assert problem["hint"]


@pytest.mark.parametrize(
    ("spec", "code", "hint"),
    [
        ("shell:sesion", "plugin_unsupported", "did you mean 'shell:session'?"),
        ("bsh:./tools", "plugin_unsupported", "did you mean 'bash:./tools'?"),
        ("git:./tools", "plugin_unsupported", "did you mean 'git+./tools'?"),
        ("./my_tool.bash", "plugin_unsupported", "did you mean 'bash:./my_tool.bash'?"),
        ("./tools", "plugin_unsupported", "say what it is: 'path:./tools'"),
        ({"bash_tol": {}}, "plugin_unsupported", "did you mean 'bash_tool'?"),
        ({"bash_tool": {"fil": "x"}}, "plugin_spec", "did you mean 'file'?"),
        ({"bash_tool": {"file": "x", "path": "y"}}, "plugin_spec", "only 'path' has"),
        ({"bash_tool": {"path": "x", "subdirectory": "../y"}}, "plugin_outside", "name a folder below it"),
        ({"bash_tool": {"path": "x", "subdirectory": 5}}, "plugin_outside", "name a folder below it"),
        ({"node_tool": {"pth": "x"}}, "plugin_spec", "did you mean 'path'?"),
        ({"manifest": {"path": "x"}, "node_tool": {"path": "y"}}, "plugin_spec", "another entry"),
        ({"shell_session": {}, "timeout_seconds": 5}, "plugin_spec", "goes into that object"),
        ("path:./tolls", "plugin_missing", "did you mean 'tools'?"),
    ],
)
async def test_C10_a_spelling_that_is_none_gets_the_nearest_one(yard, spec, code, hint):
    yard.file("tools/x", "")
    async with yard.app(spec) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["line"] > 1) == (code, True)
    assert hint in problem["hint"]
