"""From a bash file to its schema: read from its comments, or by running `schema` once for each content."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.regexes import late_pattern
from toolyard.errors import CannotStart
from toolyard.files.working_folder import working_folder
from toolyard.kinds.bash_script.schema import BashSchema, BashSchemas, SchemaFault, parse_schema
from toolyard.kinds.bash_script.settings import BashSettings
from toolyard.process.child import ChildOutcome, ChildRequest

if TYPE_CHECKING:
    from toolyard.files.content_cache import ContentCache
    from toolyard.files.door import FileContent
    from toolyard.plugins.host import Host


SCHEMA_LIMIT = 1 << 20
SCHEMA_VARIABLES = {"AGENT_TOOL_PYTHON": sys.executable, "LC_ALL": "C"}
"""A schema is kept by the content of its file, so the user's language must not matter; bash also starts sooner."""
SCHEMA_SUBCOMMAND = late_pattern(
    r"""["']?\bschema["']?[ \t]*[)|] | ={1,2}[ \t]*["']?schema\b | ^[ \t]*schema[ \t]*\(\)""", re.VERBOSE | re.MULTILINE
)


def schema_cache(host: Host) -> ContentCache[BashSchemas]:
    """The schemas that are known by the contents of their files."""
    return host.caches.get("bash-schemas", BashSchemas)


READING = b"2"
"""How files are read; another number wherever that changes, since what was read before is remembered."""


def content_key(file: str, source: bytes, host: Host) -> str:
    """What a schema depends on: the content, the interpreter, and the name, which some tools are named by."""
    name = os.path.basename(file).encode("utf-8", "surrogateescape")
    return hashlib.sha256(b"\0".join((READING, host.required("bash").identity.encode(), name, source))).hexdigest()


async def read_schema(file: str, content: FileContent, host: Host) -> BashSchemas | tuple[SchemaFault, ...]:
    """The schema of a file's content; a good one is remembered by its content.

    Unless the file was another meanwhile: then what ran may not be what was read.
    """
    from toolyard.kinds.bash_script.comments.tags import has_comment_tags

    source = content.data
    text = source.decode("utf-8", "replace")
    if has_comment_tags(text) and not SCHEMA_SUBCOMMAND.search(text):
        read = schema_from_comments(file, text)
    else:
        ran = await schema_from_run(file, host)
        read = BashSchemas(tools=[ran]) if isinstance(ran, BashSchema) else ran
    if isinstance(read, BashSchemas):
        if content.is_still_at(file):
            schema_cache(host).put(content_key(file, source, host), read)
        return read
    return tuple(explain_line_ends(fault, source) for fault in read)


def schema_from_comments(file: str, text: str) -> BashSchemas | tuple[SchemaFault, ...]:
    """The tool of a file that declares itself in comments, or those of its commands."""
    from toolyard.kinds.bash_script.comments.schema import parameters_schema
    from toolyard.kinds.bash_script.comments.script import CommentScript, parse_comments

    parsed = parse_comments(text)
    if not isinstance(parsed, CommentScript):
        return tuple(
            SchemaFault(code="bash_schema_comments", message=fault.message, hint=fault.hint, line=fault.line)
            for fault in parsed
        )
    return BashSchemas(
        tools=[
            BashSchema(
                id=parsed.name_of(tool, file=Path(file).stem),
                version=tool.version or "0.0.0",
                args_mode="comments",
                description=tool.description,
                parameters=parameters_schema(tool),
                function=tool.function or "",
            )
            for tool in parsed.tools
        ]
    )


async def schema_from_run(file: str, host: Host) -> BashSchema | tuple[SchemaFault, ...]:
    """Run `bash FILE schema` and check what it prints."""
    timeout = host.settings(BashSettings).bash_timeout_seconds
    try:
        outcome = await host.children("look").run(
            ChildRequest(
                argv=[host.required("bash").path, file, "schema"],
                cwd=working_folder(),
                env=host.runner.environment.current(),
                extra_env=SCHEMA_VARIABLES,
                timeout=timeout,
                limits=host.runner.limits,
                output_limit=SCHEMA_LIMIT,
            )
        )
    except CannotStart as error:
        return (SchemaFault(code="bash_schema_exit_status", message=f"`schema` did not start: {error}", hint=""),)
    fault = outcome_fault(outcome, timeout)
    return (fault,) if fault else parse_schema(outcome.stdout.text)


def outcome_fault(outcome: ChildOutcome, timeout: float) -> SchemaFault | None:
    """What is wrong before the output is even looked at."""
    if outcome.timed_out:
        return SchemaFault(
            code="bash_schema_timeout",
            message=f"`schema` did not finish within {timeout:g} seconds",
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
    return replace(
        fault,
        message=f"{fault.message} (the file has Windows line ends, which bash takes as part of each command)",
        hint="convert it: sed -i 's/\\r$//' FILE",
    )
