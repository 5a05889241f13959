"""What all bash tools of an application share: the interpreter, the conditions they run under, and who runs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from toolyard.process.environment import ParentEnvironment
from toolyard.process.limits import NO_LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.kinds.bash_script.schema import SchemaCache
    from toolyard.process.child import Children
    from toolyard.process.interpreter import Interpreter
    from toolyard.process.limits import Limits


class BashConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Under which conditions bash tools run; the same for every file of a configuration."""

    timeout: float = 60
    error_timeout: float = 5
    stream_stderr: bool = False
    pass_env: Sequence[str] = ()
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class BashWorkshop:
    """Where bash tools are read and run; equal workshops do it alike."""

    bash: Interpreter
    children: Children
    conditions: BashConditions
    cache: SchemaCache
    environment: ParentEnvironment = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", ParentEnvironment(passed=self.conditions.pass_env))
