"""Renaming: the edits of a schema and its queries that change a name and nothing else. Pure.
A rename is refused when it is not safe: a text that mentions the name can not be parsed, the new name is taken, several types
share the property, or the type has an earlier rename that may not be applied yet. The edited texts are linted before the edits
are returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.errors import BadRequest, LanguageError
from omnigraph.language.names import Occurrence, at_offset
from omnigraph.language.query.lint import lint_queries
from omnigraph.language.query.names import query_names
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.ast import EdgeDecl, InterfaceDecl
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.schema.names import schema_names, type_key
from omnigraph.language.source import Source, Span
from omnigraph.language.written import Written


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of a text and its replacement."""

    span: Span
    text: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits applied."""
    for edit in sorted(edits, key=lambda edit: edit.span.start, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def rename_in_query(text: str, offset: int, new: str, catalog: Catalog) -> list[Edit]:
    """Rename the variable, parameter, result column or query at an offset; only the text of its query changes."""
    names = query_names(parse_query_file(text), catalog)
    found = at_offset(names, offset)
    if found is None or found.kind not in ("variable", "alias", "query"):
        _refuse("there is no variable, parameter, result or query here")
    new = new.removeprefix("$")
    if found.kind == "query":
        if any(other.kind == "query" and other.name == new for other in names):
            _refuse(f"there is a query '{new}' already")
        edits = [Edit(found.span, new)]
    else:
        if found.name == "_":
            _refuse("`$_` has no name that could change")
        inside = [other for other in names if other.scope == found.scope and other.kind in ("variable", "alias")]
        if any(other.name == new for other in inside):
            _refuse(f"'{new}' is taken in this query")
        same = {other.span: other for other in inside if (other.kind, other.name) == (found.kind, found.name)}
        edits = [Edit(span, f"${new}" if text[span.start] == "$" else new) for span in same]
    _refuse_new_errors("the query", text, applied(text, edits), catalog, catalog)
    return edits


def rename_in_schema(
    schema: str, queries: Mapping[str, str], found: Occurrence, new: str
) -> tuple[list[Edit], dict[str, list[Edit]]]:
    """Rename a type or a property in a schema and in its query texts (by file name).
    The declaration gets `@rename_from`, so that a graph keeps its data when the schema is applied.
    """
    catalog = compile_schema(schema)
    names = schema_names(schema)
    if found.kind == "property":
        _refuse_shared_property(found, catalog)
    edits = [Edit(other.span, new) for other in names if _is_same(other, found)]
    edits += _notes(schema, names, found)
    renamed = compile_schema(applied(schema, edits))
    changed: dict[str, list[Edit]] = {}
    for file, text in queries.items():
        own = _query_edits(file, text, found, new, catalog)
        _refuse_new_errors(file, text, applied(text, own), catalog, renamed)
        if own:
            changed[file] = own
    return edits, changed


def _is_same(other: Occurrence, found: Occurrence) -> bool:
    if (other.kind, other.name) != (found.kind, found.name):
        return False
    return found.kind != "property" or set(other.owners) == set(found.owners)


def _query_edits(file: str, text: str, found: Occurrence, new: str, catalog: Catalog) -> list[Edit]:
    try:
        names = query_names(parse_query_file(text), catalog)
    except LanguageError as error:
        if found.name.lower() in text.lower():
            _refuse(f"{file} can not be parsed and may use '{found.name}': {error.message}")
        return []
    edits: list[Edit] = []
    for other in names:
        is_property = (other.kind, other.name) == ("property", found.name) and found.kind == "property"
        if is_property and len(other.owners) > 1 and set(other.owners) & set(found.owners):
            _refuse(f"{file} reads '{found.name}' of several types at once")
        if _is_same(other, found):
            edits.append(Edit(other.span, _spelt(text[other.span.start : other.span.end], found.name, new)))
    return edits


def _spelt(written: str, old: str, new: str) -> str:
    """The new name in the spelling of the old name: traversals write edges with a lower-case first letter."""
    if written == old:
        return new
    return new[:1].lower() + new[1:] if written == old[:1].lower() + old[1:] else new.lower()


def _refuse_shared_property(found: Occurrence, catalog: Catalog) -> None:
    for owner in found.owners:
        name = owner.partition(":")[2]
        if name in catalog.interfaces and any(name in node.implements for node in catalog.nodes.values()):
            _refuse(f"'{found.name}' belongs to all nodes that implement {name}; rename it by hand")
        node = catalog.nodes.get(name) if owner.startswith("node:") else None
        for interface in node.implements if node is not None else ():
            if found.name in catalog.interfaces[interface].properties:
                _refuse(f"'{found.name}' of {name} comes from the interface {interface}; rename it by hand")


def _notes(schema: str, names: Sequence[Occurrence], found: Occurrence) -> list[Edit]:
    """The edit that adds `@rename_from` after the name of a type, or at the end of a property; none for an interface."""
    source = Source(schema)
    written = Written(source)
    note = f' @rename_from("{found.name}")'
    for declaration in parse_declarations(source):
        if found.kind == "property":
            for prop in declaration.properties:
                if prop.name == found.name and type_key(declaration) in found.owners:
                    _refuse_second_rename(prop.annotations, found.name)
                    end = written.within(prop.span)[-1].span.end
                    return [Edit(Span(end, end), note)]
        elif declaration.name == found.name and type_key(declaration) == f"{found.kind}:{found.name}":
            if isinstance(declaration, InterfaceDecl):
                return []
            _refuse_second_rename(declaration.annotations, found.name)
            declared = next(n for n in names if n.declares and (n.kind, n.name) == (found.kind, found.name))
            end = declared.span.end
            if isinstance(declaration, EdgeDecl):
                end = _behind_ends(written, declaration)
            return [Edit(Span(end, end), note)]
    return _refuse(f"'{found.name}' is not declared in the schema")


def _behind_ends(written: Written, edge: EdgeDecl) -> int:
    """The offset after the target type of an edge and its `@card(…)`."""
    tokens = written.within(edge.span)
    arrow = next(index for index, token in enumerate(tokens) if token.text == "-" and tokens[index + 1].text == ">")
    target = arrow + 2
    if len(tokens) > target + 1 and tokens[target + 1].text == "@card":
        target = next(index for index in range(target, len(tokens)) if tokens[index].text == ")")
    return tokens[target].span.end


def _refuse_second_rename(annotations: Iterable[object], name: str) -> None:
    if any(getattr(annotation, "name", "") == "rename_from" for annotation in annotations):
        _refuse(
            f"'{name}' has `@rename_from` already; apply the schema and remove it first, "
            "else a graph could not tell what it was called before"
        )


def _refuse_new_errors(file: str, before: str, after: str, old: Catalog, new: Catalog) -> None:
    if lint_queries(after, new).count("error") > lint_queries(before, old).count("error"):
        report = lint_queries(after, new)
        error = next(finding for finding in report.all_findings() if finding.severity == "error")
        _refuse(f"{file} would have an error: {error.message}")


def _refuse(message: str) -> NoReturn:
    raise BadRequest(f"cannot rename: {message}")
