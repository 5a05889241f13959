"""What plugins say of themselves, and the decisions that come of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolyard.config.layers import layers_of
from toolyard.plugins.catalog import Catalog
from toolyard.plugins.enablement import Circumstances, EnablementRules, decide, read_circumstances, read_rules
from toolyard.plugins.plugin import Plugin


def plugin(id: str, *, default_enabled: bool = True, kind: str = "tools", **says) -> Plugin:
    """A plugin whose author's object has the given attributes."""
    return Plugin(id=id, kind=kind, tools=[], default_enabled=default_enabled, instance=type("Author", (), says)())


def answering(answer):
    return lambda self, config, tags, models, context: answer


def rules(**lists: list[str]) -> EnablementRules:
    places = {key: {id: (key, index) for index, id in enumerate(ids)} for key, ids in lists.items()}
    return EnablementRules(**places)


def on(plugins, the_rules=None, **circumstances) -> list[str]:
    decisions = decide(plugins, the_rules or EnablementRules(), Circumstances(**circumstances))
    return [id for id, decision in decisions.items() if decision.on]


def test_a_plugin_that_is_off_by_default_is_turned_on_by_name():
    plugins = [plugin("a", default_enabled=False), plugin("b", default_enabled=False), plugin("c")]
    assert on(plugins) == ["c"]
    assert on(plugins, rules(enabled=["a", "c"])) == ["a", "c"]
    assert on(plugins, rules(enabled=["a"], disabled=["a", "c"])) == []


@pytest.mark.parametrize(
    ("says", "tags", "expected"),
    [
        ({"is_enabled": answering(True), "required_tags": ["x"]}, [], True),
        ({"is_enabled": answering(False)}, [], False),
        ({"is_enabled": answering(None)}, [], True),
        ({"is_enabled": answering(None), "required_tags": ["x"]}, [], False),
        ({"is_enabled": answering(None), "required_tags": ["x"]}, ["x", "y"], True),
        ({"required_tags": lambda self: ["x", "y"]}, ["x"], False),
        ({"required_tags": lambda self: ["x", "y"]}, ["x", "y"], True),
        ({"forbidden_tags": lambda self: {"x"}}, ["x"], False),
        ({"forbidden_tags": lambda self: {"x"}}, ["y"], True),
        ({"required_tags": "x", "forbidden_tags": ("y",)}, ["x"], True),
        ({"required_tags": "x", "forbidden_tags": ("y",)}, ["x", "y"], False),
    ],
)
def test_yes_and_no_decide_and_none_leaves_it_to_the_tags(says, tags, expected):
    assert on([plugin("a", **says)], tags=tags) == (["a"] if expected else [])


def test_a_plugin_is_told_config_tags_models_and_context():
    heard = []

    def is_enabled(self, config, tags, models, context):
        heard.append((config, set(tags), list(models), context))

    told = {"config": {"k": 1}, "tags": ["x"], "models": ["m"], "context": {"agent": "a"}}
    on([plugin("a", is_enabled=is_enabled), plugin("b", tags=["of b"])], **told)
    assert heard == [({"k": 1}, {"x", "of b"}, ["m"], {"agent": "a"})]


def test_tags_come_from_plugins_that_are_on_and_from_the_provider_in_use():
    wants = plugin("wants", required_tags=["given"])
    giver = plugin("giver", tags=lambda self: ["given"])
    assert on([wants, giver]) == ["wants", "giver"]
    assert on([wants, giver], rules(disabled=["giver"])) == []
    provider = plugin("openrouter", kind="provider", tags=["given"])
    assert on([wants, provider], provider="openrouter") == ["wants", "openrouter"]
    assert on([wants, provider], provider="other") == ["openrouter"]


def test_a_plugin_cannot_turn_itself_on_against_the_configuration():
    eager = plugin("eager", is_enabled=answering(True))
    assert on([eager], rules(disabled=["eager"])) == []
    assert on([plugin("shy", default_enabled=False, is_enabled=answering(True))]) == []


def test_force_comes_last():
    never = plugin("never", default_enabled=False, is_enabled=answering(False), required_tags=["x"])
    assert on([never], rules(disabled=["never"], forced=["never", "not there"])) == ["never"]


def raising(error: BaseException):
    def is_enabled(self, *told):
        raise error

    return is_enabled


async def coroutine(self, *told):
    return True


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"is_enabled": raising(ValueError("no idea"))}, "ValueError: no idea"),
        ({"is_enabled": raising(SystemExit(3))}, "SystemExit: 3"),
        ({"is_enabled": answering("yes")}, "must return True, False or None, not str"),
        ({"is_enabled": coroutine}, "must return True, False or None, not coroutine"),
        ({"is_enabled": lambda self: True}, "TypeError"),
        ({"required_tags": [1]}, "required_tags must be strings"),
        ({"forbidden_tags": 7}, "TypeError"),
    ],
)
def test_an_authors_mistake_turns_off_that_plugin_alone_and_says_why(says, words):
    found = decide([plugin("bad", **says), plugin("good")], EnablementRules(), Circumstances())
    assert found["good"].on
    assert (found["bad"].on, found["bad"].faulty) == (False, True)
    assert words in found["bad"].reason


class OneSource:
    """A source that holds plugins as they are given to it."""

    key, conditions, file, problems = "source", None, Path("source"), ()

    def __init__(self, *plugins: Plugin) -> None:
        self._plugins = plugins

    def plugins(self):
        return self._plugins

    def is_current(self) -> bool:
        return True

    def load_known(self) -> bool:
        return True

    async def load(self) -> None: ...

    async def refresh(self) -> bool:
        return False

    async def aclose(self) -> None: ...


def test_a_catalogue_asks_anew_each_time_and_reports_who_cannot_answer():
    answers = [True, False, RuntimeError("broken")]

    def is_enabled(self, *told):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    catalog = Catalog([OneSource(plugin("a", is_enabled=is_enabled))])
    assert catalog.decisions["a"].on
    assert not catalog.decisions["a"].on
    answers.extend([RuntimeError("broken")] * 9)
    (problem,) = catalog.rivalries()
    assert problem.code == "plugin_enablement"
    assert "plugin 'a' is off: asking it failed: RuntimeError: broken" in problem.message


def test_rules_remember_the_broadest_place_and_skip_what_is_no_id():
    config = {
        "disabled_plugins": ["a", 3],
        "providers": {"p": {"disabled_plugins": ["a", "b"], "provider": "openrouter"}},
        "agents": {"one": {"provider": "p", "disabled_plugins": "no list", "tags": ["t", 1], "model": "m"}},
    }
    layers = layers_of(config, "one")
    assert read_rules(layers).disabled == {
        "a": ("disabled_plugins", 0),
        "b": ("providers", "p", "disabled_plugins", 1),
    }
    told = read_circumstances(layers, {"tags": ["t", 1], "model": "m", "provider": "p"}, {})
    assert (told.tags, told.models, told.provider) == (["t"], ["m"], "openrouter")
    assert read_rules(layers, "not a list").chosen is None
    assert read_rules(layers, ["a", 1]).chosen == ["a"]
