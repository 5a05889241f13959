"""Options of a request, such as the temperature, from the configuration, with controls to change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolyard.plugins.contract import FeatureContext

__all__ = ["RequestOptionsFeature"]

KEY = "request_options"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option that most models know."""

    label: str
    control: Mapping[str, Any]
    expected: str
    fits: Callable[[Any], bool]


def number_between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


EFFORTS = ("minimal", "low", "medium", "high")
OPTIONS = {
    "temperature": Option(
        label="Temperature",
        control={"ui_type": "number", "minimum": 0, "maximum": 2, "step": 0.1},
        expected="a number from 0 to 2",
        fits=number_between(0, 2),
    ),
    "top_p": Option(
        label="Top p",
        control={"ui_type": "number", "minimum": 0, "maximum": 1, "step": 0.05},
        expected="a number from 0 to 1",
        fits=number_between(0, 1),
    ),
    "max_tokens": Option(
        label="Longest answer, in tokens",
        control={"ui_type": "number", "minimum": 1, "step": 1},
        expected="a whole number above 0",
        fits=is_count,
    ),
    "reasoning_effort": Option(
        label="Reasoning",
        control={"ui_type": "select", "options": list(EFFORTS)},
        expected=f"one of {', '.join(EFFORTS)}",
        fits=EFFORTS.__contains__,
    ),
    "parallel_tool_calls": Option(
        label="Several tool calls at once",
        control={"ui_type": "toggle"},
        expected="true or false",
        fits=lambda value: isinstance(value, bool),
    ),
}


class RequestOptionsFeature:
    """Reads the key `request_options` of an agent's configuration; options that it does not know pass as given."""

    id = "feature_request_options"

    def request_options(self, config: Mapping[str, Any], context: FeatureContext) -> dict[str, Any]:
        """The options; one that does not fit is left out and reported, null means not given."""
        given = config.get(KEY) or {}
        if not isinstance(given, dict):
            context.report(f"'{KEY}' must be an object", hint=f'"{KEY}": {{"temperature": 0.2}}')
            return {}
        for name, value in given.items():
            if value is not None and name in OPTIONS and not OPTIONS[name].fits(value):
                context.report(f"'{KEY}.{name}' is {value!r}, not {OPTIONS[name].expected}")
        return {name: value for name, value in given.items() if value is not None and may_pass(name, value)}

    def get_ui_elements(
        self,
        config: Mapping[str, Any],
        tags: Sequence[str],  # noqa: ARG002 - the contract's names
        models: Sequence[str],  # noqa: ARG002
    ) -> list[dict[str, Any]]:
        """A control for each option that is known, with its value now."""
        given = config.get(KEY)
        values = given if isinstance(given, dict) else {}
        return [
            {"id": f"{KEY}.{name}", "label": option.label, **option.control, "value": values.get(name)}
            for name, option in OPTIONS.items()
        ]


def may_pass(name: str, value: Any) -> bool:
    return name not in OPTIONS or OPTIONS[name].fits(value)
