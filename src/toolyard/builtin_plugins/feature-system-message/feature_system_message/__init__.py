"""System messages from a template: `{{NAME}}` stands for text, files or the result of a piece of Python."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from .runtime import Runtime
from .variables import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.plugins.contract import FeatureContext

__all__ = ["SystemMessageFeature"]

VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
KEY = "system_message"


class SystemMessageFeature:
    """Reads the key `system_message` of an agent's configuration."""

    id = "feature_system_message"

    def build_system_message(self, config: Mapping[str, Any], context: FeatureContext) -> str | None:
        """The template with every variable replaced; a faulty one is reported and replaced by nothing."""
        settings = config.get(KEY)
        if settings is None or isinstance(settings, str):
            return settings
        template, variables = self._parts(settings, context)
        if template is None:
            return None
        runtime = Runtime(settings.get("runtime_code"), {"CONFIG": config}, context)
        wanted = dict.fromkeys(VARIABLE.findall(template))
        values = {name: render(name, variables[name], runtime, context) for name in wanted if name in variables}
        for name in (name for name in wanted if name not in variables):
            near = difflib.get_close_matches(name, variables, n=1)
            hint = f"did you mean '{near[0]}'?" if near else "add it to system_message.variables"
            context.report(f"the template names a variable '{name}' that there is not", hint=hint)
        return VARIABLE.sub(lambda found: values.get(found[1], found[0]), template)

    def get_ui_elements(
        self, config: Mapping[str, Any], tags: Sequence[str], models: Sequence[str], context: FeatureContext
    ) -> list[Any]:
        """What the runtime file's own `get_ui_elements()` returns."""
        settings = config.get(KEY)
        if not isinstance(settings, dict) or not settings.get("runtime_code"):
            return []
        known = {"CONFIG": config, "TAGS": list(tags), "MODELS": list(models)}
        return Runtime(settings["runtime_code"], known, context).ui_elements()

    def _parts(self, settings: Any, context: FeatureContext) -> tuple[str | None, Mapping[str, Any]]:
        if not isinstance(settings, dict):
            context.report(f"'{KEY}' must be a text or an object", hint=f'"{KEY}": {{"template": "…"}}')
            return None, {}
        template, variables = settings.get("template"), settings.get("variables", {})
        if not isinstance(template, str):
            context.report(f"'{KEY}.template' must be a text", hint='"template": "{{BASE}}"')
            return None, {}
        if not isinstance(variables, dict):
            context.report(f"'{KEY}.variables' must be an object", hint='"variables": {"BASE": {"text": "…"}}')
            return template, {}
        return template, variables
