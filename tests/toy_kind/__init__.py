"""A kind of tool that only the tests have: one folder that implements `Kind`, and one line that names it."""

from __future__ import annotations

from toolyard.kinds import KINDS
from toy_kind.reference import Toys

WITH_TOYS = (*KINDS, Toys())
