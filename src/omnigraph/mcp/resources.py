"""Resources that an agent can read: the schema, the branches, the graphs, and advice on working with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from omnigraph.errors import NotFound, OmnigraphError
from omnigraph.mcp.answers import text_of
from omnigraph.mcp.session import Session
from omnigraph.mcp.tools import Outcome, failed
from omnigraph.policy.actions import GRAPH_LIST, READ, Need

MARKDOWN = "text/markdown"
_PRACTICES = {
    "index": "What the other pages are about; read it first.",
    "data": "Before you write: branches, mutations, loads, merges, repeats.",
    "queries": "Before you write a query: patterns, conditions, results, and common mistakes.",
    "schema": "How to read a schema: types, keys, edges, rules.",
    "search": "Before you search: find, words, meaning, and both in a query.",
}


@dataclass(frozen=True)
class Page:
    """One resource: its URI, its description, the needed permissions, and its text."""

    uri: str
    title: str
    description: str
    media_type: str
    needs: tuple[Need, ...]
    text: Callable[[Session], str]


def _schema(session: Session) -> str:
    return session.graph.schema(session.read_branch(None))


def _branches(session: Session) -> str:
    return text_of(sorted(session.graph.branches()))


def _graphs(session: Session) -> str:
    return text_of(session.graphs())


@cache
def practice(name: str) -> str:
    """The text of one page of advice."""
    return (files("omnigraph.mcp") / "practices" / f"{name}.md").read_text(encoding="utf-8")


def _practice(name: str) -> Callable[[Session], str]:
    return lambda session: practice(name)


def _pages() -> Iterable[Page]:
    yield Page("omnigraph://schema", "Schema", "The .pg source of the schema.", "text/plain", (Need(READ),), _schema)
    yield Page(
        "omnigraph://branches", "Branches", "The names of the branches.", "application/json", (Need(READ),), _branches
    )
    yield Page(
        "omnigraph://graphs", "Graphs", "The graphs of this server.", "application/json", (Need(GRAPH_LIST),), _graphs
    )
    for name, about in _PRACTICES.items():
        uri = f"omnigraph://best-practices/{name}"
        yield Page(uri, f"Best practices: {name}", about, MARKDOWN, (), _practice(name))


PAGES: dict[str, Page] = {page.uri: page for page in _pages()}


def find_page(uri: str) -> Page:
    """A resource by its address."""
    found = PAGES.get(uri.rstrip("/"))
    if found is None:
        raise NotFound(f"there is no resource '{uri[:200]}'; there are {', '.join(PAGES)}")
    return found


def read_page(session: Session, uri: str) -> tuple[Page, str] | Outcome:
    """A resource and its text, or an error as an outcome."""
    try:
        page = find_page(uri)
        for need in page.needs:
            session.check(need)
        return page, page.text(session)
    except OmnigraphError as error:
        return failed(error, session, session.answer_bytes)
