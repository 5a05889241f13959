"""The kind of bash tools: what the rest of the application knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.bash_script.reference import (
    MODES,
    SUFFIXES,
    BashFile,
    BashRepository,
    read_options,
    read_path,
    read_repository,
)
from toolyard.kinds.bash_script.settings import BashSettings
from toolyard.plugins.acquire.git_reference import split_reference
from toolyard.plugins.kind import Kind, Named

if TYPE_CHECKING:
    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json
    from toolyard.kinds.bash_script.author import BashAuthoring
    from toolyard.plugins.host import Host
    from toolyard.plugins.kind import Source


class BashScripts(Kind):
    """Bash files as tools."""

    name = "bash"
    spellings = (
        "bash:PATH",
        "bash+git:URL#REF",
        '{"bash_tool": {"file": PATH}}',
        '{"bash_tool": {"path": FOLDER}}',
        '{"bash_tool": {"git": URL}}',
    )
    suffixes = SUFFIXES
    modes = MODES
    settings = BashSettings

    def read(self, entry: Json, at: Place) -> Named | None:
        """A file, a folder whose descriptor lists files, or a repository with such a folder."""
        match entry:
            case str() if entry.startswith("bash:"):
                return read_path(entry.removeprefix("bash:"), at)
            case str() if entry.startswith("bash+git:"):
                url, ref = split_reference(entry.removeprefix("bash+git:"))
                return read_repository({"git": url, "ref": ref}, at)
            case {"bash_tool": {"git": _} as given}:
                return read_repository(given, at)
            case {"bash_tool": options}:
                return read_options(options, at)
        return None

    def refusal(self, reference: BashFile | BashRepository, host: Host) -> Problem | None:
        """Nothing of a bash tool runs unless the configuration says so."""
        if not host.settings(BashSettings).allow_bash_tools:
            message = "bash tools are not allowed by this configuration"
            hint = 'set "plugin_policy": {"allow_bash_tools": true}'
            return reference.at.problem("bash_tools_not_allowed", message, hint)
        if host.interpreter("bash") is None:
            hint = "install bash 4.4 or newer and put it on PATH"
            return reference.at.problem("bash_missing", "there is no bash on PATH", hint)
        return None

    def source(self, reference: BashFile | BashRepository, host: Host) -> Source:
        if isinstance(reference, BashFile):
            from toolyard.kinds.bash_script.source import BashFileSource

            return BashFileSource(reference.file, host)
        from toolyard.kinds.bash_script.repository import BashRepositorySource

        return BashRepositorySource(reference, host)

    @property
    def author(self) -> BashAuthoring:
        from toolyard.kinds.bash_script.author import BashAuthoring

        return BashAuthoring()
