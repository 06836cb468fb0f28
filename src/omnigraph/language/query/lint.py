"""Linting: all problems of a query file against a schema, not only the first.

Q000  the file does not parse
L201  a nullable property that no update query sets, although the file updates nodes of its type:
      a null value could never be filled in. Embedded vectors are exempt, since they are computed.
L202  a query whose name is taken by an earlier one, so that it can never be run
L203  a named mutation without parameters, which does the same thing every time
T1 …  a query that does not fit the schema, with the checker's code (None when the error has no code)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import BadRequest, ParseError, TypecheckError
from omnigraph.language.query.ast import Query
from omnigraph.language.query.compile import CompiledQuery, compile_parsed
from omnigraph.language.query.ir import MutationPlan, UpdateNodes
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Source


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem. `severity` is "error" or "warning"; `error` is the raised error, if there is one."""

    severity: str
    code: str | None
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    error: BadRequest | None = None

    def to_dict(self) -> dict[str, Any]:
        about = {"type_name": self.type_name, "property": self.property, "query_names": list(self.query_names)}
        given = {name: value for name, value in about.items() if value}
        return {"severity": self.severity, "code": self.code, "message": self.message, **given}


@dataclass(frozen=True, slots=True)
class QueryReport:
    """The findings of one query; `compiled` is None when the query has an error."""

    query: Query
    findings: tuple[Finding, ...]
    compiled: CompiledQuery | None

    @property
    def error(self) -> Finding | None:
        return next((finding for finding in self.findings if finding.severity == "error"), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(finding.message for finding in self.findings if finding.severity == "warning")

    def to_dict(self) -> dict[str, Any]:
        report: dict[str, Any] = {
            "name": self.query.name,
            "kind": "mutation" if self.query.is_mutation else "read",
            "status": "ok" if self.error is None else "error",
        }
        if self.warnings:
            report["warnings"] = list(self.warnings)
        if self.error is not None:
            report["error"] = self.error.message
        if self.compiled is not None:
            report["operation"] = self.compiled.operation.to_dict()
        return report


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings of a file: of each query, and of the file as a whole."""

    results: tuple[QueryReport, ...]
    findings: tuple[Finding, ...]

    @property
    def status(self) -> str:
        return "error" if self.count("error") else "ok"

    def all_findings(self) -> Iterator[Finding]:
        """The findings of all queries, then the findings of the file as a whole."""
        for result in self.results:
            yield from result.findings
        yield from self.findings

    def count(self, severity: str) -> int:
        return sum(finding.severity == severity for finding in self.all_findings())

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "queries_processed": len(self.results),
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "infos": self.count("info"),
            "results": [result.to_dict() for result in self.results],
            "findings": [finding.to_dict() for finding in self.findings],
        }


def lint_queries(text: str, catalog: Catalog, file: str | None = None) -> LintReport:
    """Lint a `.gq` text against a schema; never raises because of the text."""
    try:
        parsed = parse_query_file(text, file)
    except ParseError as error:
        return LintReport((), (Finding("error", "Q000", error.message, error=error),))
    results: list[QueryReport] = []
    names: set[str] = set()
    for query in parsed.queries:
        results.append(_lint_query(query, catalog, parsed.source, taken=query.name in names))
        names.add(query.name)
    return LintReport(tuple(results), tuple(_never_updated(results, catalog)))


def _lint_query(query: Query, catalog: Catalog, source: Source, *, taken: bool) -> QueryReport:
    findings: list[Finding] = []
    compiled = None
    try:
        compiled = compile_parsed(query, catalog, source)
    except BadRequest as error:
        code = error.code if isinstance(error, TypecheckError) else None
        findings.append(Finding("error", code, error.message, query_names=(query.name,), error=error))
    if taken:
        message = f"{query.title} is declared before; only the first one can be run"
        findings.append(Finding("warning", "L202", message, query_names=(query.name,)))
    if query.name and query.is_mutation and not query.params:
        message = "mutation declares no parameters; it does the same thing every time"
        findings.append(Finding("warning", "L203", message, query_names=(query.name,)))
    return QueryReport(query, tuple(findings), compiled)


def _never_updated(results: list[QueryReport], catalog: Catalog) -> Iterator[Finding]:
    """The findings L201, in the order of the catalog."""
    updates = [(result.query.name, update) for result in results for update in _updates(result)]
    for name, node_type in catalog.nodes.items():
        own = [(query_name, update) for query_name, update in updates if update.node_type == name]
        assigned = {assign.property for _, update in own for assign in update.assignments}
        for declared in node_type.properties.values() if own else ():
            if declared.type.nullable and declared.embed is None and declared.name not in assigned:
                yield Finding(
                    "warning",
                    "L201",
                    f"{name}.{declared.name} is nullable, but no update query sets it",
                    type_name=name,
                    property=declared.name,
                    query_names=tuple(dict.fromkeys(query_name for query_name, _ in own)),
                )


def _updates(result: QueryReport) -> Iterator[UpdateNodes]:
    if result.compiled is not None and isinstance(result.compiled.plan, MutationPlan):
        yield from (step for step in result.compiled.plan.statements if isinstance(step, UpdateNodes))
