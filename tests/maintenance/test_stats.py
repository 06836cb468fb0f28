"""`stats`: what there is, and what maintenance would gain."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph.lifecycle import connect
from omnigraph.maintenance.stats import TableStats
from tests.commit.healthy import tree
from tests.mutation.org_graph import WRITES, org_graph

STAFF = "node:Staff"


def of(graph: og.Graph, key: str, branch: str | None = None) -> TableStats:
    (found,) = [table for table in graph.stats(branch).tables if table.type_key == key]
    return found


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    graph = org_graph(tmp_path / "org")
    for level in range(3):
        graph.mutate(WRITES, "relevel", {"h": "ada", "n": level})
    return graph


def test_before_and_after_maintenance(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    before = of(og.open(org.uri, "ro"), STAFF)
    assert (before.rows, before.fragments, before.fragments_to_compact) == (4, 2, 2)
    assert (before.deleted_rows, before.indexes, before.stale_indexes) == (
        1,
        (),
        ("id_btree", "p1_btree", "p1_inverted"),
    )
    org.optimize()
    after = of(org, STAFF)
    assert (after.rows, after.fragments, after.fragments_to_compact, after.deleted_rows) == (4, 1, 0, 0)
    assert {(index.column, index.kind, index.rows, index.uncovered_rows) for index in after.indexes} == {
        ("id", "BTREE", 4, 0),
        ("handle", "BTREE", 4, 0),
        ("handle", "INVERTED", 4, 0),
    }
    assert after.stale_indexes == ()
    assert after.versions > before.versions
    assert after.reclaimable_bytes > 0
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})
    assert {index.uncovered_rows for index in of(org, STAFF).indexes} == {1}
    org.optimize()
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    monkeypatch.setenv("OMNIGRAPH_STAGING_GRACE", "0s")
    org.cleanup(keep=1)
    clean = of(org, STAFF)
    assert (clean.versions, clean.reclaimable_bytes) == (1, 0)
    assert clean.stored_bytes == sum(
        size
        for name, size in tree(connect(org.uri)).items()
        if name.startswith(org.snapshot().entry(STAFF).path) and not name.endswith(".json")
    )


def test_looking_changes_nothing(org: og.Graph) -> None:
    files = tree(connect(org.uri))
    found = org.stats()
    assert (found.branch, found.commit) == ("main", org.head().id)
    assert [table["type_key"] for table in found.to_dict()["tables"]] == [
        "node:Staff",
        "node:Team",
        "edge:MemberOf",
        "edge:Mentors",
    ]
    assert tree(connect(org.uri)) == files


def test_what_any_branch_publishes_is_not_reclaimable(org: og.Graph) -> None:
    org.create_branch("work")
    org.optimize()
    with_branch = of(org, STAFF)
    assert of(org, STAFF, "work").fragments == 2
    org.delete_branch("work")
    assert of(org, STAFF).reclaimable_bytes > with_branch.reclaimable_bytes


def test_an_unknown_branch(org: og.Graph) -> None:
    with pytest.raises(og.errors.BranchNotFound):
        org.stats("nope")
