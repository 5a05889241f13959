"""What `plugin_policy` says of Python plugins. Annotations are evaluated here, since that makes start-up faster."""

from typing import Annotated

from msgspec import Meta

from toolyard.plugins.author_code.limits import CodeLimits


class PythonSettings(CodeLimits, frozen=True, kw_only=True):
    """How Python plugins are installed, besides how long importing and calling them may take."""

    install_deps: Annotated[bool, Meta(description="Whether a Python plugin's dependencies are installed too.")] = False
    pip_args: Annotated[list[str], Meta(description="Further arguments for the installer of Python plugins.")] = []  # noqa: RUF012 - msgspec makes a new one each time
    pip_cache_dir: Annotated[
        str | None, Meta(description="The installer's download cache; by default 'pip' beside plugin_cache_dir.")
    ] = None
