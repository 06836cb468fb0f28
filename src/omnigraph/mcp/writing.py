"""Tools that write. Each commit has the agent as its actor, a message (a default unless given) and an idempotency key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.mcp.reading import Params, QueryName, refuse_path
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Arguments, Reply, Tool, tool
from omnigraph.policy.actions import BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE, CHANGE, Need
from omnigraph.wire.failures import IN_MEMORY, told_by_record
from omnigraph.wire.shapes import change_output, load_answer, merge_output

WriteBranch = Annotated[
    str | None, Meta(description="The branch that is written to; main unless given, or the branch of this session.")
]
Message = (
    Annotated[str, Meta(max_length=1000, description="What this write is about; it is kept with the commit.")] | None
)
Key = Annotated[
    str | None,
    Meta(
        description="A text of your choice. A repeat with the same key answers as the first call did, and writes nothing."
    ),
]


class Mutated(Arguments):
    query: Annotated[str, Meta(description="The text of a .gq mutation: insert, update, delete.")]
    name: QueryName = None
    params: Params = None
    branch: WriteBranch = None
    if_graph_commit: Annotated[
        str | None,
        Meta(description="Only while this commit, such as graph_commit_id of a query, is the head of the branch."),
    ] = None
    message: Message = None
    idempotency_key: Key = None


class LoadAsked(Arguments):
    data: Annotated[
        str, Meta(description='JSON lines: {"type":T,"data":{…}} and {"edge":E,"from":…,"to":…,"data":{…}}.')
    ]
    branch: WriteBranch = None
    base: Annotated[str | None, Meta(description="Make the branch from this one when it does not exist.")] = (
        msgspec.field(default=None, name="from")
    )
    mode: Annotated[
        Literal["merge", "append", "overwrite"],
        Meta(
            description="merge: insert or replace by id; append: refuse ids that exist; overwrite: replace all of each type."
        ),
    ] = "merge"
    message: Message = None
    idempotency_key: Key = None


class BranchMade(Arguments):
    name: Annotated[str, Meta(description="The name of the new branch.")]
    base: Annotated[str | None, Meta(description="The branch it starts from; main unless given.")] = msgspec.field(
        default=None, name="from"
    )


class BranchGone(Arguments):
    name: Annotated[str, Meta(description="The branch that is deleted.")]


class Merged(Arguments):
    source: Annotated[str, Meta(description="The branch that is merged.")]
    target: Annotated[str | None, Meta(description="The branch it is merged into; main unless given.")] = None
    delete_branch: Annotated[bool, Meta(description="Delete the source when it is merged.")] = False
    message: Message = None
    idempotency_key: Key = None


def _mutate_needs(session: Session, asked: Mutated) -> Iterable[Need]:
    return session.needs_of_write(session.write_branch(asked.branch))


def _mutate(session: Session, asked: Mutated) -> Reply:
    refuse_path(asked.query)
    query = find_query(parse_query_file(asked.query), asked.name)
    if not query.is_mutation:
        raise BadRequest(f"{query.title} is a read; call query with it")
    branch = session.write_branch(asked.branch)
    session.make_branch(branch)
    return mutated(
        session,
        asked.query,
        query.name,
        asked.name,
        asked.params,
        branch,
        asked.if_graph_commit,
        asked.message,
        asked.idempotency_key,
    )


def mutated(
    session: Session,
    source: str,
    shown: str,
    name: str | None,
    params: dict[str, Any] | None,
    branch: str,
    if_commit: str | None,
    message: str | None,
    idempotency_key: str | None,
) -> Reply:
    """Run a mutation and return its counts and commit. `shown`: the name of the query in the answer."""
    key = session.keyed(idempotency_key)
    result = session.graph.mutate(
        source,
        name,
        params,
        branch=branch,
        if_commit=if_commit,
        idempotency_key=key,
        message=message or f"{shown or 'mutation'} (MCP)",
        **session.signed(),
    )
    session.committed = result.commit is not None
    return _receipt(session, change_output(branch, shown, session.writer, result), key)


def _receipt(session: Session, shape: dict[str, Any], key: str) -> Reply:
    """A shape of the contract, with the idempotency key with which a repeat gets the same answer."""
    return Reply(shape | {"idempotency_key": key.removeprefix(session.key_prefix)})


def _load_base(session: Session, asked: LoadAsked, branch: str) -> str | None:
    """The branch from which a load creates its branch; None when it creates none."""
    return MAIN if asked.base is None and branch == session.branch else asked.base


def _load_needs(session: Session, asked: LoadAsked) -> Iterable[Need]:
    branch = session.write_branch(asked.branch)
    base = _load_base(session, asked, branch)
    needs = [Need(CHANGE, branch)]
    if base is not None and branch not in session.graph.branches():
        needs.insert(0, Need(BRANCH_CREATE, base, branch))
    return needs


def _load(session: Session, asked: LoadAsked) -> Reply:
    from omnigraph.load.inputs import Body

    branch = session.write_branch(asked.branch)
    key = session.keyed(asked.idempotency_key)
    with told_by_record("record", IN_MEMORY):
        result = session.graph.load(
            Body.of(asked.data.encode("utf-8", "replace"), by_record=True),
            asked.mode,
            branch=branch,
            base=_load_base(session, asked, branch),
            lenient=True,
            format="jsonl",
            idempotency_key=key,
            message=asked.message,
            **session.signed(),
        )
    session.committed = True
    return _receipt(session, load_answer(session.graph.uri, session.writer, result), key)


def _create_needs(session: Session, asked: BranchMade) -> Iterable[Need]:
    return [Need(BRANCH_CREATE, asked.base or MAIN, asked.name)]


def _branches_create(session: Session, asked: BranchMade) -> Reply:
    base = asked.base or MAIN
    session.graph.create_branch(asked.name, base, **session.signed())
    shape = {"uri": session.graph.uri, "from": base, "name": asked.name, "actor_id": session.writer}
    return Reply(shape)


def _delete_needs(session: Session, asked: BranchGone) -> Iterable[Need]:
    return [Need(BRANCH_DELETE, None, asked.name)]


def _branches_delete(session: Session, asked: BranchGone) -> Reply:
    session.graph.delete_branch(asked.name, **session.signed())
    session._is_made = session._is_made and asked.name != session.branch
    return Reply({"uri": session.graph.uri, "name": asked.name, "actor_id": session.writer})


def _merge_needs(session: Session, asked: Merged) -> Iterable[Need]:
    needs = [Need(BRANCH_MERGE, asked.source, asked.target or MAIN)]
    return [*needs, Need(BRANCH_DELETE, None, asked.source)] if asked.delete_branch else needs


def _branches_merge(session: Session, asked: Merged) -> Reply:
    target = asked.target or MAIN
    key = session.keyed(asked.idempotency_key)
    signed: Any = session.signed()
    result = session.graph.merge(
        asked.source, target, delete_branch=asked.delete_branch, idempotency_key=key, message=asked.message, **signed
    )
    session.committed = result.commit is not None
    return _receipt(session, merge_output(asked.source, target, session.writer, result), key)


TOOLS: list[Tool] = [
    tool(
        "mutate",
        "Run a mutation",
        "Insert, update or delete with a .gq mutation: one commit for all of its statements, or none. commit is null when "
        "nothing changed. For read, decide, write: give graph_commit_id of the query as if_graph_commit.",
        Mutated,
        _mutate_needs,
        _mutate,
        writes=True,
        destroys=True,
    ),
    tool(
        "load",
        "Load rows",
        "Load nodes and edges from JSON lines in one commit, or none of them; every problem is told with its record.",
        LoadAsked,
        _load_needs,
        _load,
        writes=True,
        destroys=True,
    ),
    tool(
        "branches_create",
        "Create a branch",
        "Make a branch at the head of another one.",
        BranchMade,
        _create_needs,
        _branches_create,
        writes=True,
    ),
    tool(
        "branches_delete",
        "Delete a branch",
        "Delete a branch and what is only on it.",
        BranchGone,
        _delete_needs,
        _branches_delete,
        writes=True,
        destroys=True,
    ),
    tool(
        "branches_merge",
        "Merge a branch",
        "Merge a branch into another one, in one commit. Conflicts are told together and nothing is written; call "
        "merge_preview before.",
        Merged,
        _merge_needs,
        _branches_merge,
        writes=True,
        destroys=True,
    ),
]
