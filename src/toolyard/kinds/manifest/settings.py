"""What `plugin_policy` says of manifests. Annotations are evaluated here, since that makes start-up faster."""

from typing import Annotated

import msgspec
from msgspec import Meta

from toolyard.config.settings import Seconds


class ManifestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long the commands of manifests may take."""

    manifest_timeout_seconds: Annotated[
        Seconds, Meta(description="Limit for the commands of manifests that name no time of their own.")
    ] = 30
