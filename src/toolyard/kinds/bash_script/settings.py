"""What `plugin_policy` says of bash tools. Annotations are evaluated here, since that makes start-up faster."""

from typing import Annotated

import msgspec
from msgspec import Meta

from toolyard.config.settings import Seconds


class BashSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Whether bash tools may run, and for how long."""

    allow_bash_tools: Annotated[bool, Meta(description="Whether bash tools may be loaded at all.")] = False
    bash_timeout_seconds: Annotated[Seconds, Meta(description="Limit for schema, preview and run.")] = 60
    bash_error_timeout_seconds: Annotated[Seconds, Meta(description="Limit for error.")] = 5
    bash_stream_stderr: Annotated[bool, Meta(description="Whether standard error is streamed too.")] = False
