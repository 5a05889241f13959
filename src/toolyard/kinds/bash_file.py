"""From a bash file to its schema: read from its comments, or by running `schema` once for each content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.errors import CannotStart
from toolyard.kinds.bash_comments import CommentTool, has_comment_tags, parameters_schema, parse_comments
from toolyard.kinds.bash_schema import BashSchema, SchemaFault, parse_schema
from toolyard.process.child import ChildOutcome, Children, ChildRequest
from toolyard.process.environment import ParentEnvironment

if TYPE_CHECKING:
    from toolyard.kinds.bash_schema_cache import SchemaCache
    from toolyard.kinds.bash_script import BashConditions

__all__ = ["Bash", "find_bash", "read_schema"]

SCHEMA_LIMIT = 1 << 20
SCHEMA_SUBCOMMAND = re.compile(
    r"""["']?\bschema["']?[ \t]*[)|] | ={1,2}[ \t]*["']?schema\b | ^[ \t]*schema[ \t]*\(\)""", re.X | re.M
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bash:
    """The interpreter that runs tool files."""

    path: str
    identity: str
    """Changes when another bash takes its place."""


def find_bash() -> Bash | None:
    """The bash on PATH."""
    path = shutil.which("bash")
    if path is None:
        return None
    real = os.path.realpath(path)
    stat = Path(real).stat()
    return Bash(path=os.path.abspath(path), identity=f"{real}:{stat.st_mtime_ns}:{stat.st_size}")


async def read_schema(
    file: Path, source: bytes, *, bash: Bash, children: Children, conditions: BashConditions, cache: SchemaCache
) -> BashSchema | tuple[SchemaFault, ...]:
    """The schema of a file's content, from the cache if this content was read before."""
    key = hashlib.sha256(b"\0".join((bash.identity.encode(), file.stem.encode("utf-8", "replace"), source))).hexdigest()
    if (known := cache.get(key)) is not None:
        return known
    text = source.decode("utf-8", "replace")
    if has_comment_tags(text) and not SCHEMA_SUBCOMMAND.search(text):
        read = schema_from_comments(file, text)
    else:
        read = await schema_from_run(file, bash, children, conditions)
    if isinstance(read, BashSchema):
        cache.put(key, read)
        return read
    return tuple(explain_line_ends(fault, source) for fault in read)


def schema_from_comments(file: Path, text: str) -> BashSchema | tuple[SchemaFault, ...]:
    """A file that declares itself in comments is named after its file."""
    parsed = parse_comments(text)
    if not isinstance(parsed, CommentTool):
        return tuple(
            SchemaFault(code="bash_schema_comments", message=fault.message, hint=fault.hint, line=fault.line)
            for fault in parsed
        )
    return BashSchema(
        id=file.stem.replace("-", "_"),
        version=parsed.version or "0.0.0",
        args_mode="comments",
        description=parsed.description,
        parameters=parameters_schema(parsed),
    )


async def schema_from_run(
    file: Path, bash: Bash, children: Children, conditions: BashConditions
) -> BashSchema | tuple[SchemaFault, ...]:
    """Run `bash FILE schema` and check what it prints."""
    try:
        outcome = await children.run(
            ChildRequest(
                argv=[bash.path, str(file), "schema"],
                cwd=Path.cwd(),
                env=ParentEnvironment(passed=conditions.pass_env).with_extra({"AGENT_TOOL_PYTHON": sys.executable}),
                timeout=conditions.timeout,
                limits=conditions.limits,
                output_limit=SCHEMA_LIMIT,
            )
        )
    except CannotStart as error:
        return (SchemaFault(code="bash_schema_exit_status", message=f"`schema` did not start: {error}", hint=""),)
    fault = outcome_fault(outcome, conditions)
    return (fault,) if fault else parse_schema(outcome.stdout.text)


def outcome_fault(outcome: ChildOutcome, conditions: BashConditions) -> SchemaFault | None:
    """What is wrong before the output is even looked at."""
    if outcome.timed_out:
        return SchemaFault(
            code="bash_schema_timeout",
            message=f"`schema` did not finish within {conditions.timeout:g} seconds",
            hint="`schema` should only print; plugin_policy.bash_timeout_seconds is the limit",
        )
    if outcome.exit_code != 0:
        said = outcome.stderr.text.strip().splitlines()
        return SchemaFault(
            code="bash_schema_exit_status",
            message=f"`schema` exited with status {outcome.exit_code}" + (f": {said[-1][:300]}" if said else ""),
            hint="run it by hand: bash FILE schema",
        )
    if outcome.stdout.truncated:
        return SchemaFault(
            code="bash_schema_too_large",
            message=f"`schema` printed {outcome.stdout.total_bytes} bytes; at most {SCHEMA_LIMIT} are read",
            hint="print one JSON object and nothing else",
        )
    return None


def explain_line_ends(fault: SchemaFault, source: bytes) -> SchemaFault:
    """Windows line ends make bash fail in ways that hide the cause."""
    if b"\r\n" not in source:
        return fault
    return SchemaFault(
        code=fault.code,
        message=f"{fault.message} (the file has Windows line ends, which bash takes as part of each command)",
        hint="convert it: sed -i 's/\\r$//' FILE",
        clue=fault.clue,
        line=fault.line,
    )
