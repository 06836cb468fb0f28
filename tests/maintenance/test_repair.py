"""`repair`: tables that moved without a commit of the graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset

import omnigraph as og
from omnigraph.commit.context import CommitContext
from omnigraph.graph.lifecycle import connect
from omnigraph.maintenance.repair import RepairedTable, RepairReport
from omnigraph.storage.tables.version_files import version_file
from tests.commit.handmade import leave, planned, record
from tests.commit.healthy import assert_healthy, picture, tree
from tests.mutation.org_graph import WRITES, org_graph

STAFF = "node:Staff"


def raw(context: CommitContext, branch: str = "main") -> LanceDataset:
    """The table of staff as a program sees it that knows nothing of graphs."""
    return context.tables.open_dataset(context.manifest.load(branch).by_key[STAFF].location)


def of_staff(report: RepairReport, branch: str = "main") -> RepairedTable:
    (found,) = [table for table in report.datasets if (table.type_key, table.branch) == (STAFF, branch)]
    return found


def index(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("level", "BTREE", name="by_hand")


def compact_indexed(dataset: LanceDataset) -> None:
    index(dataset)
    lance.dataset(dataset.uri).optimize.compact_files()


def delete_and_return(dataset: LanceDataset) -> None:
    rows = dataset.to_table(filter="handle = 'ada'")
    dataset.delete("handle = 'ada'")
    lance.write_dataset(rows, dataset.uri, mode="append")


MAINTENANCE: dict[str, Callable[[LanceDataset], object]] = {
    "an index": index,
    "a compaction": lambda dataset: dataset.optimize.compact_files(),
    "a compaction that remapped an index": compact_indexed,
    "a row that went and came back": delete_and_return,
}
CHANGES: dict[str, Callable[[LanceDataset], object]] = {
    "a deleted row": lambda dataset: dataset.delete("handle = 'ada'"),
    "an updated value": lambda dataset: dataset.update({"level": "99"}, where="handle = 'ada'"),
    "a row more": lambda dataset: lance.write_dataset(dataset.to_table(limit=1), dataset.uri, mode="append"),
    "one row for another": lambda dataset: (
        dataset.delete("handle = 'ada'"),
        lance.write_dataset(dataset.to_table(filter="handle = 'ben'"), dataset.uri, mode="append"),
    ),
    "another column": lambda dataset: dataset.add_columns({"extra": "1"}),
}


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    graph = org_graph(tmp_path / "org")
    graph.mutate(WRITES, "put", {"h": "eve", "n": 1})
    return graph


def refuses_to_write(graph: og.Graph) -> None:
    with pytest.raises(og.errors.DriftNeedsRepair, match="omnigraph repair"):
        graph.mutate(WRITES, "put", {"h": "fay", "n": 1})


def test_without_drift_there_is_nothing_to_do(org: og.Graph) -> None:
    files = tree(connect(org.uri))
    for confirm, force in ((False, False), (True, False), (True, True)):
        report = org.repair(confirm=confirm, force=force)
        assert {(table.classification, table.action) for table in report.datasets} == {("no_drift", "no_op")}
        assert not report.refused
    assert tree(connect(org.uri)) == files


@pytest.mark.row("REC-27")
@pytest.mark.parametrize("drift", MAINTENANCE)
def test_maintenance_is_published(org: og.Graph, drift: str) -> None:
    before, head = picture(connect(org.uri)), org.head()
    MAINTENANCE[drift](raw(connect(org.uri)))
    refuses_to_write(org)
    shown = of_staff(og.open(org.uri, "ro").repair())
    assert (shown.classification, shown.action) == ("verified_maintenance", "preview")
    assert shown.lance_head_version == shown.published_dataset_version + len(shown.operations)
    assert org.head() == head
    report = org.repair(confirm=True)
    assert (of_staff(report).action, report.refused) == ("healed", False)
    assert (org.head().kind, org.head().parent) == ("maintenance", head.id)
    assert picture(connect(org.uri)) == before
    assert_healthy(connect(org.uri))
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})
    assert of_staff(org.repair()).action == "no_op"


@pytest.mark.parametrize("drift", CHANGES)
def test_changed_rows_are_published_by_force_only(org: og.Graph, drift: str) -> None:
    before, head = picture(connect(org.uri)), org.head()
    CHANGES[drift](raw(connect(org.uri)))
    shown = of_staff(org.repair())
    assert (shown.classification, shown.action) == ("suspicious", "preview")
    report = org.repair(confirm=True)
    assert (of_staff(report).action, report.refused) == ("refused", True)
    assert (picture(connect(org.uri)), org.head()) == (before, head)
    refuses_to_write(org)
    report = org.repair(confirm=True, force=True)
    assert (of_staff(report).action, report.refused) == ("forced", False)
    assert org.head().kind == "recovery"
    assert picture(connect(org.uri)) != before
    assert_healthy(connect(org.uri))


def test_force_needs_confirmation(org: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="confirm"):
        org.repair(force=True)


def test_a_reader_may_look_only(org: og.Graph) -> None:
    reader = og.open(org.uri, "ro")
    assert reader.repair().datasets
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        reader.repair(confirm=True)


def test_branches_are_looked_at_too(org: og.Graph) -> None:
    org.create_branch("work")
    org.mutate(WRITES, "put", {"h": "mine", "n": 1}, branch="work")
    index(raw(connect(org.uri), "work"))
    assert of_staff(org.repair(), "work").classification == "verified_maintenance"
    assert of_staff(org.repair()).classification == "no_drift"
    assert of_staff(org.repair("work", confirm=True), "work").action == "healed"
    org.mutate(WRITES, "put", {"h": "more", "n": 1}, branch="work")
    assert_healthy(connect(org.uri))


def test_a_branch_that_shares_a_table_has_no_drift_when_its_parent_goes_on(org: og.Graph) -> None:
    org.create_branch("work")
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})
    report = org.repair()
    assert {table.classification for table in report.datasets} == {"no_drift"}
    assert not [table for table in report.datasets if table.branch == "work"]


@pytest.mark.row("REC-24")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_pending_record_stands_in_the_way_of_its_own_branch(org: og.Graph, branch: str) -> None:
    """A record that can not be settled; on another branch it does not keep main from being repaired."""
    org.create_branch("feature")
    org.mutate(WRITES, "put", {"h": "mine", "n": 1}, branch="feature")
    context = connect(org.uri)
    index(raw(context))
    with pytest.raises(og.errors.DriftNeedsRepair, match="omnigraph repair"):
        org.mutate(WRITES, "put", {"h": "fay", "n": 1})
    entry = context.manifest.load(branch).by_key[STAFF]
    leave(context, record(planned(entry, expected_version=999, post_commit_pin=1000), branch=branch))
    if branch == "main":
        for confirm in (False, True):
            with pytest.raises(og.errors.RecoveryRequired, match="recovery list"):
                org.repair(confirm=confirm)
        return
    report = org.repair(confirm=True)
    assert of_staff(report).action == "healed"
    assert of_staff(report, "feature").action == "refused"
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})


@pytest.mark.parametrize("content", [b"", b"garbled", bytes(500)], ids=["empty", "garbled", "zeros"])
def test_a_version_that_can_not_be_read_is_set_aside(org: og.Graph, content: bytes) -> None:
    context = connect(org.uri)
    entry = context.manifest.load().by_key[STAFF]
    before = picture(context)
    context.store.put(version_file(entry.location, entry.version + 1), content)
    shown = of_staff(org.repair())
    assert (shown.classification, shown.lance_head_version) == ("unverifiable", None)
    assert of_staff(org.repair(confirm=True)).action == "refused"
    assert of_staff(org.repair(confirm=True, force=True)).action == "forced"
    assert context.store.list("__recovery/torn")
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})
    assert picture(connect(org.uri)).branches["main"]["node:Team"] == before.branches["main"]["node:Team"]


def test_an_index_that_was_rebased_onto_a_program_without_locks(org: og.Graph) -> None:
    """Somebody appends to a table while its indexes are committed: Lance puts the index on top of the append."""
    context = connect(org.uri)
    table = raw(context)
    staged_on = table.version
    lance.write_dataset(table.to_table(limit=1).set_column(0, "id", pa.array(["zed"])), table.uri, mode="append")
    index(lance.dataset(table.uri))
    shown = of_staff(org.repair())
    assert (shown.published_dataset_version, shown.classification) == (staged_on, "suspicious")
    assert shown.operations == ("Append", "CreateIndex")
    org.repair(confirm=True, force=True)
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})
