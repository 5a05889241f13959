"""Turns one variable of a system message into text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .runtime import FAILED

if TYPE_CHECKING:
    from toolyard.plugins.contract import FeatureContext

    from .runtime import Runtime

__all__ = ["render"]

WAYS = ("text", "files", "inline_code", "code")


def render(name: str, variable: Any, runtime: Runtime, context: FeatureContext) -> str:
    """The text that stands for a variable; empty when its condition does not hold, or after a report."""
    what = f"system_message variable '{name}'"
    if isinstance(variable, str):
        return variable
    if not isinstance(variable, dict) or sum(way in variable for way in WAYS) != 1:
        context.report(f"{what} needs exactly one of {', '.join(WAYS)}", hint=f'"{name}": {{"text": "…"}}')
        return ""
    if not holds(variable.get("condition"), f"condition of {what}", runtime, context):
        return ""
    value = value_of(variable, what, runtime, context)
    return "" if value is None or value is FAILED else str(value)


def value_of(variable: dict[str, Any], what: str, runtime: Runtime, context: FeatureContext) -> Any:
    match variable:
        case {"text": text}:
            return text
        case {"files": files}:
            return joined(files, what, runtime)
    return run(variable, what, runtime, context)


def holds(condition: Any, what: str, runtime: Runtime, context: FeatureContext) -> bool:
    """Whether a variable is wanted; without a condition it is."""
    if condition is None or isinstance(condition, bool):
        return condition is not False
    if not isinstance(condition, dict):
        context.report(f"{what} must be true, false or an object", hint='{"inline_code": "…"}')
        return False
    value = run(condition, what, runtime, context)
    return value is not FAILED and bool(value)


def run(snippet: dict[str, Any], what: str, runtime: Runtime, context: FeatureContext) -> Any:
    """The value of code, which stands in the configuration itself or in a file."""
    match snippet:
        case {"inline_code": str(code)}:
            return runtime.evaluate(code, what)
        case {"code": name}:
            found = runtime.read(name, what)
            return FAILED if found is None else runtime.evaluate(found[1], what, file=found[0])
    context.report(f"{what} needs 'inline_code' or 'code', a text", hint='{"inline_code": "…"}')
    return FAILED


def joined(files: Any, what: str, runtime: Runtime) -> str:
    """The texts of several files, with an empty line between them."""
    names = files if isinstance(files, list) else [files]
    found = [runtime.read(name, what) for name in names]
    return "\n\n".join(text.rstrip("\n") for each in found if each for text in each[1:])
