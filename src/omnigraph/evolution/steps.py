"""The steps of a schema change, as values. Kinds and codes are stable: scripts rely on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

TypeKind = Literal["node", "edge", "interface"]
#: `soft`: older snapshots still show the dropped data. `hard`: it is removed for them too.
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
        """The step as plain data; unknown fields are left out."""
        return {"kind": self.kind} | {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class OfProperty(Step):
    """A step about one property of a type."""

    type_kind: TypeKind
    type_name: str
    property_name: str

    @property
    def place(self) -> str:
        """The property as it is named in texts."""
        return f"'{self.type_name}.{self.property_name}'"


@dataclass(frozen=True, slots=True)
class _OtherType(OfProperty):
    """A property gets another type; its column is rewritten, and every value stays exactly equal."""

    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        place = {"kind": self.kind, "type_kind": self.type_kind, "type_name": self.type_name}
        return place | {"property_name": self.property_name, "from": self.old, "to": self.new}

    def __str__(self) -> str:
        return f"{self.kind} property {self.place} from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class _OtherValues(OfProperty):
    """An enum gains or loses values."""

    values: tuple[str, ...]

    @property
    def listed(self) -> str:
        return ", ".join(f"'{value}'" for value in self.values)


@dataclass(frozen=True, slots=True)
class _Constraint(Step):
    """A constraint of a type, in its declared form."""

    type_kind: TypeKind
    type_name: str
    constraint: str

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} on {self.type_kind} '{self.type_name}': {self.constraint}"


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
class AddProperty(OfProperty):
    kind: ClassVar[str] = "add_property"
    property_type: str
    #: The value that existing rows get; None: null.
    default: str | int | float | bool | None = None

    def __str__(self) -> str:
        filled = "" if self.default is None else f", existing rows get {self.default!r}"
        return f"add property {self.place} ({self.property_type}{filled})"


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
class DropProperty(OfProperty):
    kind: ClassVar[str] = "drop_property"
    mode: DropMode
    code: str = DROPPED_PROPERTY

    def __str__(self) -> str:
        return f"drop property {self.place} ({self.mode}){_shown(self.code)}"


@dataclass(frozen=True, slots=True)
class ExtendEnum(_OtherValues):
    kind: ClassVar[str] = "extend_enum"

    def __str__(self) -> str:
        return f"extend enum {self.place} with {self.listed}"


@dataclass(frozen=True, slots=True)
class NarrowEnum(_OtherValues):
    """An enum loses values that no row has."""

    kind: ClassVar[str] = "narrow_enum"

    def __str__(self) -> str:
        return f"narrow enum {self.place} by {self.listed}"


@dataclass(frozen=True, slots=True)
class Widen(_OtherType):
    """A property gets a wider type."""

    kind: ClassVar[str] = "widen"


@dataclass(frozen=True, slots=True)
class Narrow(_OtherType):
    """A property gets its narrower type back, when a commit that widened it is reverted and every value fits."""

    kind: ClassVar[str] = "narrow"


@dataclass(frozen=True, slots=True)
class FillNulls(OfProperty):
    """Rows without a value get the default, because the property becomes required."""

    kind: ClassVar[str] = "fill_nulls"
    default: str | int | float | bool
    rows: int | None = None

    def __str__(self) -> str:
        which = "nulls" if self.rows is None else f"{self.rows} null{'' if self.rows == 1 else 's'}"
        return f"fill {which} of {self.place} with {self.default!r}"


@dataclass(frozen=True, slots=True)
class Backfill(OfProperty):
    """Rows without a value get the value of an expression."""

    kind: ClassVar[str] = "backfill"
    expression: str
    rows: int | None = None

    def __str__(self) -> str:
        return f"backfill {self.place} with {self.expression}"


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
class AddConstraint(_Constraint):
    kind: ClassVar[str] = "add_constraint"


@dataclass(frozen=True, slots=True)
class RemoveConstraint(_Constraint):
    kind: ClassVar[str] = "remove_constraint"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(Step):
    kind: ClassVar[str] = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[str, ...]

    def __str__(self) -> str:
        return f"update metadata on {self.type_kind} '{self.name}'"


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(OfProperty):
    kind: ClassVar[str] = "update_property_metadata"
    annotations: tuple[str, ...]

    def __str__(self) -> str:
        return f"update metadata on property {self.place}"


@dataclass(frozen=True, slots=True)
class UnsupportedChange(Step):
    """A change that is refused, and the whole schema with it."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str
    code: str

    def __str__(self) -> str:
        return f"unsupported change on {self.entity}: {self.reason}{_shown(self.code)}"


def _shown(code: str | None) -> str:
    return f" [{code}]" if code else ""
