"""What `plugin_policy` says of toys."""

from typing import Annotated

import msgspec


class ToySettings(msgspec.Struct, frozen=True, kw_only=True):
    toy_timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 60
