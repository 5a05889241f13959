"""How long the code of authors may take. Annotations are evaluated here, since that makes start-up faster."""

from typing import Annotated

import msgspec
from msgspec import Meta

from toolyard.config.settings import Seconds


class CodeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits of Python code that runs in the application."""

    python_timeout_seconds: Annotated[
        Seconds, Meta(description="Limit for a call of a Python tool that names none.")
    ] = 60
    python_import_timeout_seconds: Annotated[Seconds, Meta(description="Limit for importing a Python plugin.")] = 60
