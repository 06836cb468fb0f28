"""Rules of the annotations that have a meaning, on types and on properties. All other annotations are kept as metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from omnigraph.language.schema.ast import Annotation, Declaration, EdgeDecl, Name, NodeDecl, PropertyDecl
from omnigraph.language.schema.catalog import Embed
from omnigraph.language.schema.constraints import FORMS
from omnigraph.language.schema.defaults import fit_default
from omnigraph.language.source import Source, Span, did_you_mean, nearest_name
from omnigraph.language.types import PropType

METRICS = ("l2", "cosine", "dot")

_MEANINGFUL = frozenset(
    {"key", "unique", "index", "embed", "default", "metric", "description", "instruction", "rename_from"}
)


# --- on types ---------------------------------------------------------------------------------------------------------


def check_type_annotations(owner: NodeDecl | EdgeDecl, source: Source) -> None:
    """Raise an error for annotations in the header of a node or an edge that do not belong there or are malformed."""
    _refuse_repeats(owner.name, owner.annotations, owner.span, source)
    for annotation in owner.annotations:
        match annotation.name:
            case "key" | "unique" | "index" | "embed":
                where = "not supported on edges" if isinstance(owner, EdgeDecl) else "only supported on node properties"
                source.semantic_error(f"@{annotation.name} is {where}; remove it from {owner.name}", owner.span)
            case "default" | "metric":
                source.semantic_error(f"@{annotation.name} is only supported on properties", owner.span)
            case "range" | "check":
                _refuse_bare_constraint(annotation, owner.span, source)
            case "description" | "instruction":
                _check_text(annotation, owner.name, owner.span, source)
            case "rename_from":
                _check_rename_from(annotation, owner.name, owner.span, source)


# --- on properties ----------------------------------------------------------------------------------------------------


def check_property_annotations(owner: Declaration, prop: PropertyDecl, source: Source) -> None:
    """Raise an error for annotations of a property that do not fit it or are malformed."""
    place = f"{owner.name}.{prop.name}"
    _refuse_repeats(place, prop.annotations, prop.span, source)
    for annotation in prop.annotations:
        match annotation.name:
            case "key" | "unique" | "index":
                _check_bare_column_constraint(annotation, owner, prop, source)
            case "embed":
                _check_embed(annotation, owner, prop, source)
            case "default":
                _check_default(annotation, place, prop, source)
            case "metric":
                _check_metric(annotation, place, prop, source)
            case "range" | "check":
                _refuse_bare_constraint(annotation, prop.span, source)
            case "description":
                _check_text(annotation, place, prop.span, source)
            case "instruction":
                source.semantic_error(
                    f"@instruction is only supported on node and edge types, not on property {place}", prop.span
                )
            case "rename_from":
                _check_rename_from(annotation, place, prop.span, source)


def _check_bare_column_constraint(
    annotation: Annotation, owner: Declaration, prop: PropertyDecl, source: Source
) -> None:
    """Check the rules of the short form (`@key` after a property) that go beyond the rules of the body form."""
    place = f"{owner.name}.{prop.name}"
    if annotation.name == "key" and isinstance(owner, EdgeDecl):
        source.semantic_error(
            f"@key is not supported on edges as on {place}; write `@key(src, dst, …)` in the body", prop.span
        )
    if prop.type.is_list:
        source.semantic_error(f"@{annotation.name} is not supported on list property {place}", prop.span)
    if prop.type.is_vector and annotation.name != "index":
        source.semantic_error(f"@{annotation.name} is not supported on vector property {place}", prop.span)


def _check_embed(annotation: Annotation, owner: Declaration, prop: PropertyDecl, source: Source) -> None:
    place = f"{owner.name}.{prop.name}"
    if isinstance(owner, EdgeDecl):
        source.semantic_error(f"@embed is not supported on edges, so not on {place}", prop.span)
    if prop.type.is_blob:
        source.semantic_error(f"@embed is not supported on blob property {place}", prop.span)
    if not prop.type.is_vector:
        source.semantic_error(f"@embed is only supported on Vector properties, and {place} is {prop.type}", prop.span)
    if not _is_word(annotation.value):
        source.semantic_error(f"@embed on {place} requires a source property name: `@embed(text)`", prop.span)
    for key, value in annotation.arguments:
        if key != "model":
            source.semantic_error(
                f"@embed on {place} has an argument '{key}', but only 'model' is supported", prop.span
            )
        if not _is_word(value):
            source.semantic_error(f"the model of @embed on {place} must be a non-blank text", prop.span)
    if len(annotation.arguments) > 1:
        source.semantic_error(f"@embed on {place} declares model multiple times", prop.span)


def check_embed_sources(owner: NodeDecl, source: Source) -> None:
    """Raise an error for an `@embed` whose source is not a text property of the node."""
    types = {prop.name: prop.type for prop in owner.properties}
    for prop in owner.properties:
        for annotation in prop.annotations:
            if annotation.name == "embed":
                _check_embed_source(read_name(annotation), owner, prop, types, source)


def _check_embed_source(
    name: str, owner: NodeDecl, prop: PropertyDecl, types: Mapping[str, PropType], source: Source
) -> None:
    if name not in types:
        suggestion = nearest_name(name, types)
        source.semantic_error(
            f"@embed source property {owner.name}.{name} does not exist{did_you_mean(suggestion)}",
            prop.span,
            suggestion=suggestion,
        )
    if not types[name].is_text:
        source.semantic_error(f"@embed source property {owner.name}.{name} must be String", prop.span)


def read_embed(annotation: Annotation) -> Embed:
    """The catalog form of a well-formed `@embed`."""
    model = dict(annotation.arguments).get("model")
    return Embed(read_name(annotation), None if model is None else str(model))


def _check_default(annotation: Annotation, place: str, prop: PropertyDecl, source: Source) -> None:
    value = annotation.value
    if value is None or isinstance(value, Name) or annotation.arguments:
        source.semantic_error(
            f'@default on {place} needs exactly one literal: `@default("text")`, `@default(1)` or `@default(true)`',
            prop.span,
        )
    try:
        fit_default(prop.type, value)
    except ValueError as unfit:
        source.semantic_error(f"@default on {place} does not fit {prop.type}: {unfit}", prop.span)


def _check_metric(annotation: Annotation, place: str, prop: PropertyDecl, source: Source) -> None:
    if not prop.type.is_vector:
        source.semantic_error(f"@metric is only supported on Vector properties, and {place} is {prop.type}", prop.span)
    if annotation.value not in METRICS or annotation.arguments:
        written = str(annotation.value.text if isinstance(annotation.value, Name) else annotation.value)
        suggestion = nearest_name(written, METRICS)
        source.semantic_error(
            f'@metric on {place} must be `@metric("l2")`, `@metric("cosine")` or `@metric("dot")`',
            prop.span,
            suggestion=suggestion,
        )


# --- on both ----------------------------------------------------------------------------------------------------------


def _refuse_repeats(place: str, annotations: Sequence[Annotation], span: Span, source: Source) -> None:
    for name, times in Counter(annotation.name for annotation in annotations).items():
        if times > 1 and name in _MEANINGFUL:
            source.semantic_error(f"{place} declares @{name} multiple times", span)


def _refuse_bare_constraint(annotation: Annotation, span: Span, source: Source) -> None:
    source.semantic_error(f"@{annotation.name} is written {FORMS[annotation.name]} in the body of a node", span)


def _check_text(annotation: Annotation, place: str, span: Span, source: Source) -> None:
    if isinstance(annotation.value, Name) or not _is_word(annotation.value) or annotation.arguments:
        source.semantic_error(
            f'@{annotation.name} on {place} needs exactly one non-blank text: `@{annotation.name}("…")`', span
        )


def _check_rename_from(annotation: Annotation, place: str, span: Span, source: Source) -> None:
    if not _is_word(annotation.value) or annotation.arguments:
        source.semantic_error(
            f'@rename_from on {place} needs exactly one non-blank value, the old name: `@rename_from("old")`', span
        )


def _is_word(value: object) -> bool:
    """Whether a value is a name or a non-blank text."""
    return isinstance(value, Name) or (isinstance(value, str) and bool(value.strip()))


def read_name(annotation: Annotation) -> str:
    """The value of an annotation whose value is a name, quoted or not."""
    return annotation.value.text if isinstance(annotation.value, Name) else str(annotation.value)
