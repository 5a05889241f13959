"""Decode a tool call's arguments and check them against a JSON Schema: lenient in, strict out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolyard.core.argument_defaults import all_defaults
from toolyard.core.argument_faults import ABSENT, ArgumentFault, BadArguments, brief, faults_in, kind_of
from toolyard.core.argument_parts import dialect_of, exact_dialect, facets_of, root_part
from toolyard.core.argument_repair import MOST_ROUNDS, Repair
from toolyard.core.argument_schema import schema_fault
from toolyard.core.argument_shape import simple_shape
from toolyard.core.argument_values import MOST_LEVELS, NotJsonError, ValuePath, changed, is_deeper, parse_json

# The schema library takes a tenth of a second to import, so each function that needs it imports it itself.
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.argument_faults import Misfit
    from toolyard.core.argument_values import Changes
    from toolyard.core.tool import Json

__all__ = ["ArgumentDecoder", "ArgumentFault", "BadArguments", "schema_fault"]


class ArgumentDecoder:
    """Decodes and checks the arguments of one tool, whose schema `schema_fault` finds nothing wrong with."""

    def __init__(self, schema: Mapping[str, Json], *, defaults: Mapping[str, Json] | None = None) -> None:
        """Compile the schema once; `defaults` win over those that it has itself."""
        from referencing import Registry

        dialect = dialect_of(schema)
        root = root_part(schema, dialect)
        # An explicit registry, because the library's own would fetch what the schema refers to.
        self._validator = exact_dialect(dialect)(root.schema, registry=Registry())
        self._required = frozenset(name for facet in facets_of(root) for name in facet.schema.get("required", ()))
        self._defaults = all_defaults(root, defaults or {})
        self._simple = simple_shape(schema)

    def decode(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        """The arguments as the schema wants them, or all that is wrong with them."""
        if self._simple is not None and type(arguments) is dict:
            value = self._defaults.fill(arguments, (), set())
            if self._simple.fits(value):
                return value  # type: ignore[no-any-return]  # an object stays one
        return self._decode_fully(arguments)

    def _decode_fully(self, arguments: Mapping[str, Json] | str) -> dict[str, Json] | BadArguments:
        from referencing.exceptions import Unresolvable

        try:
            given: Json = parse_json(arguments) if isinstance(arguments, str) else arguments
            if isinstance(given, Mapping):
                return self._fitted(dict(given))
            return refusal(f"expected a JSON object, got {kind_of(given)}: {brief(given)}")
        except NotJsonError as error:
            return refusal(str(error))
        except RecursionError:
            return refusal(f"nested too deeply, at most {MOST_LEVELS} levels are allowed")
        except Unresolvable:
            return refusal("cannot be checked: a reference in the tool's schema points to nothing")
        except (ArithmeticError, ValueError) as error:
            return refusal(f"cannot be checked: {error}")

    def _fitted(self, given: dict[str, Json]) -> dict[str, Json] | BadArguments:
        repair, taken = Repair(), set[ValuePath]()
        value = self._defaults.fill(given, (), taken)
        for _ in range(MOST_ROUNDS):
            if is_deeper(value, MOST_LEVELS):
                raise RecursionError
            errors = list(self._validator.iter_errors(value))
            if not errors:
                return value  # type: ignore[no-any-return]  # an object stays one
            changes = repair.changes(self._validator, value, errors) | self._refused_nulls(errors, taken)
            if not changes:
                break
            value = self._defaults.fill(changed(value, changes), (), taken)
        return BadArguments(faults=faults_in(errors, given))

    def _refused_nulls(self, errors: Sequence[Misfit], taken: set[ValuePath]) -> Changes:
        """Nulls that mean "not given": a model's for an optional property, and defaults that do not fit."""
        nulls = [tuple(error.path) for error in errors if error.instance is None and error.path]
        optional = (path for path in nulls if path in taken or (len(path) == 1 and path[0] not in self._required))
        return dict.fromkeys(optional, ABSENT)


def refusal(message: str) -> BadArguments:
    return BadArguments(faults=(ArgumentFault(path="", message=message),))
