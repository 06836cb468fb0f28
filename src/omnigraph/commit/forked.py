"""Notes which branches have had children, in `__forked`, so that deleting a branch need not read the refs of all others.

`__forked/<name, percent-encoded>.json` is written before a branch is made from `name`, and deleted with `name`. A note
whose children are gone is harmless: then the refs are read. `__forked/noted` says since when, and for which place of the graph,
all parents are noted. Where it does not apply, as in a copy or a restored backup, the refs are read once and noted again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from urllib.parse import quote

import orjson

from omnigraph import failpoints
from omnigraph.commit.branch_refs import BranchRef, list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.retired import RETIRED
from omnigraph.errors import StorageError
from omnigraph.ids import now_micros
from omnigraph.storage.objects import at_once

FOLDER = "__forked"
_NOTED = f"{FOLDER}/noted"
#: The assumed largest difference between the clocks of processes that make branches, in microseconds.
_CLOCKS_APART = 24 * 3600 * 1_000_000

failpoints.declare("branch_create.parent_noted")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offspring:
    """The children of a branch. `alive`: a child that still exists, else None. `never`: it never had a child."""

    alive: BranchRef | None
    never: bool


def note_parent(context: CommitContext, name: str) -> None:
    """Note that a branch is about to be made from branch `name`, whose lock is held. Main, never deleted, needs no note."""
    if name == MAIN:
        return
    context.store.put(_path(name), orjson.dumps({"branch": name}))
    context.make_durable(_path(name))
    failpoints.hit("branch_create.parent_noted")


def offspring(context: CommitContext, ref: BranchRef) -> Offspring:
    """The children of a branch, whose lock is held. Costs two requests if it never had a child."""
    store = context.store
    with at_once(context.root) as requests:
        noting = requests.submit(_noted_since, context)
        marked = store.stamp(_path(ref.name)) is not None
        since = noting.result()
    if since is not None and not marked:
        # A branch older than the notes may have had children that are deleted but whose tables are kept.
        return Offspring(None, never=since == 0 or ref.created_at * 1_000_000 > since + _CLOCKS_APART)
    refs = list_refs(store)
    if since is None:
        _note_all(context, refs)
    return Offspring(next((other for other in refs if other.parent == ref.name), None), never=False)


def forget_parent(context: CommitContext, name: str) -> None:
    """Remove the note of a branch that was deleted."""
    try:
        context.store.delete(_path(name))
    except StorageError as error:
        _log.warning("%s is left behind, which does no harm: %s", _path(name), error)


def _noted_since(context: CommitContext) -> int | None:
    """Since when the parents of all branches are noted, in microseconds (0: always); None when some may be missing."""
    data = context.store.get_or_none(_NOTED)
    try:
        value = orjson.loads(data or b"{}")
        return int(value["since"]) if value["uri"] == context.root.uri else None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None


def _note_all(context: CommitContext, refs: list[BranchRef]) -> None:
    """Note the parents of all branches. A branch made meanwhile has its parent noted by the process that makes it."""
    for parent in sorted({ref.parent for ref in refs}):
        note_parent(context, parent)
    since = now_micros() if context.store.has_more_than(0, RETIRED) else 0
    context.store.put(_NOTED, orjson.dumps({"uri": context.root.uri, "since": since}))
    context.make_durable(_NOTED)


def _path(name: str) -> str:
    return f"{FOLDER}/{quote(name, safe='')}.json"
