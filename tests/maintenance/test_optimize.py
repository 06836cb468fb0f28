"""`optimize`: fragments become few, indexes cover everything, answers stay what they were."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.audit import AUDIT_PATH
from omnigraph.commit.manifest import manifest_location
from omnigraph.errors import StorageError
from omnigraph.graph.lifecycle import connect
from omnigraph.maintenance.optimize import OptimizedTable
from omnigraph.storage.tables.location import Location
from tests.commit.healthy import assert_healthy, picture, tree
from tests.maintenance.coverage import published

SCHEMA = """
node Paper {
  code: String @key
  year: I32? @index
  title: String? @index
  topic: Vector(2)? @index
  scan: Blob?
}
edge Cites: Paper -> Paper
"""
ADD = """
query add($c: String, $y: I32, $t: String) { insert Paper { code: $c, year: $y, title: $t } }
query cite($a: String, $b: String) { insert Cites { from: $a, to: $b } }
query drop($c: String) { delete Paper where code = $c }
query late($c: String, $y: I32) { update Paper set { year: $y } where code = $c }
query place($c: String, $v: Vector(2)) { insert Paper { code: $c, topic: $v } }
query scanned($c: String, $s: Blob) { insert Paper { code: $c, scan: $s } }
"""
ASK = """
query one($c: String) { match { $p: Paper { code: $c } } return { $p.year } }
query years() { match { $p: Paper } return { $p.code, $p.year } order { $p.code } }
query about($w: String) { match { $p: Paper search($p.title, $w) } return { $p.code } }
query cited($c: String) { match { $p: Paper { code: $c } $p cites $q } return { $q.code } }
"""


def add(graph: og.Graph, numbers: range, branch: str | None = None) -> None:
    for number in numbers:
        params = {"c": f"p{number:03}", "y": 2000 + number, "t": f"On rivers, part {number}"}
        graph.mutate(ADD, "add", params, branch=branch)


def of(graph: og.Graph, key: str, branch: str | None = None) -> OptimizedTable:
    """What optimize says of one table."""
    (found,) = [table for table in graph.optimize(branch).datasets if table.type_key == key]
    return found


def covered(graph: og.Graph, key: str, branch: str | None = None) -> dict[str, int]:
    """How many rows each index covers."""
    return {index.name: index.rows for index in published(graph, key, branch).indices()}


@pytest.fixture
def papers(tmp_path: Path) -> og.Graph:
    """Some papers in many fragments, half of them indexed."""
    graph = og.init(tmp_path / "papers", SCHEMA)
    add(graph, range(6))
    graph.ensure_indices()
    add(graph, range(6, 12))
    for number in range(1, 8):
        graph.mutate(ADD, "cite", {"a": f"p{number:03}", "b": f"p{number - 1:03}"})
    graph.mutate(ADD, "drop", {"c": "p011"})
    graph.mutate(ADD, "late", {"c": "p003", "y": 1990})
    return graph


@pytest.mark.row("IDX-08")
def test_one_commit_few_fragments_full_coverage(papers: og.Graph) -> None:
    before, head = picture(connect(papers.uri)), papers.head()
    assert set(covered(papers, "node:Paper").values()) == {6 - 1}, (
        "coverage before: the rows of then, less the updated one"
    )
    report = papers.optimize()
    assert papers.head().id == report.commit
    assert (papers.head().kind, papers.head().parent) == ("maintenance", head.id)
    for key, rows in (("node:Paper", 11), ("edge:Cites", 7)):
        assert published(papers, key).fragment_count == 1
        assert set(covered(papers, key).values()) == {rows}
    assert picture(connect(papers.uri)) == before
    assert_healthy(connect(papers.uri))

    again = og.open(papers.uri)
    assert again.query(ASK, "one", {"c": "p003"}).rows == [{"p.year": 1990}]
    assert len(again.query(ASK, "about", {"w": "rivers"})) == 11
    assert again.query(ASK, "cited", {"c": "p004"}).rows == [{"q.code": "p003"}]
    add(again, range(20, 21))
    again.mutate(ADD, "late", {"c": "p020", "y": 7})
    assert again.query(ASK, "one", {"c": "p020"}).rows == [{"p.year": 7}]
    assert len(again.query(ASK, "years")) == 12


def test_a_second_run_writes_nothing(papers: og.Graph) -> None:
    papers.optimize()
    files = tree(connect(papers.uri))
    report = papers.optimize()
    assert report.commit is None
    assert not any(table.committed or table.skipped for table in report.datasets)
    assert tree(connect(papers.uri)) == files


def test_report(papers: og.Graph) -> None:
    table = of(papers, "node:Paper")
    assert (table.committed, table.skipped, table.fragments_after) == (True, None, 1)
    assert table.fragments_removed == table.fragments_before == 11
    assert table.published_dataset_version == table.lance_head_version == published(papers, "node:Paper").version
    assert [(one.property, one.reason) for one in table.pending_indexes] == [("topic", "there are no vectors yet")]


def test_free_text_has_no_ordered_index(papers: og.Graph) -> None:
    papers.optimize()
    kinds: dict[str, set[str]] = {}
    for index in published(papers, "node:Paper").indices():
        kinds.setdefault(index.columns[0], set()).add(index.kind)
    assert kinds == {"id": {"BTREE"}, "code": {"BTREE", "INVERTED"}, "year": {"BTREE"}, "title": {"INVERTED"}}


def test_vectors_are_folded_and_rows_without_one_stay_out_of_it(papers: og.Graph) -> None:
    papers.mutate(ADD, "place", {"c": "v1", "v": [1.0, 0.0]})
    papers.optimize()
    index = next(index for index in published(papers, "node:Paper").indices() if index.kind.startswith("IVF"))
    add(papers, range(30, 33))
    papers.optimize()
    assert papers.optimize().commit is None, "rows without a vector do not make the index stale"
    papers.mutate(ADD, "place", {"c": "v2", "v": [0.0, 1.0]})
    papers.optimize()
    now = next(index for index in published(papers, "node:Paper").indices() if index.kind.startswith("IVF"))
    assert now.name == index.name
    assert published(papers, "node:Paper").fragment_ids == tuple(sorted(now.fragments))
    near = "query q($v: Vector(2)) { match { $p: Paper } return { $p.code } order { nearest($p.topic, $v) } limit 1 }"
    assert papers.query(near, params={"v": [0.0, 1.0]}).rows == [{"p.code": "v2"}]
    assert papers.optimize().commit is None


def test_blobs_survive(papers: og.Graph) -> None:
    for number, size in enumerate((0, 10, 300_000)):
        papers.mutate(ADD, "scanned", {"c": f"s{number}", "s": "base64:" + base64.b64encode(bytes(size)).decode()})
    papers.optimize()
    assert published(papers, "node:Paper").fragment_count == 1
    identity = {row["code"]: row["id"] for row in published(papers, "node:Paper").read(["id", "code"]).to_pylist()}
    sizes = [len(papers.read_blob("node", "Paper", identity[f"s{number}"], "scan").read()) for number in range(3)]
    assert sizes == [0, 10, 300_000]


def test_a_branch_is_optimized_where_it_wrote(papers: og.Graph) -> None:
    papers.create_branch("work")
    add(papers, range(40, 45), branch="work")
    main = {entry.key: entry for entry in papers.snapshot().entries()}
    before = picture(connect(papers.uri))
    report = {table.type_key: table for table in papers.optimize("work").datasets}
    assert report["node:Paper"].committed
    assert report["edge:Cites"].skipped == "shared with the branch it was made from"
    assert published(papers, "node:Paper", "work").fragment_count == 1
    assert set(covered(papers, "node:Paper", "work").values()) == {16}
    assert {entry.key: entry for entry in papers.snapshot().entries()} == main
    assert picture(connect(papers.uri)) == before
    assert_healthy(connect(papers.uri))
    assert papers.optimize("work").commit is None


@pytest.mark.parametrize("added", [0, 1])
def test_a_fork_that_inherits_an_index_is_readable_when_it_is_compacted(added: int, tmp_path: Path) -> None:
    """Many rows of a fork are gone: rewriting them would have to tell the index of its parent, which is not the fork's own."""
    graph = og.init(tmp_path / "graph", "node N { k: String @key v: I64? }")
    graph.load([{"type": "N", "data": {"k": f"k{number:02}"}} for number in range(50)])
    graph.ensure_indices()
    graph.create_branch("b")
    # The first 20 of 50; a fold of the new rows makes the index the fork's own, and then there is something to compact.
    for number in range(20):
        graph.mutate(f'query q() {{ delete N where k = "k{number:02}" }}', branch="b")
    graph.load([{"type": "N", "data": {"k": f"n{number}"}} for number in range(added)], branch="b")
    report = graph.optimize("b")
    assert [table.fragments_removed for table in report.datasets] == [2 if added else 0]
    again = og.open(graph.uri)
    found = again.query('query q() { match { $n: N { k: "k33" } } return { $n.k } }', branch="b").rows
    assert found == [{"n.k": "k33"}]
    assert again.mutate('query q() { update N set { v: 1 } where k = "k34" }', branch="b").affected_nodes == 1
    assert covered(again, "node:N", "b").keys() == covered(again, "node:N").keys()
    again.optimize("b")
    again.cleanup(keep=1)
    assert len(og.open(graph.uri).query("query q() { match { $n: N } return { $n.k } }", branch="b").rows) == 30 + added


def test_the_manifest_and_the_audit_log_are_compacted(papers: og.Graph) -> None:
    for number in range(3):
        with failpoints.armed("mutation.post_phase_b_pre_manifest_commit"):
            add(papers, range(50 + number, 51 + number))
    assert len(papers.recoveries()) == 3
    papers.optimize()
    context = connect(papers.uri)
    for location in (manifest_location("main"), Location(AUDIT_PATH)):
        assert len(context.tables.open_dataset(location).get_fragments()) == 1
    assert len(papers.recoveries()) == 3
    assert_healthy(context)


def test_a_commit_counts_although_the_manifest_could_not_be_compacted(
    papers: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the store has gone away", kind="permanent")

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.maintenance.optimize.settle_layout", fail)
        report = papers.optimize()
        assert report.commit == papers.head().id
        # Without a commit there is nothing to report but the error.
        with pytest.raises(StorageError, match="gone away"):
            papers.optimize()
    assert papers.optimize().commit is None


def test_an_empty_graph_needs_nothing(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "empty", SCHEMA)
    report = graph.optimize()
    assert report.commit is None
    assert {one.reason for table in report.datasets for one in table.pending_indexes} == {"the table is empty"}


def test_a_reader_optimizes_nothing(papers: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        og.open(papers.uri, "ro").optimize()


def test_a_drifted_table_is_left_alone_and_named(papers: og.Graph) -> None:
    context = connect(papers.uri)
    entry = context.manifest.load().by_key["node:Paper"]
    context.tables.open_dataset(entry.location).delete("code = 'p001'")
    report = {table.type_key: table for table in papers.optimize().datasets}
    skipped = report["node:Paper"]
    assert "omnigraph repair" in (skipped.skipped or "")
    assert (skipped.published_dataset_version, skipped.lance_head_version) == (entry.version, entry.version + 1)
    assert report["edge:Cites"].committed
    assert len(papers.query(ASK, "years")) == 11


# --- with others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params", "fragments"),
    [
        pytest.param("add", {"c": "new", "y": 1, "t": "river"}, 2, id="an insert leaves the rewritten fragments good"),
        pytest.param("late", {"c": "p001", "y": 1}, 11, id="an update of a rewritten row makes them useless"),
        pytest.param("drop", {"c": "p001"}, 10, id="a delete too"),
    ],
)
def test_what_a_writer_did_meanwhile_is_kept(
    papers: og.Graph, monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, object], fragments: int
) -> None:
    """The table moves between the long part of the work and its commit."""
    from omnigraph.maintenance import optimize as module

    true_commit = module._Run.commit
    other = og.open(papers.uri)

    def commit(run: object, *prepared: object) -> object:
        other.mutate(ADD, name, params)
        return true_commit(run, *prepared)  # type: ignore[arg-type]

    monkeypatch.setattr(module._Run, "commit", commit)
    expected = og.open(papers.uri)
    papers.optimize()
    rows = {row["p.code"]: row["p.year"] for row in expected.query(ASK, "years").rows}
    assert rows.get(str(params["c"])) == params.get("y")
    table = published(papers, "node:Paper")
    assert table.fragment_count == fragments
    assert set(covered(papers, "node:Paper").values()) == {table.count_rows()}
    monkeypatch.undo()
    papers.optimize()
    assert published(papers, "node:Paper").fragment_count == 1
    assert {row["p.code"]: row["p.year"] for row in papers.query(ASK, "years").rows} == rows
    assert_healthy(connect(papers.uri))


def test_recovery_comes_first(papers: og.Graph) -> None:
    with failpoints.armed("recovery.sidecar_delete"):
        add(papers, range(60, 61))
    assert papers.pending_operations()
    papers.optimize()
    assert not papers.pending_operations()


def test_what_can_not_be_settled_stands_in_the_way(papers: og.Graph) -> None:
    context = connect(papers.uri)
    context.store.put("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json", b"{")
    head = papers.head()
    with pytest.raises(og.errors.OmnigraphError, match="is not valid JSON"):
        papers.optimize()
    assert papers.head() == head


def test_rows_of_a_table_as_arrow_stay_the_same_with_deletions_in_every_fragment(papers: og.Graph) -> None:
    for number in range(0, 10, 3):
        papers.mutate(ADD, "drop", {"c": f"p{number:03}"})
    before = published(papers, "node:Paper").read(["id", "code", "year"]).sort_by("id")
    papers.optimize()
    after = published(papers, "node:Paper")
    assert after.read(["id", "code", "year"]).sort_by("id").equals(before)
    assert after.take_ids(pa.array(before["id"].to_pylist()), ["id"]).num_rows == before.num_rows


def test_fragments_are_rewritten_by_spark(papers: og.Graph) -> None:
    before = picture(connect(papers.uri))
    assert papers.optimize(engine="spark").commit is not None
    assert published(papers, "node:Paper").fragment_count == 1
    assert picture(connect(papers.uri)) == before


def test_an_unknown_engine(papers: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="engine"):
        papers.optimize(engine="cloud")  # type: ignore[arg-type]
