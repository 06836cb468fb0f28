"""Names that a property can not have."""

from __future__ import annotations

from omnigraph.language.schema.ast import Declaration, EdgeDecl, PropertyDecl
from omnigraph.language.source import Source

# Columns that the storage format adds to rows it gives out. The match is exact: `_ROWID` is a fine name.
SYSTEM_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
NODE_COLUMNS = frozenset({"id"})
EDGE_COLUMNS = frozenset({"id", "src", "dst", "from", "to"})


def check_property_name(owner: Declaration, prop: PropertyDecl, source: Source) -> None:
    """Refuse a property name that a column or a field of every row already has."""
    if prop.name in SYSTEM_COLUMNS:
        source.semantic_error(
            f"property name `{prop.name}` of {owner.name} is reserved: "
            "it would clash with a system column of exported rows; choose another name",
            prop.span,
        )
    taken = EDGE_COLUMNS if isinstance(owner, EdgeDecl) else NODE_COLUMNS
    if prop.name in taken:
        kind = "edge" if isinstance(owner, EdgeDecl) else "node"
        source.semantic_error(
            f"property name `{prop.name}` of {owner.name} is reserved: every {kind} already has one; rename it",
            prop.span,
        )
