"""Evaluates the constants of a mutation in this run: literals, parameters, the one `now()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query.ir import Constant, Now, Parameter
from omnigraph.language.schema.catalog import Property
from omnigraph.language.schema.defaults import default_value
from omnigraph.language.types import PropType
from omnigraph.values.fitting import fitted_value


@dataclass(frozen=True, slots=True)
class Constants:
    """The parameters of one call, and its time in milliseconds since the epoch."""

    params: Mapping[str, TypedValue]
    now: int

    def value(self, constant: Constant) -> PlainValue:
        """The plain value of a constant."""
        match constant:
            case Now():
                return self.now
            case Parameter(name):
                return self.params[name].value
            case TypedValue(value):
                return value

    def fitted(self, constant: Constant, target: PropType) -> PlainValue:
        """The value of a constant in exactly the target type; `Unfit` if the type can not hold it."""
        value = self.value(constant)
        if value is None or isinstance(constant, Now) or constant.type.as_nullable() == target.as_nullable():
            return value
        return fitted_value(TypedValue(value, constant.type), target)


def default_of(declared: Property) -> PlainValue:
    """The value of a property for which nothing is given: its default, else None."""
    return None if declared.default is None else default_value(declared.type, declared.default)
