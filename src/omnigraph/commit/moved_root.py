"""Detecting a moved graph: Lance branches remember the absolute URI they were made under, and break when it changes."""

from __future__ import annotations

import orjson

from omnigraph.commit.branch_refs import list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.errors import GraphMoved, StorageError
from omnigraph.storage.digests import digest_of, note
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root

ROOT_RECORD = "__root.json"


def record_root(context: CommitContext) -> None:
    """Before a branch is made: remember where this graph lies. Without branches a graph may be moved freely."""
    recorded = _recorded(context.store)
    if recorded != context.root.uri:
        data = orjson.dumps({"uri": context.root.uri})
        note(context.root, {ROOT_RECORD: digest_of(data)})
        context.store.put(ROOT_RECORD, data)


def refuse_if_moved(store: ObjectStore, root: Root) -> None:
    """At open: a graph that has branches must lie where they were made."""
    recorded = _recorded(store)
    if recorded is None or recorded == root.uri:
        return
    branches = [ref.name for ref in list_refs(store)]
    if branches:
        raise GraphMoved(
            f"this graph was moved from {recorded} to {root.uri}, but its branches ({', '.join(branches)}) can only be "
            "read where they were made; move it back, or export it there and import it here (export/import)",
            recorded=recorded,
            actual=root.uri,
        )


def _recorded(store: ObjectStore) -> str | None:
    data = store.get_or_none(ROOT_RECORD)
    if data is None:
        return None
    try:
        uri = orjson.loads(data)["uri"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        uri = None
    if not isinstance(uri, str):
        raise StorageError(
            f"{ROOT_RECORD} does not say where this graph's branches were made; remove it if the graph lies there still",
            kind="permanent",
            path=ROOT_RECORD,
        )
    return uri
