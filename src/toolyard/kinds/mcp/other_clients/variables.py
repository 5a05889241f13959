"""Variables in the files of other clients, in each one's spelling."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolyard.files.door import LARGEST_CONFIGURATION, Door

if TYPE_CHECKING:
    from toolyard.core.tool import Json

VARIABLE = re.compile(
    r"\$\{(?P<special>workspaceFolder|workspaceRoot|userHome|pathSeparator|/)\}"
    r"|\$\{input:(?P<input>[^}]+)\}"
    r"|\$\{(?:env:)?(?P<braced>[A-Za-z_]\w*)(?::-(?P<otherwise>[^}]*))?\}"
    r"|\{env:(?P<opencode>[A-Za-z_]\w*)\}"
    r"|^\$(?P<whole>[A-Za-z_]\w*)$"
)
"""`${VAR}`, `${VAR:-otherwise}`, `${env:VAR}`, `{env:VAR}`, a whole `$VAR`, and what editors know by themselves."""


def with_variables(value: Json, folder: str, missing: list[str]) -> Json:
    """A value with its variables replaced; those that are not set are added to `missing`."""
    match value:
        case str():
            return VARIABLE.sub(lambda found: meant(found, folder, missing), value)
        case dict():
            return {key: with_variables(part, folder, missing) for key, part in value.items() if part is not None}
        case list():
            return [with_variables(part, folder, missing) for part in value]
    return value


def meant(found: re.Match[str], folder: str, missing: list[str]) -> str:
    if special := found["special"]:
        return {"userHome": os.path.expanduser("~"), "pathSeparator": os.sep, "/": os.sep}.get(special, folder)
    if asked := found["input"]:  # which an editor asks for and keeps; here it is a variable of that name
        return looked_up(re.sub(r"\W", "_", asked).upper(), missing)
    return looked_up(found["braced"] or found["opencode"] or found["whole"], missing, found["otherwise"])


def looked_up(name: str, missing: list[str], otherwise: str | None = None) -> str:
    value = os.environ.get(name) or otherwise
    if value is None:
        missing.append(name)
    return value or ""


def env_file(name: Json, folder: str, missing: list[str]) -> dict[str, str]:
    """The variables of a file with lines as `NAME=value`; a file that cannot be read counts as missing."""
    if not isinstance(name, str):
        return {}
    try:
        path = os.path.join(folder, os.path.expanduser(with_variables(name, folder, missing)))
        text = Door.here().read_accepted(path, largest=LARGEST_CONFIGURATION).text()
    except (OSError, ValueError):
        missing.append(name)
        return {}
    lines = (line.strip().removeprefix("export ").partition("=") for line in text.splitlines())
    return {key.strip(): value.strip().strip("'\"") for key, sign, value in lines if sign and not key.startswith("#")}
