"""One file tool: what it is about to do, a diff of what would change, and its work in a process inside the sandbox."""

from __future__ import annotations

import base64
import os
import re
from typing import TYPE_CHECKING, Any

from toolyard.core.content import ImagePart
from toolyard.core.json_values import cut
from toolyard.core.regexes import late_pattern
from toolyard.core.text import call_line, seconds
from toolyard.core.tool import Plan, ToolResult
from toolyard.errors import NoSandbox, ProcessError
from toolyard.kinds.files.specs import SPECS, TIMEOUT
from toolyard.process.json_rpc import RpcError, RpcResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.core.reach import Reach
    from toolyard.core.tool import CallContext, JsonObject, ToolSpec
    from toolyard.kinds.files.seen_files import SeenFiles
    from toolyard.kinds.files.workers import FileWorkers
    from toolyard.process.json_rpc import RpcAnswer

PATCHED = late_pattern(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
LONGEST_PREVIEW = 20_000
LONGEST_DIFF = 4_000
"""Of what a result shows of a change, in characters; whoever shows it to people has the whole."""
METHODS = {"multi_edit": "edit"}
OF_GIT = (
    "lies in git's own folder. Tools have another one in its place, of which only what git itself does is handed over, "
    "so that this would be lost: use git, such as `git config`"
)


class FileTool:
    """A tool of the set."""

    kind = "files"
    confined = True

    def __init__(
        self,
        name: str,
        workers: FileWorkers,
        seen: SeenFiles,
        ripgrep: Callable[[], str | None],
        excludes: Callable[[], str],
    ) -> None:
        self.spec: ToolSpec = SPECS[name]
        self._changes = not self.spec.hints.read_only
        self._workers = workers
        self._seen = seen
        self._ripgrep = ripgrep
        self._excludes = excludes
        """What git ignores everywhere."""

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """The files that it is about; looking needs no more reach than `look`, changing no more than `work`."""
        paths = paths_of(arguments)
        if self._changes and self._workers.runner.policy and (path := next(filter(is_of_git, paths), None)):
            return failed(f"{path} {OF_GIT}")
        return Plan(
            arguments=arguments,
            argv=[self.spec.name, *paths],
            paths=paths,
            cwd=context.cwd,
            reach="work" if self._changes else "look",
        )

    async def preview(self, plan: Plan, context: CallContext) -> str:
        """What would change, as a diff; of a tool that only looks, the call."""
        if not self._changes:
            return call_line(self.spec.name, plan.arguments)
        try:
            answer = await self._ask(plan, context, dry=True, reach="look")
        except ProcessError as error:
            return f"Error: {error}"
        match answer:
            case RpcResult(result={"text": str(text)}):
                return cut(text.rstrip("\n"), LONGEST_PREVIEW)
            case RpcError(message=message):
                return f"Error: {message}"
        return ""

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        try:
            if self.spec.name == "grep" and (program := self._ripgrep()):
                found = await self._by_ripgrep(program, plan, context)
                if found is not None:
                    return as_lines(found, context)
            answer = await self._ask(plan, context, dry=False, reach=context.reach)
        except TimeoutError:
            answer = None
        except NoSandbox:
            raise
        except ProcessError as error:
            return failed(str(error), "crash")
        match answer:
            case RpcResult(result=result):
                return self._done(result, plan, context)
            case RpcError(message=message):
                return failed(message)
            case None:
                return failed(f"it did not finish within {seconds(self._limit(context))}", "timeout")
        return failed(f"the process that works for file tools was lost: {answer.reason}", "crash")

    async def _by_ripgrep(self, program: str, plan: Plan, context: CallContext) -> dict[str, Any] | None:
        """The matches; None where our own search has to look."""
        from toolyard.kinds.files.ripgrep import search

        excludes = "" if plan.arguments["no_ignore"] else self._excludes()
        request = {"workspace": str(context.cwd), "path": plan.arguments["path"], "excludes": excludes}
        where = await self._workers.ask("where", request, reach=context.reach, timeout=self._limit(context))
        if not isinstance(where, RpcResult) or not where.result["excludes_fit"]:
            return None
        runner, limit = self._workers.runner, self._limit(context)
        wanted = {**plan.arguments, "excludes": excludes}
        return await search(runner, program, where.result, wanted, reach=context.reach, timeout=limit)

    async def _ask(self, plan: Plan, context: CallContext, *, dry: bool, reach: Reach) -> RpcAnswer | None:
        arguments: dict[str, Any] = {**plan.arguments, "workspace": str(context.cwd), "dry": dry}
        if self.spec.name == "edit":
            arguments["edits"] = [dict(plan.arguments)]
        if "file_path" in arguments:
            arguments["seen"] = self._seen.version(context, arguments["file_path"])
            arguments["by_person"] = context.by_person
        if not self._changes:
            arguments["excludes"] = self._excludes()
        arguments["room"] = context.output_limit
        method = METHODS.get(self.spec.name, self.spec.name)
        return await self._workers.ask(method, arguments, reach=reach, timeout=self._limit(context))

    def _limit(self, context: CallContext) -> float:
        return context.timeout or self.spec.timeout or TIMEOUT

    def _done(self, result: Mapping[str, Any], plan: Plan, context: CallContext) -> ToolResult:
        if "lines" in result:
            return as_lines(result, context)
        if version := result.get("version"):
            self._seen.note(context, plan.arguments["file_path"], version)
            if real := result.get("path"):
                self._seen.note(context, real, version)
        for path, version in (result.get("versions") or {}).items():
            self._seen.note(context, path, version)
        text, diff = result["text"], result.get("diff", "")
        if diff and self.spec.name in ("edit", "multi_edit", "insert"):
            text = f"{text}\n{cut(diff, LONGEST_DIFF)}".rstrip("\n")
        return ToolResult(
            text=text,
            bytes_out=len(text.encode("utf-8", "replace")),
            data={"diff": diff} if diff else None,
            attachments=images_of(result),
        )


def paths_of(arguments: JsonObject) -> list[str]:
    """What a call is about, as it says."""
    named = [arguments[key] for key in ("file_path", "path", "old_path", "new_path") if key in arguments]
    return named or list(dict.fromkeys(PATCHED.findall(arguments.get("input", "")))) or [os.curdir]


def is_of_git(path: str) -> bool:
    return ".git" in path.split("/")


def images_of(result: Mapping[str, Any]) -> tuple[ImagePart, ...]:
    image = result.get("image")
    return (ImagePart(media_type=image["media_type"], data=base64.b64decode(image["data"])),) if image else ()


def as_lines(result: Mapping[str, Any], context: CallContext) -> ToolResult:
    """Rows of a search, as many as fit, and that there are more."""
    shown: list[str] = []
    room = context.output_limit
    for line in result["lines"]:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    if result["more"] or len(shown) < len(result["lines"]):
        total = f" of {result['total']}" if result.get("total") else ""
        shown.append(f"[the first {len(shown)}{total}; narrow the search, or raise limit]")
    text = "\n".join(shown) or "[nothing found]"
    return ToolResult(text=text, bytes_out=len(text.encode("utf-8", "replace")))


def failed(message: str, failure: Any = "exit_code") -> ToolResult:
    """What went wrong, in words for the model."""
    return ToolResult(text=f"Error: {message}", failure=failure, exit_code=1 if failure == "exit_code" else None)
