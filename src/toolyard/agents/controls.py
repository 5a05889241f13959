"""The controls of an agent: what a person can set for a conversation, with types, defaults and values."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.agents.request import features_of
from toolyard.errors import ControlError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject
    from toolyard.runtime.loaded import Loaded

PLUGIN = "plugins."
"""What the ids of the controls begin with that turn plugins on and off."""
KINDS = {"toggle": "true or false", "number": "a number", "text": "a text", "select": "one of its options"}


class UiSchema(msgspec.Struct, frozen=True, kw_only=True):
    """Every control as a JSON object: at least `id`, `label`, `ui_type`, `default` and `value`."""

    controls: Sequence[JsonObject]
    problems: Sequence[Problem] = ()

    def control(self, id: str) -> JsonObject:
        """The control of an id; ControlError when there is none."""
        for one in self.controls:
            if one["id"] == id:
                return one
        near = difflib.get_close_matches(id, [str(one["id"]) for one in self.controls], n=1)
        raise ControlError(f"there is no control '{id}'{f'; did you mean {near[0]!r}?' if near else ''}")


async def ui_schema(loaded: Loaded, agent: str, metadata: JsonObject) -> UiSchema:
    """The controls of an agent with the values that they have in a conversation with this metadata."""
    chosen, given = chosen_plugins(metadata), set_controls(metadata)
    usual = await features_of(loaded, agent).ui_elements()
    here = await features_of(loaded, agent, chosen=chosen, controls=given).ui_elements()
    defaults = {one.get("id"): one for one in usual.elements if isinstance(one, dict)}
    added = [added_control(one, defaults.get(one.get("id"), {}), given) for one in here.elements if is_control(one)]
    controls = [*plugin_controls(loaded, agent, chosen), model_control(loaded, agent, given), *added]
    return UiSchema(controls=controls, problems=here.problems)


def plugin_controls(loaded: Loaded, agent: str, chosen: tuple[str, ...] | None) -> Iterator[JsonObject]:
    usual, here = loaded.agent(agent).catalog, loaded.agent(agent, chosen).catalog
    for id, found in here.plugins.items():
        yield {
            "id": f"{PLUGIN}{id}",
            "label": id,
            "ui_type": "toggle",
            "kind": found.plugin.kind,
            "default": usual.decisions[id].on,
            "value": here.decisions[id].on,
            "reason": here.decisions[id].reason,
        }


def model_control(loaded: Loaded, agent: str, given: JsonObject) -> JsonObject:
    default = loaded.configuration.for_agent(agent).get("model")
    return {
        "id": "model",
        "label": "Model",
        "ui_type": "text",
        "default": default,
        "value": given.get("model", default),
    }


def added_control(element: JsonObject, usual: JsonObject, given: JsonObject) -> JsonObject:
    """A control that a feature offers; its default is what it shows without the conversation's own settings."""
    default = element.get("default", usual.get("value"))
    value = given.get(str(element["id"]), element.get("value", default))
    return {"label": element["id"], "ui_type": "text", **element, "default": default, "value": value}


def is_control(element: Any) -> bool:
    return isinstance(element, dict) and isinstance(element.get("id"), str)


def metadata_with(schema: UiSchema, metadata: JsonObject, id: str, value: Any) -> dict[str, Any]:
    """What of a conversation's metadata changes when a control is set; None for the value goes back to the default."""
    control = schema.control(id)
    if value is not None and (wanted := misfit(control, value)):
        raise ControlError(f"'{id}' takes {wanted}, not {value!r}")
    if id.startswith(PLUGIN):
        on = [str(one["id"])[len(PLUGIN) :] for one in schema.controls if is_on(one)]
        name, wants = id[len(PLUGIN) :], control["default"] if value is None else value
        return {"plugins": [one for one in on if one != name] + ([name] if wants else [])}
    given = {**set_controls(metadata), id: value}
    return {"controls": {name: one for name, one in given.items() if one is not None}}


def is_on(control: JsonObject) -> bool:
    return str(control["id"]).startswith(PLUGIN) and control["value"] is True


def misfit(control: JsonObject, value: Any) -> str:
    """What a control takes, if it is not this."""
    kind = str(control["ui_type"])
    match kind:
        case "toggle":
            fits = isinstance(value, bool)
        case "number":
            low, high = control.get("minimum", float("-inf")), control.get("maximum", float("inf"))
            fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
            return "" if fits else f"a number from {low} to {high}"
        case "select":
            options = [one.get("value") if isinstance(one, dict) else one for one in control.get("options", ())]
            return "" if value in options else f"one of {', '.join(map(str, options))}"
        case "text":
            fits = isinstance(value, str)
        case _:
            return ""  # a kind of the plugin's own, which judges by itself
    return "" if fits else KINDS[kind]


def chosen_plugins(metadata: JsonObject) -> tuple[str, ...] | None:
    """The plugins that a conversation itself names; None when the configuration decides."""
    named = metadata.get("plugins")
    return tuple(str(one) for one in named) if isinstance(named, list) else None


def set_controls(metadata: JsonObject) -> JsonObject:
    """What a conversation itself sets, by the ids of controls."""
    given = metadata.get("controls")
    return given if isinstance(given, dict) else {}
