"""The fingerprint of a mutation request, made from a text that never changes, to recognise a repeated request.

The fingerprint is stored in the graph with the receipt, so a later release must compute the same one for the same request.
The text is defined here, class by class: renaming a class or a field of the plan does not change it. A field that a class
gains later is part of the text only if it differs from its default, so requests that do not use it keep their
fingerprint. `tests/mutation/golden/fingerprints.json` pins it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass

import orjson

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ir
from omnigraph.language.types import PropType, Scalar

#: The name of each class in the text, and the fields that are always part of it.
_WRITTEN: Mapping[type, tuple[str, tuple[str, ...]]] = {
    ir.MutationPlan: ("MutationPlan", ("statements",)),
    ir.InsertNode: ("InsertNode", ("node_type", "assignments")),
    ir.InsertEdge: ("InsertEdge", ("edge_type", "source", "target", "assignments")),
    ir.UpdateNodes: ("UpdateNodes", ("node_type", "assignments", "predicate")),
    ir.DeleteNodes: ("DeleteNodes", ("node_type", "predicate")),
    ir.DeleteEdges: ("DeleteEdges", ("edge_type", "predicate")),
    ir.UpsertNode: ("UpsertNode", ("node_type", "assignments")),
    ir.UpdateEdges: ("UpdateEdges", ("edge_type", "assignments", "predicate")),
    # A pattern is represented by its source text, because plans change with the planner.
    ir.Matches: ("Matches", ("text",)),
    ir.InsertMatched: ("InsertMatched", ("matches",)),
    ir.UpdateMatched: ("UpdateMatched", ("matches",)),
    ir.DeleteMatched: ("DeleteMatched", ("matches",)),
    ir.Assign: ("Assign", ("property", "value", "type")),
    ir.Compare: ("Compare", ("left", "operator", "right")),
    ir.Member: ("Member", ("items", "item")),
    ir.Substring: ("Substring", ("text", "part")),
    ir.Prefix: ("Prefix", ("text", "prefix")),
    ir.Suffix: ("Suffix", ("text", "suffix")),
    ir.IsNull: ("IsNull", ("operand",)),
    ir.And: ("And", ("operands",)),
    ir.Or: ("Or", ("operands",)),
    ir.Not: ("Not", ("operand",)),
    ir.Call: ("Call", ("function", "arguments", "type")),
    ir.Conditional: ("Conditional", ("conditions", "values", "otherwise", "type")),
    ir.Column: ("Column", ("variable", "property", "type")),
    ir.Parameter: ("Parameter", ("name", "type")),
    ir.Now: ("Now", ()),
    TypedValue: ("TypedValue", ("value", "type")),
    PropType: ("PropType", ("scalar", "is_list", "nullable", "enum", "dimension")),
}


def fingerprint(plan: ir.MutationPlan, params: Mapping[str, TypedValue], branch: str, if_commit: str | None) -> str:
    """The SHA-256 of a mutation request."""
    return _digest([*_asked(plan, params), branch, if_commit])


def fingerprint_of_all(
    mutations: Sequence[tuple[ir.MutationPlan, Mapping[str, TypedValue]]], branch: str, if_commit: str | None
) -> str:
    """The SHA-256 of the mutations of a transaction, in order; for a single mutation the same as `fingerprint`."""
    if len(mutations) == 1:
        return fingerprint(*mutations[0], branch, if_commit)
    return _digest([[_asked(plan, params) for plan, params in mutations], branch, if_commit])


def _asked(plan: ir.MutationPlan, params: Mapping[str, TypedValue]) -> list[object]:
    return [stable_text(plan), sorted((name, stable_text(value.value)) for name, value in params.items())]


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def stable_text(part: object) -> str:
    """A part of a plan as text; AssertionError for a class without a written form."""
    if isinstance(part, Scalar):
        return f"<Scalar.{part.name}: {part.value!r}>"
    if isinstance(part, tuple):
        return f"({', '.join(map(stable_text, part))}{',' if len(part) == 1 else ''})"
    if not is_dataclass(part):
        return repr(part)
    assert type(part) in _WRITTEN, f"{type(part).__name__} needs a written form"
    name, written = _WRITTEN[type(part)]
    if isinstance(part, ir.Matches | ir.InsertMatched | ir.UpdateMatched | ir.DeleteMatched):
        return f"{name}({written[0]}={stable_text(getattr(part, written[0]))})"
    # Fields that are not compared, such as a position in the text, do not belong to the request.
    others = [one for one in fields(part) if one.compare and one.name not in written]
    later = [one.name for one in others if getattr(part, one.name) != one.default]
    return f"{name}({', '.join(f'{one}={stable_text(getattr(part, one))}' for one in (*written, *later))})"
