"""The steps a schema change is made of, as values. Kinds and codes are stable: scripts rely on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

TypeKind = Literal["node", "edge", "interface"]
#: `soft`: older snapshots still show what was dropped. `hard`: it is gone for them too.
DropMode = Literal["soft", "hard"]

DROPPED_TYPE = {"node": "OG-DS-102", "edge": "OG-DS-103"}
DROPPED_PROPERTY = "OG-DS-104"

KEY_CHANGED = "OG-MF-101"
ENDPOINT_CHANGED = "OG-MF-102"
REQUIRED_WITHOUT_DEFAULT = "OG-MF-103"
NULLABLE_TO_REQUIRED = "OG-MF-104"
TYPE_CHANGED = "OG-MF-106"
RULE_BROKEN = "OG-MF-107"


@dataclass(frozen=True, slots=True)
class Step:
    """One step; its text is for people."""

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The step as plain data; what is not known is left out."""
        return {"kind": self.kind} | {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class AddType(Step):
    kind: ClassVar[str] = "add_type"
    type_kind: TypeKind
    name: str

    def __str__(self) -> str:
        return f"add {self.type_kind} type '{self.name}'"


@dataclass(frozen=True, slots=True)
class RenameType(Step):
    kind: ClassVar[str] = "rename_type"
    type_kind: TypeKind
    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "type_kind": self.type_kind, "from": self.old, "to": self.new}

    def __str__(self) -> str:
        return f"rename {self.type_kind} type '{self.old}' -> '{self.new}'"


@dataclass(frozen=True, slots=True)
class DropType(Step):
    kind: ClassVar[str] = "drop_type"
    type_kind: TypeKind
    name: str
    mode: DropMode
    code: str | None = None

    def __str__(self) -> str:
        return f"drop {self.type_kind} type '{self.name}' ({self.mode}){_shown(self.code)}"


@dataclass(frozen=True, slots=True)
class AddProperty(Step):
    kind: ClassVar[str] = "add_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: str
    #: What the rows that are there get; nothing: null.
    default: str | int | float | bool | None = None

    def __str__(self) -> str:
        filled = "" if self.default is None else f", existing rows get {self.default!r}"
        return f"add property '{self.type_name}.{self.property_name}' ({self.property_type}{filled})"


@dataclass(frozen=True, slots=True)
class RenameProperty(Step):
    kind: ClassVar[str] = "rename_property"
    type_kind: TypeKind
    type_name: str
    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        place = {"kind": self.kind, "type_kind": self.type_kind, "type_name": self.type_name}
        return place | {"from": self.old, "to": self.new}

    def __str__(self) -> str:
        return f"rename property '{self.type_name}.{self.old}' -> '{self.type_name}.{self.new}'"


@dataclass(frozen=True, slots=True)
class DropProperty(Step):
    kind: ClassVar[str] = "drop_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode
    code: str = DROPPED_PROPERTY

    def __str__(self) -> str:
        return f"drop property '{self.type_name}.{self.property_name}' ({self.mode}){_shown(self.code)}"


@dataclass(frozen=True, slots=True)
class ExtendEnum(Step):
    kind: ClassVar[str] = "extend_enum"
    type_kind: TypeKind
    type_name: str
    property_name: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        listed = ", ".join(f"'{value}'" for value in self.values)
        return f"extend enum '{self.type_name}.{self.property_name}' with {listed}"


@dataclass(frozen=True, slots=True)
class NarrowEnum(Step):
    """Values that no row has go from an enum."""

    kind: ClassVar[str] = "narrow_enum"
    type_kind: TypeKind
    type_name: str
    property_name: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        listed = ", ".join(f"'{value}'" for value in self.values)
        return f"narrow enum '{self.type_name}.{self.property_name}' by {listed}"


@dataclass(frozen=True, slots=True)
class Retype(Step):
    """A property gets another type of the same family; its column is rewritten."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        return _with_types(self)


@dataclass(frozen=True, slots=True)
class Widen(Retype):
    """A property gets a wider type; its column is rewritten, every value stays exactly what it is."""

    kind: ClassVar[str] = "widen"

    def __str__(self) -> str:
        return f"widen property '{self.type_name}.{self.property_name}' from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class Narrow(Retype):
    """A property gets its narrower type back, when a commit that widened it is reverted and every value fits."""

    kind: ClassVar[str] = "narrow"

    def __str__(self) -> str:
        return f"narrow property '{self.type_name}.{self.property_name}' from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class FillNulls(Step):
    """Rows without a value get the default, because the property becomes required."""

    kind: ClassVar[str] = "fill_nulls"
    type_kind: TypeKind
    type_name: str
    property_name: str
    default: str | int | float | bool
    rows: int | None = None

    def __str__(self) -> str:
        which = "nulls" if self.rows is None else f"{self.rows} null{'' if self.rows == 1 else 's'}"
        return f"fill {which} of '{self.type_name}.{self.property_name}' with {self.default!r}"


@dataclass(frozen=True, slots=True)
class Backfill(Step):
    """Rows without a value get what an expression makes of them."""

    kind: ClassVar[str] = "backfill"
    type_kind: TypeKind
    type_name: str
    property_name: str
    expression: str
    rows: int | None = None

    def __str__(self) -> str:
        return f"backfill '{self.type_name}.{self.property_name}' with {self.expression}"


@dataclass(frozen=True, slots=True)
class Rekey(Step):
    """The ids of a type are made from its new key; edges at its nodes follow."""

    kind: ClassVar[str] = "rekey"
    type_kind: TypeKind
    type_name: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"make the ids of {self.type_kind} '{self.type_name}' from @key({', '.join(self.key)})"


@dataclass(frozen=True, slots=True)
class AddConstraint(Step):
    kind: ClassVar[str] = "add_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: str

    def __str__(self) -> str:
        return f"add constraint on {self.type_kind} '{self.type_name}': {self.constraint}"


@dataclass(frozen=True, slots=True)
class RemoveConstraint(Step):
    kind: ClassVar[str] = "remove_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: str

    def __str__(self) -> str:
        return f"remove constraint on {self.type_kind} '{self.type_name}': {self.constraint}"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(Step):
    kind: ClassVar[str] = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[str, ...]

    def __str__(self) -> str:
        return f"update metadata on {self.type_kind} '{self.name}'"


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(Step):
    kind: ClassVar[str] = "update_property_metadata"
    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[str, ...]

    def __str__(self) -> str:
        return f"update metadata on property '{self.type_name}.{self.property_name}'"


@dataclass(frozen=True, slots=True)
class UnsupportedChange(Step):
    """A change that is refused; the whole schema with it."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str
    code: str

    def __str__(self) -> str:
        return f"unsupported change on {self.entity}: {self.reason}{_shown(self.code)}"


def _with_types(step: Retype) -> dict[str, Any]:
    place = {"kind": step.kind, "type_kind": step.type_kind, "type_name": step.type_name}
    return place | {"property_name": step.property_name, "from": step.old, "to": step.new}


def _shown(code: str | None) -> str:
    return f" [{code}]" if code else ""
