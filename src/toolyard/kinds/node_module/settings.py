"""What `plugin_policy` says of Node tools. Annotations are evaluated here, since that makes start-up faster."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolyard.config.settings import Seconds


class NodeModuleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How Node packages are made ready, and how long their tools may take."""

    node_timeout_seconds: Annotated[Seconds, Meta(description="Limit for each call of a Node tool.")] = 60
    node_install_deps: Annotated[bool, Meta(description="Whether a Node plugin's packages are installed.")] = True
    node_build: Annotated[bool, Meta(description="Whether a Node plugin's build script is run.")] = True
    node_package_manager: Annotated[
        Literal["npm", "pnpm", "yarn"] | None, Meta(description="By default what the package itself says, else npm.")
    ] = None
    node_allow_install_scripts: Annotated[
        bool, Meta(description="Whether packages may run scripts of their own while they are installed.")
    ] = True
    node_build_command: Annotated[str | None, Meta(description="Run instead of the package's build script.")] = None
