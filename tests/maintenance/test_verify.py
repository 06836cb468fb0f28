"""`verify`: what it finds, what it says about it, and what `repair` does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from lance import LanceOperation, Transaction

import omnigraph as og
from omnigraph.commit.manifest import manifest_location
from omnigraph.commit.model import Lineage, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import SchemaIs
from omnigraph.ids import new_ulid, now_micros
from omnigraph.maintenance.verify_report import Damage, DamageKind
from omnigraph.storage.digests import LOG, read_log
from omnigraph.storage.root import Root
from omnigraph.storage.tables.staged import Staged, build_index_segment, stage_append
from omnigraph.storage.tables.version_files import version_file
from tests.mutation.org_graph import SCHEMA, WRITES, org_graph

STAFF = "node:Staff"
MENTORS = "edge:Mentors"


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    graph = org_graph(tmp_path / "org")
    graph.mutate(WRITES, "put", {"h": "eve", "n": 1})
    return graph


def entry_of(graph: og.Graph, key: str = STAFF, branch: str = "main") -> TableEntry:
    return graph._context.manifest.load(branch).by_key[key]


def newest_data(graph: og.Graph, key: str = STAFF, branch: str = "main") -> Path:
    """The data file of the newest fragment of a type."""
    entry = entry_of(graph, key, branch)
    fragment = graph._context.tables.open(entry.location, entry.version).dataset.get_fragments()[-1]
    return Path(graph.uri) / entry.location.dataset_path / "data" / fragment.metadata.files[0].path


def flip(file: Path, at: int = 40) -> None:
    data = bytearray(file.read_bytes())
    data[at % len(data)] ^= 8
    file.write_bytes(data)


def about(report: og.VerifyReport, file: Path, graph: og.Graph) -> Damage:
    (found,) = [damage for damage in report.damages if damage.path == str(file.relative_to(graph.uri))]
    return found


def kinds(report: og.VerifyReport) -> set[DamageKind]:
    return {damage.kind for damage in report.damages}


# --- digests ----------------------------------------------------------------------------------------------------------


def everything(graph: og.Graph) -> None:
    """Writers of every kind, and what takes files away again."""
    graph.ensure_indices()
    graph.create_branch("dev")
    graph.mutate(WRITES, "relevel", {"h": "ada", "n": 31}, branch="dev")
    graph.merge("dev", delete_branch=True)
    graph.create_branch("dev")
    graph.mutate(WRITES, "drop_staff", {"h": "dov"}, branch="dev")
    graph.tag("v1")
    graph.delete_branch("dev")
    graph.apply_schema(SCHEMA.replace("level: I32?", "level: I32?\n  note: String?"))
    graph.apply_schema(SCHEMA, allow_data_loss=False)
    for number in range(16):
        graph.mutate(WRITES, "put", {"h": f"s{number}", "n": number})
    graph.optimize()


def test_every_writer_records_what_it_writes(org: og.Graph) -> None:
    everything(org)
    report = org.verify(deep=True)
    assert report.ok, report.damages
    assert (report.unrecorded, report.branches, report.tags) == (0, 1, 1)
    # All of main's history, and what was merged from a branch that is gone.
    assert report.commits == len(org.commits())
    assert report.bytes > 0


def test_what_goes_is_forgotten(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    everything(org)
    org.delete_tag("v1")
    org.apply_schema(SCHEMA.replace("  began: Date?\n", ""), allow_data_loss=True)
    assert org.verify(deep=True).ok
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    assert org.cleanup(keep=1).bytes_removed
    report = org.verify(deep=True)
    assert report.ok, report.damages
    assert report.unrecorded == 0
    recorded = read_log(org._context.store).digests
    assert all((Path(org.uri) / path).exists() for path in recorded)


def test_what_went_while_the_disk_was_full_is_no_damage(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that take back those of a deleted branch are written later, when the log can be written again."""
    org.create_branch("gone")
    with monkeypatch.context() as full:
        # Three bytes fit.
        full.setattr("omnigraph.storage.digests.os.write", lambda descriptor, data: 3)
        org.delete_branch("gone")
    org.tag("later")
    report = org.verify(deep=True)
    assert report.ok, report.damages


def test_a_graph_without_a_log_is_not_damaged_and_can_be_recorded(org: og.Graph) -> None:
    (Path(org.uri) / LOG).unlink()
    report = org.verify(deep=True)
    assert report.ok
    assert report.unrecorded > 0
    recorded = org.verify(deep=True, record=True)
    assert (recorded.recorded, recorded.unrecorded) == (report.unrecorded, 0)
    flip(newest_data(org))
    assert about(org.verify(deep=True), newest_data(org), org).kind is DamageKind.CONTENT
    with pytest.raises(og.errors.BadRequest, match="deep"):
        org.verify(record=True)


def test_a_line_that_was_never_finished_is_no_damage_and_a_broken_one_is(org: og.Graph) -> None:
    log = Path(org.uri) / LOG
    with log.open("ab") as file:
        file.write(b"\n0123 half a li")
    assert org.verify(deep=True).ok
    org.mutate(WRITES, "put", {"h": "fay", "n": 1})
    report = org.verify(deep=True)
    assert kinds(report) == {DamageKind.DIGEST_LOG}
    assert report.unrecorded == 0
    flip(log, at=60)
    assert kinds(org.verify()) == {DamageKind.DIGEST_LOG}


# --- what is found ----------------------------------------------------------------------------------------------------


def test_a_flipped_bit_is_found_and_told(org: og.Graph) -> None:
    org.create_branch("dev")
    org.tag("v1")
    commit = org.head().id
    flip(newest_data(org))
    assert org.verify().ok, "what is not read whole can not be told"
    damage = about(org.verify(deep=True), newest_data(org), org)
    assert (damage.kind, damage.type_key, damage.rows) == (DamageKind.CONTENT, STAFF, 1)
    assert (damage.branches, damage.tags, damage.commits) == (("dev", "main"), ("v1",), (commit,))
    assert "backup" in damage.remedy


def test_a_cut_or_missing_file_is_found_without_reading(org: og.Graph) -> None:
    file = newest_data(org)
    whole = file.read_bytes()
    os.truncate(file, 100)
    assert about(org.verify(), file, org).kind is DamageKind.SIZE
    file.unlink()
    assert about(org.verify(), file, org).kind is DamageKind.MISSING
    (Path(org.uri) / LOG).unlink()
    assert about(org.verify(), file, org).kind is DamageKind.MISSING
    file.write_bytes(whole)
    assert org.verify().ok


def test_a_lost_commit_is_found(org: og.Graph) -> None:
    """Without its newest version the manifest is that of the commit before, and nothing else looks wrong."""
    state = org._context.manifest.load()
    file = Path(org.uri) / version_file(manifest_location("main"), state.version)
    file.unlink()
    (file.parent / "latest_version_hint.json").unlink(missing_ok=True)
    assert og.open(org.uri, mode="ro").head().id != state.head
    damage = about(org.verify(), file, org)
    assert damage.kind is DamageKind.MISSING
    assert "lost" in damage.message


def test_a_lost_branch_is_found(org: og.Graph) -> None:
    org.create_branch("dev")
    ref = Path(org.uri) / "__manifest/_refs/branches/dev.json"
    ref.unlink()
    assert org.branches() == ["main"]
    assert about(org.verify(), ref, org).branches == ("dev",)


def test_the_version_that_a_branch_starts_from_is_damaged(org: og.Graph) -> None:
    """Without it nobody can tell which tables the branch shares, and nothing is repaired."""
    org.create_branch("dev")
    org.mutate(WRITES, "put", {"h": "fay", "n": 1}, branch="dev")
    first = max((Path(org.uri) / "__manifest/tree/dev/_versions").glob("*.manifest"))
    whole = first.read_bytes()
    for damaged in (None, b"", bytes(len(whole)), whole[:-1]):
        first.unlink() if damaged is None else first.write_bytes(damaged)
        report = og.verify(org.uri, deep=True)
        assert "dev" in about(report, first, org).branches


@pytest.mark.parametrize("name", ["_schema.pg", "_schema.ir.json", "__schema_state.json", "__manifest/_versions"])
def test_a_graph_that_can_not_be_opened_is_verified(org: og.Graph, name: str) -> None:
    place = Path(org.uri) / name
    for file in place.glob("*.manifest") if place.is_dir() else [place]:
        file.write_bytes(b"garbage")
    with pytest.raises(og.errors.OmnigraphError):
        og.open(org.uri, mode="ro")
    assert not og.verify(org.uri, deep=True).ok


def test_a_damaged_root_record_is_told_from_a_moved_graph(org: og.Graph, tmp_path: Path) -> None:
    org.create_branch("dev")
    record = Path(org.uri) / "__root.json"
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b"org", b"orh"))
    assert about(org.verify(deep=True), record, org).kind is DamageKind.CONTENT
    record.write_bytes(whole)
    shutil.move(org.uri, tmp_path / "moved")
    assert og.verify(tmp_path / "moved", deep=True).ok


def test_rows_that_break_rules_are_found(org: og.Graph) -> None:
    """Rows that no writer would write: an edge without its node, two rows of one key."""
    context, state = org._context, org._context.manifest.load()
    effects = []
    rows = {
        MENTORS: pa.table({"id": ["x"], "src": ["ada"], "dst": ["nobody"], "began": pa.array([None], pa.date32())}),
        STAFF: pa.table({"id": ["ada", "gil"], "handle": ["ada", "not gil"], "level": pa.array([1, 2], pa.int32())}),
    }
    for key, added in rows.items():
        entry = state.by_key[key]
        table = context.tables.open(entry.location, entry.version)
        effects.append(TableEffect(entry, (Step(stage_append(table, added.select(table.schema.names))),)))
    lineage = Lineage(new_ulid(), now_micros(), "mutation")
    execute(context, Write(Kind.MUTATION, "main", lineage, tuple(effects), requires=SchemaIs(state.schema_hash)))
    report = org.verify()
    assert kinds(report) == {DamageKind.RULE}
    text = " ".join(damage.message for damage in report.damages)
    for said in ("`to` node Staff 'nobody' not found", "several rows of Staff have the id 'ada'", "'not gil'"):
        assert said in text
    assert {"x"} in [set(damage.entities) for damage in report.damages]


def test_the_same_on_spark(org: og.Graph) -> None:
    flip(newest_data(org))
    here, there = org.verify(deep=True), org.verify(deep=True, engine="spark")
    assert here.damages == there.damages != ()


def test_on_s3_what_is_not_recorded_is_decoded(s3_root: Root) -> None:
    options = s3_root.storage_options
    graph = og.init(s3_root.uri, SCHEMA, storage_options=options)
    graph.mutate(WRITES, "put", {"h": "ada", "n": 1})
    report = graph.verify(deep=True)
    assert report.ok, report.damages
    assert report.unrecorded == report.files > 0
    assert graph.verify(deep=True, record=True).unrecorded == 0
    store = graph._context.store
    path = next(path for path in read_log(store).digests if path.startswith("nodes/") and "/data/" in path)
    store.put(path, store.get(path)[:-9] + b"different")
    assert {damage.path for damage in graph.verify(deep=True).damages} == {path}


# --- repair -----------------------------------------------------------------------------------------------------------


def test_a_table_is_restored_and_what_is_lost_is_told(org: og.Graph) -> None:
    org.mutate(WRITES, "link", {"a": "eve", "b": "ada"})
    org.mutate(WRITES, "put", {"h": "fay", "n": 2})
    commits = [commit.id for commit in org.commits()]
    entry = entry_of(org)
    fragments = org._context.tables.open(entry.location, entry.version).dataset.get_fragments()
    file = Path(org.uri) / entry.path / "data" / fragments[-2].metadata.files[0].path
    flip(file)
    planned = {one.type_key: one for one in og.verify(org.uri, deep=True).repairable}
    assert (planned[STAFF].lost_rows, planned[STAFF].commit) == (2, "")
    report = og.verify(org.uri, deep=True, repair=True, actor="mender")
    done = {one.type_key: one for one in report.repaired}
    assert (done[STAFF].action, done[STAFF].lost_rows, done[STAFF].branch) == ("restored", 2, "main")
    assert set(done[STAFF].lost_commits) == {commits[0], commits[2]}
    assert done[MENTORS].removed_edges == 1
    assert not any(damage.branches for damage in report.damages), "only old commits need the damaged file"
    graph = og.open(org.uri)
    assert (graph.head().kind, graph.head().actor) == ("recovery", "mender")
    assert graph.entity("node", "Staff", "ada") is not None
    assert graph.entity("node", "Staff", "eve") is None
    graph.mutate(WRITES, "put", {"h": "eve", "n": 1})


def test_a_version_that_can_not_be_read_is_set_aside(org: og.Graph) -> None:
    entry = entry_of(org)
    file = Path(org.uri) / version_file(entry.location, entry.version)
    file.write_bytes(b"garbage")
    report = og.verify(org.uri, repair=True)
    assert [(one.type_key, one.lost_rows) for one in report.repaired] == [(STAFF, 1)]
    graph = og.open(org.uri)
    assert graph.entity("node", "Staff", "eve") is None
    graph.mutate(WRITES, "put", {"h": "eve", "n": 1})


def test_a_damaged_index_is_dropped(org: og.Graph) -> None:
    org.ensure_indices()
    index = next((Path(org.uri) / entry_of(org).path / "_indices").rglob("page_data.lance"))
    flip(index)
    report = org.verify(deep=True, repair=True)
    assert {one.action for one in report.repaired} == {"index_dropped"}
    assert not any(damage.branches for damage in report.damages)
    assert og.open(org.uri).entity("node", "Staff", "eve") is not None
    org.ensure_indices()


def test_what_the_builder_of_an_index_left_is_no_damage(org: og.Graph) -> None:
    """On S3 a text index is staged in a folder of its own; when its deletion fails there, Lance commits all the same."""
    org.ensure_indices()
    folders = [folder for folder in Path(org.uri).glob("*/*/_indices/*") if folder.is_dir()]
    assert folders
    for folder in folders:
        (folder / "staging").mkdir(exist_ok=True)
        (folder / "staging" / "part_0_metadata.lance").write_bytes(b"x" * 710)
    assert not org.verify().damages
    assert not org.verify(deep=True).damages


def test_nothing_is_repaired_that_is_whole(org: og.Graph) -> None:
    head = org.head().id
    assert org.verify(deep=True, repair=True).repaired == ()
    assert org.head().id == head


# --- an index on nothing ----------------------------------------------------------------------------------------------


def test_repair_drops_an_index_that_refers_to_nothing(tmp_path: Path) -> None:
    """A property that was dropped while its index was built: a graph that an earlier release left so."""
    graph = org_graph(tmp_path / "org")
    graph.ensure_indices()
    entry, context = entry_of(graph), graph._context
    segment = build_index_segment(context.tables.open(entry.location, entry.version), "level", "BTREE", "p9_btree")
    graph.apply_schema(SCHEMA.replace("  level: I32?\n", ""))
    entry = entry_of(graph)
    dead = Transaction(entry.version, LanceOperation.CreateIndex(new_indices=[segment], removed_indices=[]))
    effect = TableEffect(entry, (Step(Staged("index", entry.location, entry.version, dead)),))
    requires = SchemaIs(context.manifest.load().schema_hash)
    execute(
        context,
        Write(
            Kind.ENSURE_INDICES, "main", Lineage(new_ulid(), now_micros(), "maintenance"), (effect,), requires=requires
        ),
    )
    put = 'query put() { insert Staff { handle: "zoe" } }'
    entry = entry_of(graph)
    with pytest.raises(og.errors.OmnigraphError):
        context.tables.open(entry.location, entry.version).read(["id"], "id = 'ada'")
    assert DamageKind.DEAD_INDEX in kinds(og.verify(graph.uri))
    shown = [table for table in graph.repair().datasets if table.classification == "dead_index"]
    assert [(table.type_key, table.action, table.operations) for table in shown] == [(STAFF, "preview", ("p9_btree",))]
    done = [table for table in og.open(graph.uri).repair(confirm=True).datasets if table.action == "dropped"]
    assert [table.type_key for table in done] == [STAFF]
    healed = og.open(graph.uri)
    entry = entry_of(healed)
    assert healed._context.tables.open(entry.location, entry.version).read(["id"], "id = 'ada'").num_rows == 1
    healed.mutate(put)
    assert not [damage for damage in healed.verify().damages if damage.branches]
    shutil.rmtree(graph.uri)
