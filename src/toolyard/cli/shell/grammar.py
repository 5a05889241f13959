"""A bash beside the session that runs no command: it says what is a whole command, and which words there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.errors import ProcessError
from toolyard.process.child import Children, ChildRequest
from toolyard.process.environment import ParentEnvironment
from toolyard.process.interpreter import find_interpreter

if TYPE_CHECKING:
    from toolyard.process.child import ChildOutcome


BASH_TIMEOUT = 10.0
UNFINISHED = re.compile(
    r"^[^`\n]*: (?:syntax error: )?unexpected (?:EOF|end of file)|^[^`\n]*: warning: here-document ", re.MULTILINE
)
"""Before its own words bash quotes nothing of the text, so that no command can look like one of these."""
ONLY_AS_A_WORD = "}"
"""Wrong where a command begins, right as a further word of one."""


class Grammar:
    """Asks bash; use it with `async with`."""

    def __init__(self) -> None:
        self._children = Children()
        self._bash = find_interpreter("bash")
        self._parent = ParentEnvironment()

    async def __aenter__(self) -> Grammar:
        self._children.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._children.aclose()

    async def is_unfinished(self, command: str) -> bool:
        """Whether a further line belongs to the command: an open quote, block or here-document, a final backslash."""
        if UNFINISHED.search(await self._complaint(command)):
            return True
        # Bash takes a final backslash for a whole command, so it is asked what the next line would be.
        return command.endswith("\\") and not await self._complaint(f"{command}\n{ONLY_AS_A_WORD}")

    async def words(self) -> frozenset[str]:
        """Bash's builtins and keywords."""
        return await self._list("compgen -b; compgen -k")

    async def variables(self) -> frozenset[str]:
        """The variables of a new shell."""
        return await self._list("compgen -v")

    async def _complaint(self, command: str) -> str:
        outcome = await self._ask(["-n"], stdin=(command + "\n").encode("utf-8", "surrogateescape"))
        return outcome.stderr.text if outcome else ""

    async def _list(self, question: str) -> frozenset[str]:
        outcome = await self._ask(["--noprofile", "--norc", "-c", question])
        return frozenset(outcome.stdout.text.split()) if outcome else frozenset()

    async def _ask(self, options: list[str], stdin: bytes | None = None) -> ChildOutcome | None:
        """None when bash cannot be asked: then every line is a command, and the session itself says what is wrong."""
        if self._bash is None:
            return None
        request = ChildRequest(
            argv=[self._bash.path, *options],
            cwd="/",
            env=self._parent.current(),
            extra_env={"LC_ALL": "C"},
            stdin=stdin,
            timeout=BASH_TIMEOUT,
        )
        try:
            return await self._children.run(request)
        except ProcessError:
            return None
