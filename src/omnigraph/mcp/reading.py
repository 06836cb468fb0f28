"""Tools that read, with the names and shapes of the HTTP contract; and tools for writing queries: explain, lint, functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from omnigraph import __version__
from omnigraph.commit.format import CURRENT
from omnigraph.errors import BadRequest, CommitNotFound, Denied
from omnigraph.language.query.functions import described_functions
from omnigraph.language.query.lint import lint_queries
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.mcp.answers import paged, sliced
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Arguments, Reply, Tool, no_needs, tool
from omnigraph.policy.actions import GRAPH_LIST, READ, Need
from omnigraph.query.result import Result
from omnigraph.wire.shapes import commit_output, page, read_output, snapshot_output

#: How many catalogs are cached.
_REMEMBERED = 16
#: The default number of entries of a page.
_PAGE = 50

Branch = Annotated[
    str | None, Meta(description="The branch that is read; main unless given, or the branch of this session.")
]
AtSnapshot = Annotated[
    str | None,
    Meta(description="A commit id, tag or snapshot id to read instead of a branch: the same answer every time."),
]
Text = Annotated[str, Meta(description="The text of a .gq query. Give values as params, not inside the text.")]
QueryName = Annotated[str | None, Meta(description="Which query of a text that holds several.")]
Params = Annotated[dict[str, Any] | None, Meta(description="The values of the parameters, by name without `$`.")]
Limit = Annotated[int, Meta(ge=1, le=10_000, description="How many entries at most.")] | None
PageToken = Annotated[str | None, Meta(description="next_page_token of the page before.")]
Offset = Annotated[
    int, Meta(ge=0, description="How many rows or characters to leave out, to get the rest of a cut answer.")
]
Format = Annotated[
    Literal["rows", "table"],
    Meta(description="rows: objects by column name; table: arrays in the order of `columns`, which is shorter."),
]
Kinds = Annotated[tuple[Literal["node", "edge"], ...], Meta(description="Only changes of nodes, or of edges.")]
Types = Annotated[tuple[str, ...], Meta(description="Only changes of these types.")]
Ops = Annotated[tuple[Literal["insert", "update", "delete"], ...], Meta(description="Only changes of these kinds.")]


class Nothing(Arguments):
    """No arguments."""


class OfBranch(Arguments):
    branch: Branch = None


class SchemaAsked(Arguments):
    branch: Branch = None
    snapshot: AtSnapshot = None
    offset: Offset = 0


class Queried(Arguments):
    query: Text
    name: QueryName = None
    params: Params = None
    branch: Branch = None
    snapshot: AtSnapshot = None
    format: Format = "rows"
    offset: Offset = 0


class Explained(Arguments):
    query: Text
    name: QueryName = None
    params: Params = None
    branch: Branch = None
    snapshot: AtSnapshot = None
    analyze: Annotated[bool, Meta(description="Also run the query, and measure each step.")] = False


class Linted(Arguments):
    query: Annotated[str, Meta(description="A text of one or more .gq queries or mutations.")]
    branch: Branch = None


class Named(Arguments):
    name: Annotated[str | None, Meta(description="One function or aggregate; all of them unless given.")] = None


class BranchPage(Arguments):
    limit: Limit = None
    page_token: PageToken = None


class CommitPage(Arguments):
    branch: Branch = None
    limit: Limit = None
    page_token: PageToken = None
    actor: Annotated[str | None, Meta(description="Only commits of this actor.")] = None


class OneCommit(Arguments):
    commit_id: Annotated[str, Meta(description="The id of a commit.")]


class ChangePage(Arguments):
    commit_id: Annotated[str, Meta(description="The id of a commit.")]
    limit: Limit = None
    page_token: PageToken = None
    kind: Kinds = ()
    type: Types = ()
    op: Ops = ()


class Polled(Arguments):
    branch: Branch = None
    cursor: Annotated[str | None, Meta(description="The cursor of an earlier poll.")] = None
    start: Annotated[str | None, Meta(description="now (unless given), beginning, or after:<commit id>.")] = None
    page_token: PageToken = None
    limit: Limit = None
    kind: Kinds = ()
    type: Types = ()
    op: Ops = ()


# --- what is asked ----------------------------------------------------------------------------------------------------


class Place(TypedDict):
    """The branch or the snapshot that is read; the other one is None."""

    branch: str | None
    snapshot: str | None


def place_of(session: Session, asked: Any) -> Place:
    """The branch or the snapshot to read, as arguments of a verb."""
    if asked.branch is not None and asked.snapshot is not None:
        raise BadRequest("branch and snapshot exclude each other; give one of them")
    if asked.snapshot is not None:
        return {"branch": None, "snapshot": asked.snapshot}
    return {"branch": session.read_branch(asked.branch), "snapshot": None}


def read_place(session: Session, asked: Any) -> Iterable[Need]:
    """The need to read the branch, or the branch of the snapshot, in the arguments."""
    place = place_of(session, asked)
    if place["snapshot"] is None:
        return [Need(READ, place["branch"])]
    return [Need(READ, session.graph.snapshot(at=place["snapshot"]).branch)]


def read_branch(session: Session, asked: Any) -> Iterable[Need]:
    """The need to read the branch in the arguments."""
    return [Need(READ, session.read_branch(asked.branch))]


def read_nothing(session: Session, asked: Any) -> Iterable[Need]:
    """The need to read data that belongs to no branch."""
    return [Need(READ)]


def read_schema(session: Session, asked: Any) -> Iterable[Need]:
    """The need to read the schema; without a branch or snapshot in the arguments it belongs to no branch."""
    if asked.branch is None and getattr(asked, "snapshot", None) is None:
        return [Need(READ)]
    return read_place(session, asked) if hasattr(asked, "snapshot") else [Need(READ, asked.branch)]


def refuse_path(text: str) -> None:
    """Raise BadRequest for a text that the library would treat as the name of a file."""
    if "{" not in text and text.strip().endswith(".gq"):
        raise BadRequest("a query is sent as its text, not as the name of a file")


def catalog_of(session: Session, branch: str | None = None, snapshot: str | None = None) -> Catalog:
    """The catalog of a branch or a snapshot."""
    place = session.read_branch(branch) if snapshot is None else None
    return _catalog(session.graph.schema(place, snapshot=snapshot))


@lru_cache(maxsize=_REMEMBERED)
def _catalog(source: str) -> Catalog:
    return compile_schema(source, accepted=True)


# --- the contract's tools ---------------------------------------------------------------------------------------------


def _health(session: Session, asked: Nothing) -> Reply:
    return Reply({"status": "ok", "version": __version__, "internal_schema_version": CURRENT})


def _snapshot(session: Session, asked: OfBranch) -> Reply:
    return Reply(snapshot_output(session.graph.snapshot(session.read_branch(asked.branch))), "datasets")


def _query(session: Session, asked: Queried) -> Reply:
    refuse_path(asked.query)
    query = find_query(parse_query_file(asked.query), asked.name)
    if query.is_mutation:
        raise BadRequest(f"{query.title} contains mutations; call mutate with it")
    place = place_of(session, asked)
    result = session.graph.query(
        asked.query, asked.name, asked.params, timeout=session.timeout, cancel=session.cancel, **place
    )
    return rows_reply(session, query.name, place, result, asked.format, asked.offset)


def rows_reply(session: Session, name: str, place: Place, result: Result, format: str, offset: int) -> Reply:
    """The rows of a query as the contract has them, or as a table; `row_count` counts all of them."""
    total = len(result)
    # A row has at least two bytes, so more rows than this never fit; the others are not converted to JSON.
    shown = replace(result, table=result.table.slice(offset, session.answer_bytes // 2))
    shape = read_output(name, place["branch"], place["snapshot"], shown) | {"row_count": total}
    if format == "table":
        shape["rows"] = [list(row.values()) for row in shape["rows"]]
    if offset:
        shape["offset"] = offset
    rest = {"snapshot": result.commit}
    return Reply(shape, "rows", lambda kept: {"offset": offset + kept, **rest}, total=max(0, total - offset))


def _schema_get(session: Session, asked: SchemaAsked) -> Reply:
    branch = session.read_branch(asked.branch) if asked.snapshot is None else None
    source = session.graph.schema(branch, snapshot=asked.snapshot)
    return Reply(sliced("schema_source", source, asked.offset, session.answer_bytes))


def _branches_list(session: Session, asked: BranchPage) -> Reply:
    names, token = page(sorted(session.graph.branches()), asked.limit, asked.page_token, lambda name: name)
    return Reply({"branches": names} | token, "branches", lambda kept: {"page_token": names[kept - 1]})


def _graphs_list(session: Session, asked: Nothing) -> Reply:
    return Reply({"graphs": session.graphs()}, "graphs")


def _commits_list(session: Session, asked: CommitPage) -> Reply:
    history = session.graph.commits(session.read_branch(asked.branch), actor=asked.actor)
    commits, token = page(history, asked.limit or _PAGE, asked.page_token, lambda commit: commit.id)
    shape = {"commits": [commit_output(commit) for commit in commits]} | token
    return Reply(shape, "commits", lambda kept: {"page_token": commits[kept - 1].id})


def _commits_get(session: Session, asked: OneCommit) -> Reply:
    return Reply(commit_output(session.graph.commit(asked.commit_id)))


def _commit_needs(session: Session, asked: ChangePage) -> Iterable[Need]:
    """Check the permission to read the branch of the commit; a forbidden commit is reported as not found."""
    found = session.graph.commit(asked.commit_id)
    try:
        session.check(Need(READ, found.branch))
    except Denied:
        raise CommitNotFound(f"commit '{asked.commit_id}' not found", commit=asked.commit_id) from None
    return ()


def _commits_changes(session: Session, asked: ChangePage) -> Reply:
    def ask(limit: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {"kinds": asked.kind, "types": asked.type, "ops": asked.op}
        found = session.graph.commit_changes(asked.commit_id, limit=limit, page_token=asked.page_token, **wanted)
        return found.to_dict()

    return paged(ask, asked.limit or 2 * _PAGE, session.answer_bytes, "changes")


def _feed_branch(session: Session, given: str | None) -> str:
    return session.read_branch((given or "").strip() or None)


def _feed_needs(session: Session, asked: Polled) -> Iterable[Need]:
    return [Need(READ, _feed_branch(session, asked.branch))]


def _changes_poll(session: Session, asked: Polled) -> Reply:
    def ask(limit: int) -> dict[str, Any]:
        found = session.graph.changes(
            _feed_branch(session, asked.branch),
            cursor=asked.cursor,
            start=asked.start,
            page_token=asked.page_token,
            limit=limit,
            kinds=asked.kind,
            types=asked.type,
            ops=asked.op,
        )
        return found.to_dict()

    return paged(ask, asked.limit or 2 * _PAGE, session.answer_bytes, "blocks")


# --- help with queries ------------------------------------------------------------------------------------------------


def _explain(session: Session, asked: Explained) -> Reply:
    refuse_path(asked.query)
    query = find_query(parse_query_file(asked.query), asked.name)
    if query.is_mutation:
        raise BadRequest(f"{query.title} contains mutations; only reads are explained")
    found = session.graph.explain(
        asked.query,
        asked.name,
        asked.params,
        analyze=asked.analyze,
        timeout=session.timeout,
        cancel=session.cancel,
        **place_of(session, asked),
    )
    # The plan before its rewrites is left out: it does not help to improve a query.
    return Reply({"steps": found.steps, "plan": found.rewritten, "analyzed": found.analyzed})


def _lint(session: Session, asked: Linted) -> Reply:
    refuse_path(asked.query)
    return Reply(lint_queries(asked.query, catalog_of(session, asked.branch)).to_dict(), "results")


def _functions(session: Session, asked: Named) -> Reply:
    functions = described_functions(asked.name)
    if asked.name is None:
        functions = [{"name": about["name"], "usage": about["usage"], "help": about["help"]} for about in functions]
    return Reply({"functions": functions}, "functions")


def _list_graphs(session: Session, asked: Nothing) -> Iterable[Need]:
    return [Need(GRAPH_LIST)]


TOOLS: list[Tool] = [
    tool("health", "Health", "Whether the graph answers, and the version of OmniGraph.", Nothing, no_needs, _health),
    tool(
        "snapshot",
        "Tables of a branch",
        "The node and edge types of a branch with how many entities each has.",
        OfBranch,
        read_branch,
        _snapshot,
    ),
    tool(
        "query",
        "Run a read query",
        "Run a read query in the .gq language. Returns columns, rows and graph_commit_id, the commit that was read. A large "
        "answer is cut; `truncated` says how to get the rest. Use lint to check a text, functions for what can be called.",
        Queried,
        read_place,
        _query,
    ),
    tool(
        "schema_get",
        "Get the schema",
        "The .pg source of the schema: all node and edge types, their properties and rules. Read it before you write a query.",
        SchemaAsked,
        read_schema,
        _schema_get,
    ),
    tool(
        "branches_list", "List branches", "The names of all branches, sorted.", BranchPage, read_nothing, _branches_list
    ),
    tool("graphs_list", "List graphs", "The graphs of this server, by id.", Nothing, _list_graphs, _graphs_list),
    tool(
        "commits_list",
        "List commits",
        "The history of a branch, newest first, in pages.",
        CommitPage,
        read_branch,
        _commits_list,
    ),
    tool(
        "commits_get",
        "Get a commit",
        "One commit: its branch, parents, actor and time.",
        OneCommit,
        read_nothing,
        _commits_get,
    ),
    tool(
        "commits_changes",
        "What a commit changed",
        "The entities that one commit inserted, updated and deleted, with their values before and after, in pages.",
        ChangePage,
        _commit_needs,
        _commits_changes,
    ),
    tool(
        "changes_poll",
        "Poll the change feed",
        "What has happened on a branch since a cursor. Follow next_page_token until there is none, then keep the cursor.",
        Polled,
        _feed_needs,
        _changes_poll,
    ),
    tool(
        "explain",
        "Explain a query",
        "How a read query is answered: the steps, which indexes are used, and with analyze how many rows and how long.",
        Explained,
        read_place,
        _explain,
    ),
    tool(
        "lint",
        "Check queries",
        "Check a text of queries or mutations against the schema without running it: errors with their place, and warnings.",
        Linted,
        lambda session, asked: [Need(READ)] if asked.branch is None else [Need(READ, asked.branch)],
        _lint,
    ),
    tool(
        "functions",
        "Functions of the query language",
        "The functions and aggregates that a query can call, with how they are written.",
        Named,
        no_needs,
        _functions,
    ),
]
