"""Runs the Python code of a configuration for one request, and reports its errors with file and line."""

from __future__ import annotations

import copy
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolyard.plugins.contract import FeatureContext

__all__ = ["FAILED", "Runtime"]

FAILED = object()
"""The value of a snippet that could not be run."""


class Runtime:
    """Runs snippets, which see the names that the application gives and the public ones of the runtime file."""

    def __init__(self, file: Any, known: Mapping[str, Any], context: FeatureContext) -> None:
        self._context = context
        # A copy, since a snippet must not change what others read.
        self._names = copy.deepcopy(dict(known))
        if file is not None:
            self._run_file(file)

    def evaluate(self, code: str, what: str, *, file: Path | None = None) -> Any:
        """The value of an expression, or the VALUE that a block of code sets; `FAILED` after a report."""
        name = str(file) if file else f"<{what}>"
        names = {**self._names, "__name__": "system_message", "__file__": name}
        try:
            try:
                return eval(compile(code.strip(), name, "eval"), names)  # noqa: S307 - the configuration's own code
            except SyntaxError as error:
                if error.filename != name:
                    raise
            exec(compile(code, name, "exec"), names)  # noqa: S102
        except (Exception, SystemExit) as error:
            self._report(what, error, name)
            return FAILED
        if "VALUE" in names:
            return names["VALUE"]
        self._context.report(
            f"{what} is neither an expression nor sets VALUE",
            hint="end it with VALUE = …",
            file=str(file) if file else None,
        )
        return FAILED

    def read(self, name: Any, what: str) -> tuple[Path, str] | None:
        """A file that the configuration names; None after a report."""
        if not isinstance(name, str) or not name:
            self._context.report(f"{what} must be the path of a file")
            return None
        path = self._context.config_dir / name
        try:
            return path, self._context.read_text(name)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            hint = "relative paths start at the folder of the configuration file"
            self._context.report(f"{what}: {path} cannot be read: {reason}", hint=hint)
            return None

    def ui_elements(self) -> list[Any]:
        """What the runtime file's own function returns, if it has one."""
        function = self._names.get("get_ui_elements")
        if not callable(function):
            return []
        try:
            elements = function()
        except (Exception, SystemExit) as error:
            self._report("get_ui_elements() of system_message.runtime_code", error, None)
            return []
        if isinstance(elements, list | tuple):
            return list(elements)
        self._context.report(f"get_ui_elements() gives {type(elements).__name__}, not a list")
        return []

    def _run_file(self, file: Any) -> None:
        what = "system_message.runtime_code"
        found = self.read(file, what)
        if found is None:
            return
        path, code = found
        names = {**self._names, "__name__": "system_message_runtime", "__file__": str(path)}
        try:
            exec(compile(code, str(path), "exec"), names)  # noqa: S102
        except (Exception, SystemExit) as error:
            self._report(what, error, str(path))
            return
        self._names |= {name: value for name, value in names.items() if not name.startswith("_")}

    def _report(self, what: str, error: BaseException, name: str | None) -> None:
        """Say which line of which code failed, and where that came from when it was in a file."""
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == name), None)
        if isinstance(error, SyntaxError) and error.filename == name:
            line = error.lineno
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        place = f", line {line}" if line else ""
        text = f"{what}{place}: {type(error).__name__}: {message}"
        files = [frame for frame in frames if not frame.filename.startswith("<") and frame.filename != __file__]
        if name and not name.startswith("<"):
            self._context.report(text, file=name, line=line)
        elif files:
            self._context.report(text, file=files[-1].filename, line=files[-1].lineno)
        else:
            self._context.report(text)
