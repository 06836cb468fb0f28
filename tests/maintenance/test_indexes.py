"""`ensure_indices`: what it builds, what it leaves alone, and how it gets along with other writers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.protocol import execute
from omnigraph.commit.writers import ENSURE_INDICES
from omnigraph.graph.lifecycle import connect
from omnigraph.query.search.analyser import INDEX_OPTIONS
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.staged import stage_append
from tests.commit.healthy import assert_healthy
from tests.commit.org import MEMBER_OF, STAFF, staff, write
from tests.maintenance.coverage import build_index, index_on, published, versions
from tests.mutation.org_graph import org_graph
from tests.query.loading import append

ITEMS = """
node I {
  slug: String @key
  st: enum(a, b) @index
  at: DateTime @index
  rank: I32 @index
  big: U64? @index
  ratio: F32? @index
  flag: Bool? @index
  title: String @index
  note: String?
  tags: [String]? @index(tags)
  data: Blob?
}
"""


@pytest.fixture
def items(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "items", ITEMS)
    rows = [
        {"slug": f"i{n}", "st": "ab"[n % 2], "at": f"2024-01-0{n + 1}T00:00:00Z", "rank": n, "big": n, "ratio": n / 2}
        | {"flag": n > 2, "title": f"The River number {n}", "tags": [f"t{n}", "all"]}
        for n in range(5)
    ]
    append(graph, ({"type": "I", "data": row} for row in rows))
    return graph


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "org")


# --- what is built ----------------------------------------------------------------------------------------------------


LOOKUPS: dict[str, Callable[[], str | pc.Expression]] = {
    "id": lambda: pc.field("id") == "i3",
    "slug": lambda: pc.field("slug") == "i3",
    "st": lambda: pc.field("st") == "b",
    "at": lambda: pc.field("at") == pa.scalar(datetime(2024, 1, 4, tzinfo=UTC), pa.timestamp("ms", "UTC")),
    "rank": lambda: pc.field("rank") >= pa.scalar(3, pa.int32()),
    "big": lambda: "big = 3",
    "ratio": lambda: pc.field("ratio") == pa.scalar(1.5, pa.float32()),
    "flag": lambda: "flag = true",
    "tags": lambda: "array_has(tags, 't3')",
}


@pytest.mark.parametrize("column", LOOKUPS)
def test_a_lookup_goes_through_the_index(items: og.Graph, column: str) -> None:
    scan = published(items, "node:I").dataset.scanner
    unindexed = scan(filter=LOOKUPS[column]())
    assert "ScalarIndexQuery" not in unindexed.explain_plan()
    items.ensure_indices()
    indexed = published(items, "node:I").dataset.scanner(filter=LOOKUPS[column]())
    assert f"{index_name(items, column)}(" in indexed.explain_plan()
    assert indexed.to_table().num_rows == unindexed.to_table().num_rows > 0


def index_name(graph: og.Graph, column: str) -> str:
    declared = graph.contract().catalog.nodes["I"].properties.get(column)
    stem = column if declared is None else f"p{declared.id}"
    return f"{stem}_label_list" if column == "tags" else f"{stem}_btree"


@pytest.mark.row("IDX-01")
def test_free_text_has_no_ordered_index_unless_it_is_a_key(items: og.Graph) -> None:
    report = items.ensure_indices()
    kinds = {(index.columns[0], index.kind) for index in published(items, "node:I").indices()}
    assert ("title", "BTREE") not in kinds
    assert {("title", "INVERTED"), ("slug", "BTREE"), ("slug", "INVERTED")} <= kinds
    assert not {"note", "data"} & {column for column, _ in kinds}
    assert {(status.column, status.kind) for status in report.built} == kinds
    assert index_on(items, "node:I", "title").rows == 5


def test_everything_is_one_commit_that_changes_no_row(org: og.Graph) -> None:
    before = versions(org)
    parent = org.head().id
    report = org.ensure_indices(actor="act-keeper")
    commit = org.head()
    assert (commit.id, commit.parent, commit.kind, commit.actor) == (report.commit, parent, "maintenance", "act-keeper")
    assert versions(org) == {key: (version + 1, fork, rows) for key, (version, fork, rows) in before.items()}
    assert_healthy(connect(org.uri))


def test_the_report_is_plain_data(org: og.Graph) -> None:
    report = org.ensure_indices(types=["node:Team"]).to_dict()
    assert report["built"][0] == {"type_key": "node:Team", "column": "id", "kind": "BTREE", "reason": None}
    assert report["pending"] == ()


# --- when nothing is built --------------------------------------------------------------------------------------------


@pytest.mark.row("IDX-04", "REC-26")
def test_with_nothing_to_do_no_sidecar_is_written(items: og.Graph) -> None:
    items.ensure_indices()
    with failpoints.armed("recovery.sidecar_write", "error"):
        report = items.ensure_indices()
    assert (report.built, report.pending, report.commit) == ((), (), None)


@pytest.mark.row("IDX-04", "REC-26")
def test_an_empty_graph_waits_for_rows(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", ITEMS)
    before = versions(graph)
    with failpoints.armed("recovery.sidecar_write", "error"):
        reports = [graph.ensure_indices() for _ in range(2)]
    assert reports[0] == reports[1]
    assert reports[0].commit is None
    assert {status.reason for status in reports[0].pending} == {"the table is empty"}
    assert versions(graph) == before


@pytest.mark.row("IDX-03")
def test_new_rows_are_left_to_optimize(items: og.Graph) -> None:
    items.ensure_indices()
    append(
        items,
        [{"type": "I", "data": {"slug": "n", "st": "a", "at": "2024-02-01T00:00:00Z", "rank": 9, "title": "new"}}],
    )
    before = versions(items)
    assert items.ensure_indices().commit is None
    assert versions(items) == before
    assert published(items, "node:I").count_rows("rank = 9") == 1


def test_a_read_only_handle_and_an_unknown_type_are_refused(org: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        og.open(org.uri, "ro").ensure_indices()
    with pytest.raises(og.errors.BadRequest, match="no type 'node:Staf' to index; did you mean `node:Staff`"):
        org.ensure_indices(types=["node:Staf"])


def test_only_the_types_that_are_asked_for(org: og.Graph) -> None:
    before = versions(org)
    report = org.ensure_indices(types="edge:Mentors")
    assert org.ensure_indices(types=["edge:Mentors"]).commit is None
    assert {status.type_key for status in report.built} == {"edge:Mentors"}
    assert {key for key, at in versions(org).items() if at != before[key]} == {"edge:Mentors"}


# --- indexes that are not what is declared ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kind", "options", "right"),
    [
        pytest.param("rank", "BITMAP", {}, "BTREE", id="kind"),
        pytest.param("title", "BTREE", {}, "INVERTED", id="kind of text"),
        pytest.param("title", "INVERTED", {**INDEX_OPTIONS, "stem": False}, "INVERTED", id="analyser"),
        pytest.param("title", "INVERTED", {**INDEX_OPTIONS, "custom_stop_words": ["x"]}, "INVERTED", id="stop words"),
    ],
)
def test_a_wrong_index_is_replaced(
    items: og.Graph, column: str, kind: str, options: dict[str, object], right: str
) -> None:
    declared = items.contract().catalog.nodes["I"].properties[column]
    build_index(items, "node:I", column, kind, f"p{declared.id}_{right.lower()}", **options)
    report = items.ensure_indices()
    assert (column, right) in {(status.column, status.kind) for status in report.built}
    assert index_on(items, "node:I", column).kind == right
    assert items.ensure_indices().commit is None


def test_a_right_index_may_have_any_name(items: og.Graph) -> None:
    build_index(items, "node:I", "rank", "BTREE", "mine")
    report = items.ensure_indices()
    assert "rank" not in {status.column for status in report.built}
    assert index_on(items, "node:I", "rank").name == "mine"


# --- branches ---------------------------------------------------------------------------------------------------------


def test_a_branch_forks_what_it_indexes_and_nothing_else(org: og.Graph) -> None:
    org.ensure_indices(types=["node:Team"])
    org.create_branch("work")
    main = versions(org)
    report = org.at("work").ensure_indices()
    assert {status.type_key for status in report.built} == {"node:Staff", "edge:Mentors", "edge:MemberOf"}
    assert versions(org) == main
    forked = {key for key, (_, fork, _) in versions(org, "work").items() if fork is not None}
    assert forked == {"node:Staff", "edge:Mentors", "edge:MemberOf"}
    assert org.at("work").ensure_indices().commit is None
    assert_healthy(connect(org.uri))


def test_a_branch_inherits_the_indexes_of_its_parent(org: og.Graph) -> None:
    org.ensure_indices()
    org.create_branch("work")
    assert org.ensure_indices("work").commit is None
    org.mutate('query q() { insert Team { code: "new" } }', branch="work")
    assert org.ensure_indices("work").commit is None


# --- other writers ----------------------------------------------------------------------------------------------------


def index_folders(graph: og.Graph, type_key: str) -> list[Path]:
    """Where the files of indexes lie that were built for a table, committed or not."""
    return list((Path(graph.uri) / graph.snapshot().entry(type_key).path / "_indices").glob("*"))


def test_a_write_between_building_and_committing_starts_it_again(org: og.Graph) -> None:
    """The branch is held until the indexes are built; then somebody writes one of the tables."""
    context = connect(org.uri)
    written = write(context, {STAFF: staff(["eve"])})
    builder = threading.Thread(target=org.ensure_indices)
    with context.locks.hold("main") as lock:
        builder.start()
        while len(index_folders(org, MEMBER_OF)) < 3:
            assert builder.is_alive()
        execute(context, written, lock)
    builder.join()
    assert index_on(org, "node:Staff", "id").rows == 5
    assert org.ensure_indices().commit is None
    assert_healthy(connect(org.uri))


def test_after_some_conflicts_the_branch_is_held(org: og.Graph) -> None:
    """The conflicts are injected; no table has moved, so nothing is built twice."""
    passings = 0

    def conflict() -> None:
        nonlocal passings
        passings += 1
        if passings <= ENSURE_INDICES.unlocked_attempts:
            raise og.errors.ExpectedVersionMismatch("moved", table_key=STAFF, expected=1, actual=2)

    with failpoints.armed("ensure_indices.pre_phase_a", conflict):
        report = org.ensure_indices()
    assert passings == ENSURE_INDICES.unlocked_attempts + 1
    assert org.head().id == report.commit
    assert len(index_folders(org, STAFF)) == len(published(org, STAFF).indices()) == 3


def test_drift_is_named(org: og.Graph) -> None:
    context = connect(org.uri)
    entry = context.manifest.load("main").by_key[STAFF]
    stray = stage_append(context.tables.open(entry.location, entry.version), staff(["stray"]))
    commit_staged(context.tables, stray, expected_version=entry.version, transaction_id="stray")
    with pytest.raises(og.errors.DriftNeedsRepair, match=STAFF):
        org.ensure_indices()
    assert org.ensure_indices(types=["node:Team"]).commit is not None
