"""Property types: what a `.pg` property or a `.gq` parameter can hold, and which types fit together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Scalar(StrEnum):
    """The base types; the value is the name used in both languages."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATETIME = "DateTime"
    DATE = "Date"
    VECTOR = "Vector"
    #: The type of `object(x)`; no property has it.
    OBJECT = "Object"


#: The types that a property or a parameter can be declared with, besides vectors.
DECLARED = tuple(scalar for scalar in Scalar if scalar not in (Scalar.VECTOR, Scalar.OBJECT))


INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMERIC = INTEGERS | FLOATS

#: The wider types to which the type of a property may change; they represent each of its values exactly.
WIDER: dict[Scalar, frozenset[Scalar]] = {
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.U64, Scalar.I64}),
    Scalar.F32: frozenset({Scalar.F64}),
    Scalar.I64: frozenset({Scalar.STRING}),
}

MAX_VECTOR_DIMENSION = 2_147_483_647


@dataclass(frozen=True, slots=True)
class PropType:
    """One type. A vector has scalar VECTOR and a dimension; an enum is a String with a sorted tuple of values."""

    scalar: Scalar
    is_list: bool = False
    nullable: bool = False
    enum: tuple[str, ...] | None = None
    dimension: int | None = None

    def __str__(self) -> str:
        if self.enum is not None:
            core = f"enum({', '.join(self.enum)})"
        elif self.dimension is not None:
            core = f"Vector({self.dimension})"
        else:
            core = self.scalar.value
        if self.is_list:
            core = f"[{core}]"
        return f"{core}?" if self.nullable else core

    @property
    def is_numeric(self) -> bool:
        """Whether this is a number, not a list of numbers."""
        return not self.is_list and self.scalar in NUMERIC

    @property
    def is_text(self) -> bool:
        """Whether this is a String or an enum, not a list."""
        return not self.is_list and self.scalar is Scalar.STRING

    @property
    def is_vector(self) -> bool:
        return self.scalar is Scalar.VECTOR

    @property
    def is_blob(self) -> bool:
        return self.scalar is Scalar.BLOB

    @property
    def is_plain_scalar(self) -> bool:
        """Whether values can be compared: neither list, vector, blob nor object."""
        return not (self.is_list or self.is_vector or self.is_blob or self.scalar is Scalar.OBJECT)

    def element(self) -> PropType:
        """The type of a list's elements."""
        return replace(self, is_list=False, nullable=False)

    def as_nullable(self) -> PropType:
        return replace(self, nullable=True)


def compatible(left: PropType, right: PropType) -> bool:
    """Whether both types are lists or both are not, with equal or numeric scalars; nullability and enums do not matter."""
    if left.is_list != right.is_list:
        return False
    if left.scalar in NUMERIC and right.scalar in NUMERIC:
        return True
    return left.scalar is right.scalar and left.dimension == right.dimension


def widens(old: PropType, new: PropType) -> bool:
    """Whether a property can change from `old` to `new` with every value kept exactly; lists by their items."""
    plain = old.is_list == new.is_list and old.enum is None and new.enum is None
    return plain and new.scalar in WIDER.get(old.scalar, frozenset())


def widens_in_steps(old: PropType, new: PropType) -> bool:
    """Whether one change or several, each to a wider type, lead from one type to another."""
    return widens(old, new) or any(
        widens_in_steps(replace(old, scalar=wider), new) for wider in WIDER.get(old.scalar, ())
    )
