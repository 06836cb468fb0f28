"""The answers to an editor's questions about a text: problems, symbols, explanations, definitions, completions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import BadRequest, LanguageError
from omnigraph.language.formatting import Language
from omnigraph.language.names import Occurrence, Positions, at_offset
from omnigraph.language.query.completion import candidates, word_before
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS, usages_of
from omnigraph.language.query.lint import Finding, LintReport, lint_queries
from omnigraph.language.query.names import query_names
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.ast import EdgeDecl, InterfaceDecl
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog, EntityType
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.schema.names import schema_names
from omnigraph.language.schema.printer import print_property, print_type
from omnigraph.language.source import Source, Span
from omnigraph.language.types import DECLARED

EMPTY = Catalog({}, {}, {})


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding of `lint` and its place in the text."""

    span: Span
    severity: Literal["error", "warning", "info"]
    code: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declaration: the spans of the whole declaration and of its name, and the declarations inside it."""

    name: str
    kind: Literal["query", "interface", "node", "edge", "property"]
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...] = ()


# --- problems ---------------------------------------------------------------------------------------------------------


def problems(text: str, language: Language, catalog: Catalog | None) -> list[Problem]:
    """All problems of a text, with the messages and codes of `lint`; for queries without a schema only parse errors."""
    if language == "pg":
        try:
            compile_schema(text)
        except LanguageError as error:
            return [Problem(_span(text, error), "error", None, error.message)]
        except BadRequest as error:
            return [Problem(Span(0, 1), "error", None, error.message)]
        return []
    report = lint_queries(text, EMPTY if catalog is None else catalog)
    found = report.all_findings() if catalog is not None else (f for f in report.findings if f.code == "Q000")
    return [_problem(text, finding, report) for finding in found]


def _problem(text: str, finding: Finding, report: LintReport) -> Problem:
    severity: Literal["error", "warning"] = "error" if finding.severity == "error" else "warning"
    if isinstance(finding.error, LanguageError):
        span = _span(text, finding.error)
    else:
        queries = [result.query for result in report.results if finding in result.findings]
        queries = queries or [result.query for result in report.results if result.query.name in finding.query_names]
        start = queries[0].span.start if queries else 0
        span = Span(start, start + len(text[start:].partition("\n")[0].rstrip("\r")))
    return Problem(span, severity, finding.code, finding.message)


def _span(text: str, error: LanguageError) -> Span:
    if error.start is None or error.end is None:
        return Span(0, 1)
    return Positions(text).byte_span(error.start, error.end)


# --- symbols ----------------------------------------------------------------------------------------------------------


def symbols(text: str, language: Language) -> list[Symbol]:
    """The declarations of a text; an empty list when it can not be parsed."""
    try:
        return list(_declarations(text) if language == "pg" else _queries(text))
    except LanguageError:
        return []


def _queries(text: str) -> Iterator[Symbol]:
    file = parse_query_file(text)
    places = {found.span.start: found for found in query_names(file, EMPTY) if found.kind == "query"}
    for query in file.queries:
        name = next((found.span for start, found in places.items() if query.span.start <= start < query.span.end), None)
        head = f"({', '.join(f'${param.name}: {param.type}' for param in query.params)})"
        detail = head if query.name else "mutation" if query.is_mutation else "read"
        yield Symbol(query.name or "query", "query", detail, query.span, name or query.span)


def _declarations(text: str) -> Iterator[Symbol]:
    names = [found for found in schema_names(text) if found.declares]
    for declaration in parse_declarations(Source(text)):
        own = [found for found in names if declaration.span.start <= found.span.start < declaration.span.end]
        places = {found.span.start: found.span for found in own}
        children = tuple(
            Symbol(prop.name, "property", str(prop.type), prop.span, places.get(prop.span.start, prop.span))
            for prop in declaration.properties
        )
        is_edge = isinstance(declaration, EdgeDecl)
        kind: Literal["interface", "node", "edge"] = (
            "edge" if is_edge else "interface" if isinstance(declaration, InterfaceDecl) else "node"
        )
        detail = f"{declaration.from_type} -> {declaration.to_type}" if isinstance(declaration, EdgeDecl) else kind
        name = next((found.span for found in own if found.kind != "property"), declaration.span)
        yield Symbol(declaration.name, kind, detail, declaration.span, name, children)


# --- names ------------------------------------------------------------------------------------------------------------


def names(text: str, language: Language, catalog: Catalog) -> list[Occurrence]:
    """All names of a text; an empty list when it can not be parsed."""
    try:
        return schema_names(text) if language == "pg" else query_names(parse_query_file(text), catalog)
    except LanguageError:
        return []


def explanation(text: str, language: Language, offset: int, catalog: Catalog) -> tuple[Span, str] | None:
    """An explanation in Markdown of the name at an offset, and the span of the name; None when there is none."""
    found = at_offset(names(text, language, catalog), offset)
    if found is None:
        return None
    said = _explained(found, text, catalog)
    return None if said is None else (found.span, said)


def _explained(found: Occurrence, text: str, catalog: Catalog) -> str | None:
    match found.kind:
        case "function":
            entry = FUNCTIONS.get(found.name) or AGGREGATES.get(found.name)
            return None if entry is None else f"{_code('gq', chr(10).join(usages_of(entry)))}\n{entry.help}"
        case "node" | "edge":
            entity = _entity(f"{found.kind}:{found.name}", catalog)
            if entity is None:
                return f"interface `{found.name}`" if found.name in catalog.interfaces else None
            return _code("pg", print_type(entity).rstrip("\n"))  # type: ignore[arg-type]
        case "property":
            owners = [entity for owner in found.owners if (entity := _entity(owner, catalog)) is not None]
            declared = [
                (entity.name, entity.properties[found.name]) for entity in owners if found.name in entity.properties
            ]
            lines = "\n".join(f"{name}.{print_property(prop)}" for name, prop in declared)
            return _code("pg", lines) if lines else None
        case "variable":
            return _code("gq", f"${found.name}: {_variable_type(found, text)}")
        case "query":
            query = next((query for query in parse_query_file(text).queries if query.name == found.name), None)
            return None if query is None else query.description
        case _:
            return None


def _variable_type(found: Occurrence, text: str) -> str:
    if found.owners:
        return "|".join(owner.partition(":")[2] for owner in found.owners)
    for query in parse_query_file(text).queries:
        for param in query.params:
            if query.span == found.scope and param.name == found.name:
                return f"{param.type} (parameter)"
    return "?"


def _entity(key: str, catalog: Catalog) -> EntityType | None:
    kind, _, name = key.partition(":")
    return catalog.edges.get(name) if kind == "edge" else catalog.nodes.get(name)


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a declaration: a span in the same text, or in the schema."""

    in_schema: bool
    span: Span


def definition(text: str, language: Language, offset: int, schema: str | None, catalog: Catalog) -> Place | None:
    """The declaration of the name at an offset; None when it is not known. `schema` is the text of the schema."""
    own = names(text, language, catalog)
    found = at_offset(own, offset)
    if found is None:
        return None
    if found.kind in ("variable", "alias", "query"):
        about = (found.kind, found.name, found.scope)
        same = [other for other in own if (other.kind, other.name, other.scope) == about]
        # A variable may be bound by a traversal only, without a declaration.
        first = min(same, key=lambda other: (not other.declares, other.span.start), default=None)
        return None if first is None else Place(False, first.span)
    declared = own if language == "pg" else names(schema or "", "pg", catalog)
    wanted = _owners_and_interfaces(found, catalog)
    for other in declared:
        is_same = other.declares and (other.kind, other.name) == (found.kind, found.name)
        if is_same and (found.kind != "property" or wanted & set(other.owners)):
            return Place(language == "gq", other.span)
    return None


def _owners_and_interfaces(found: Occurrence, catalog: Catalog) -> set[str]:
    """The types that own a property, and the interfaces from which they may have it."""
    nodes = [catalog.nodes[name] for owner in found.owners if (name := owner.removeprefix("node:")) in catalog.nodes]
    return {*found.owners, *(f"node:{interface}" for node in nodes for interface in node.implements)}


# --- completions ------------------------------------------------------------------------------------------------------

_ANNOTATIONS = ("key", "unique", "index", "range", "check", "card", "embed", "default", "metric", "description")
_SCHEMA_WORDS = ("node", "edge", "interface", "implements", "enum(", "Vector(", *(scalar.value for scalar in DECLARED))
_SCHEMA_WORD = re.compile(r"@?\w*\Z")
_QUERY = re.compile(r"\bquery\b")


def completions(text: str, language: Language, offset: int, catalog: Catalog) -> tuple[Span, list[str]]:
    """The candidates that could replace the word before an offset, and the span of that word."""
    before = text[:offset]
    if language == "pg":
        found = _SCHEMA_WORD.search(before)
        word = found.group() if found else ""
        known = (f"@{name}" for name in (*_ANNOTATIONS, "instruction", "rename_from"))
        possible = known if word.startswith("@") else (*_SCHEMA_WORDS, *_declared_types(text))
        return Span(offset - len(word), offset), sorted({name for name in possible if name.startswith(word)})
    start = max((match.start() for match in _QUERY.finditer(before)), default=0)
    word = word_before(before)
    return Span(offset - len(word), offset), candidates(catalog, (), (), before[start:])


def _declared_types(text: str) -> list[str]:
    return re.findall(r"\b(?:node|interface)\s+([A-Z]\w*)", text)
