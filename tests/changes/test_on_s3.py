"""The same on an object store: differences, tags and the feed, on a branch and across a compaction."""

from __future__ import annotations

import omnigraph as og
from omnigraph.storage.root import Root
from tests.changes.applying import applied, content, told
from tests.mutation.org_graph import LOAD, SCHEMA, call


def test_changes_on_s3(s3_root: Root) -> None:
    graph = og.init(s3_root.uri, SCHEMA, storage_options=s3_root.storage_options)
    graph.mutate(LOAD)
    cursor = graph.changes().cursor
    graph.tag("start")
    graph.create_branch("b")
    call(graph, "relevel", "ben", 99, branch="b")
    call(graph, "drop_staff", "dov", branch="b")
    call(graph, "put", "eve", 1)
    graph.optimize()
    assert told(graph.diff("main", "b", types="Staff").changes) == [
        ("update", "node:Staff", "ben"),
        ("delete", "node:Staff", "dov"),
        ("delete", "node:Staff", "eve"),
    ]
    assert applied(content(graph), graph.diff("main", "b")) == content(graph, "b")
    assert told(graph.diff("start").changes) == [("insert", "node:Staff", "eve")]
    fresh = og.open(s3_root.uri, mode="ro", storage_options=s3_root.storage_options)
    blocks = fresh.changes(cursor=cursor).blocks
    assert [told(block.changes) for block in blocks if block.changes] == [[("insert", "node:Staff", "eve")]]
    assert fresh.tags() == graph.tags()
