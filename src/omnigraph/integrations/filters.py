"""Filters of other libraries as conditions of the query language: names are checked, values are parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.language.schema.catalog import EntityType
from omnigraph.language.source import did_you_mean, nearest_name

_COMPARISONS = {"$eq": "=", "$ne": "!=", "$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_OTHERS = ("$in", "$nin", "$contains", "$exists")
#: What a filter may be: names with values or operators; or an expression of the query language over the variable.
Filter = Mapping[str, Any] | str


@dataclass
class Conditions:
    """Builds one condition over a variable, and its parameters."""

    entity: EntityType
    variable: str
    params: dict[str, Any] = field(default_factory=dict)

    def text(self, given: Filter | None) -> str:
        """The condition in parentheses; empty when there is none."""
        if given is None or given == {}:
            return ""
        if callable(given):
            raise BadRequest(
                "a filter is a dict such as {'year': {'$gt': 1990}}, or an expression of the query language; a function "
                "would have to read every row"
            )
        if isinstance(given, str):
            return f"({given})"
        if not isinstance(given, Mapping):
            raise BadRequest(f"a filter is a dict or an expression, not a {type(given).__name__}")
        return self._all(given)

    def _all(self, given: Mapping[str, Any]) -> str:
        parts = [self._part(name, wanted) for name, wanted in given.items()]
        return self._joined(parts, "and")

    def _part(self, name: str, wanted: Any) -> str:
        if name in ("$and", "$or"):
            if not isinstance(wanted, list | tuple) or not wanted:
                raise BadRequest(f"{name} takes a list of filters")
            return self._joined([self.text(one) for one in wanted], name[1:])
        if name == "$not":
            return f"(not {self.text(wanted) or '(true = true)'})"
        if name.startswith("$"):
            raise BadRequest(f"{name!r} is no operator of a filter; those around filters are $and, $or and $not")
        self._known(name)
        if isinstance(wanted, Mapping):
            if not wanted:
                raise BadRequest(f"the filter of {name!r} is empty")
            return self._joined([self.compared(name, operator, value) for operator, value in wanted.items()], "and")
        return self.compared(name, "$eq", wanted)

    def compared(self, name: str, operator: str, value: Any) -> str:
        """One comparison of a property."""
        self._known(name)
        place = f"${self.variable}.{name}"
        if operator == "$exists":
            return f"({place} is {'not ' if value else ''}null)"
        if operator in ("$in", "$nin"):
            if not isinstance(value, list | tuple | set | frozenset):
                raise BadRequest(f"{operator} takes a list of values")
            if not value:
                return "(true = false)" if operator == "$in" else "(true = true)"
            return f"({place} {'in' if operator == '$in' else 'not in'} {self.param(list(value))})"
        if operator == "$contains":
            return f"({place} contains {self.param(value)})"
        sign = _COMPARISONS.get(operator)
        if sign is None:
            hint = did_you_mean(nearest_name(operator, [*_COMPARISONS, *_OTHERS]))
            raise BadRequest(
                f"{operator!r} is no operator of a filter{hint}; they are {', '.join([*_COMPARISONS, *_OTHERS])}"
            )
        if value is None:
            if sign not in ("=", "!="):
                raise BadRequest(f"{operator} of {name!r} compares with nothing; null has no order")
            return f"({place} is {'not ' if sign == '!=' else ''}null)"
        return f"({place} {sign} {self.param(value)})"

    def param(self, value: Any) -> str:
        """A new parameter with this value."""
        name = f"f{len(self.params)}"
        self.params[name] = value
        return f"${name}"

    def _known(self, name: str) -> None:
        if name not in self.entity.properties:
            hint = did_you_mean(nearest_name(str(name), self.entity.properties))
            raise BadRequest(
                f"{self.entity.name} has no property {name!r}{hint}; only declared properties can be filtered by, others are "
                "kept as JSON"
            )

    @staticmethod
    def _joined(parts: list[str], word: str) -> str:
        wanted = [part for part in parts if part]
        if not wanted:
            return ""
        return wanted[0] if len(wanted) == 1 else f"({f' {word} '.join(wanted)})"
