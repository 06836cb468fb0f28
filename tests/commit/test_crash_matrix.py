"""Real processes, really killed, at every failpoint: afterwards the graph is as before or as after, and works.

The short run covers one writer of each mode of judgement; the long run covers everything. The end of a test run says how
many states were covered.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from omnigraph import failpoints
from omnigraph.cluster import apply as _clusters_declare_theirs  # noqa: F401
from omnigraph.commit import audit
from omnigraph.commit import layout as _layout_declares_its_failpoints  # noqa: F401
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import RECOVERY_ACTOR
from omnigraph.commit.protocol import Step, Write, execute
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.staging_jobs import staging_job as _declares_failpoints_of_jobs  # noqa: F401
from omnigraph.errors import AlreadyInitialized, GraphNotFound
from omnigraph.evolution import apply as _declares_of_evolution  # noqa: F401
from omnigraph.graph.lifecycle import connect, create, open_for_writing
from omnigraph.load import execute as _declares_failpoints_of_loads  # noqa: F401
from omnigraph.maintenance import backup as _backups_declare_theirs  # noqa: F401
from omnigraph.maintenance import index_building as _indexes_declare_theirs  # noqa: F401
from omnigraph.maintenance import reclaim as _cleanup_declares_its_failpoints  # noqa: F401
from omnigraph.maintenance import restore as _restores_declare_theirs  # noqa: F401
from omnigraph.merge import execute as _merges_declare_theirs  # noqa: F401
from omnigraph.mutation import execute as _declares_its_failpoints  # noqa: F401
from omnigraph.mutation import transaction as _transactions_declare_theirs  # noqa: F401
from omnigraph.storage import outputs as _exports_declare_theirs  # noqa: F401
from omnigraph.storage.tables.staged import stage_delete
from tests import warm
from tests.commit.crash_cases import COMPACTING, Case, Death, Outcome, is_representative, matrix
from tests.commit.healthy import Picture, assert_healthy, assert_open_is_idle, picture
from tests.commit.org import SCHEMA, STAFF, accepted, effect, ids, insert, lineage, staff
from tests.commit.scenarios import ACTOR, FEATURE, FIRST_WRITE, SCENARIOS, branch_of, prepare

CHILD = Path(__file__).with_name("crash_child.py")
TESTS = Path(__file__).parents[1]

#: Failpoints that lie outside of what a crash of a writer can reach, and the tests that exercise them.
EXERCISED_ELSEWHERE = {
    "branch_create.parent_noted": "commit/test_many_branches.py",
    "objects.swap_compared": "storage",
    "outputs.written": "export",
    "outputs.folder_written": "export",
    "mutation.prepared": "mutation",
    "load.chunk_read": "load",
    "load.chunk_staged": "load",
    "load.read": "load",
    "load.checked": "load",
    "load.forked": "load",
    "load.prepared": "load",
    "branch_merge.prepared": "merge",
    "branch_merge.piece_written": "merge",
    "receipt.begun": "commit/test_receipts.py",
    "receipt.before_kept": "commit/test_receipts.py",
    "receipt.kept": "commit/test_receipts.py",
    "config.before_put": "commit/test_config.py",
    "config.after_put": "commit/test_config.py",
    "schema_apply.prepared": "evolution",
    # The steps of `omnigraph cluster apply`.
    "cluster.locked": "clusters/test_crash.py",
    "cluster.record_written": "clusters/test_crash.py",
    "cluster.recovery_settled": "clusters/test_crash.py",
    "cluster.graph_created": "clusters/test_crash.py",
    "cluster.schema_applied": "clusters/test_crash.py",
    "cluster.payload_written": "clusters/test_crash.py",
    "cluster.graph_marked": "clusters/test_crash.py",
    "cluster.graph_deleted": "clusters/test_crash.py",
    "cluster.before_state": "clusters/test_crash.py",
    "cluster.state_written": "clusters/test_crash.py",
    "cluster.records_removed": "clusters/test_crash.py",
    "cleanup.after_record": "maintenance/test_cleanup.py",
    "cleanup.mid_versions": "maintenance/test_cleanup.py",
    "cleanup.after_versions": "maintenance/test_cleanup.py",
    "cleanup.mid_files": "maintenance/test_cleanup.py",
    "index_build.segments_built": "maintenance/test_index_building.py",
    "layout.after_restate": "commit/test_layout.py",
    "layout.after_compaction": "commit/test_layout.py",
    "staging.job_written": "commit/test_staging_jobs.py",
    "staging.job_removed": "commit/test_staging_jobs.py",
    "migration.v2_to_v3.before_stamp": "commit/test_migrations.py",
    "migration.v3_to_v4.legacy_open": "commit/test_migrations.py",
    "migration.v3_to_v4.before_overwrite": "commit/test_migrations.py",
    "migration.v4_stamp.force_incompatible": "commit/test_migrations.py",
    "transaction.between_queries": "mutation/test_transaction_crashes.py",
    "group.gathered": "mutation/test_together_crashes.py",
    "group.published": "mutation/test_together_crashes.py",
    "backup.captured": "maintenance/test_backup.py",
    "backup.copied": "maintenance/test_backup.py",
    "backup.file_copied": "maintenance/test_backup.py",
    "backup.installed": "maintenance/test_backup.py",
    "backup.planned": "maintenance/test_backup.py",
    "backup.recorded": "maintenance/test_backup.py",
    "backup.removed": "maintenance/test_backup.py",
    "restore.before_schema": "maintenance/test_backup.py",
    "restore.before_state": "maintenance/test_backup.py",
    "restore.claimed": "maintenance/test_backup.py",
    "restore.copied": "maintenance/test_backup.py",
    "place.before_record": "commit/test_place.py",
    "place.before_roots": "commit/test_place.py",
    "place.recorded": "commit/test_place.py",
    "place.root_written": "commit/test_place.py",
    "cleanup.before_retired": "commit/test_retired.py",
    "discard.after_claim": "integrations/test_neo4j_dump.py",
    "discard.after_manifest": "integrations/test_neo4j_dump.py",
}
LIFECYCLE_DEATHS = {
    "init.after_claim",
    "init.after_tables",
    "init.after_schema_files",
    "init.after_manifest",
    "branch_create.before_ref",
    "branch_delete.before_ref",
    "branch_delete.before_retiring",  # commit/test_retired.py
    "branch_delete.after_ref",
}


def kill(uri: str, death: Death, action: str, *names: str) -> dict[str, Any]:
    """Run a process that dies at a failpoint; returns the plan it printed."""
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": "", "CRASH_AT": ""}
    if death.passing == 1:
        failing = f"{death.failing}=error;" if death.failing else ""
        environment["OMNIGRAPH_FAILPOINTS"] = f"{failing}{death.failpoint}=kill"
    else:
        environment["CRASH_AT"] = f"{death.failpoint}:{death.passing}"
    command = [sys.executable, str(CHILD), uri, action, *names]
    child = warm.run(command, env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {death}: {child.stderr.decode()}"
    return dict(orjson.loads(child.stdout or b"{}"))


After = tuple[Picture, dict[str, list[str]]]


@pytest.fixture(scope="session")
def undisturbed(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], After]:
    """What a scenario leads to when nobody dies: the picture after it and the indexes there are."""

    @cache
    def run(writer: str, place: str) -> After:
        context = copy_of(filled, tmp_path_factory.mktemp("after") / "graph", place)
        execute(context, SCENARIOS[writer].plan(context, branch_of(place)))
        return picture(context), indexes(context, branch_of(place))

    return run


def copy_of(filled: Path, target: Path, place: str) -> CommitContext:
    shutil.copytree(filled, target)
    context = connect(str(target))
    prepare(context, place)
    return context


def indexes(context: CommitContext, branch: str) -> dict[str, list[str]]:
    """The names of the indexes of every table."""
    entries = context.manifest.load(branch).tables.values()
    return {
        entry.key: [index.name for index in context.tables.open(entry.location, entry.version).indices()]
        for entry in entries
    }


def crowd(context: CommitContext) -> None:
    """So many small commits that the next one compacts the manifest."""
    while context.manifest.load().fragment_count < COMPACT_ABOVE_FRAGMENTS:
        insert(context, {STAFF: staff([f"p{context.manifest.load().version}"])})


# --- writers and recovery ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=str(case), marks=() if is_representative(case) else pytest.mark.long) for case in matrix()],
)
def test_death(case: Case, filled: Path, undisturbed: Callable[[str, str], After], tmp_path: Path) -> None:
    branch = branch_of(case.place)
    context = copy_of(filled, tmp_path / "graph", case.place)
    if case == COMPACTING:
        crowd(context)
    before, head = picture(context), context.manifest.load(branch).head
    plan = kill(context.root.uri, case.write, "write", case.writer, branch)
    for death in case.recoveries:
        kill(context.root.uri, death, "open")

    survivor = connect(context.root.uri)
    open_for_writing(survivor)
    assert_healthy(survivor)
    commit = survivor.manifest.find_commit(branch, plan["commit"])
    happened = case.outcome in (Outcome.FORWARD, Outcome.DONE)
    assert (commit is not None) == happened
    assert (picture(survivor) != before) == (happened and SCENARIOS[case.writer].shows)
    assert (survivor.manifest.receipt(branch, "once") is not None) == (happened and case.writer == "mutation")
    if commit is not None and case != COMPACTING:
        assert commit.parent == head
        assert (picture(survivor), indexes(survivor, branch)) == undisturbed(case.writer, case.place)
    assert_recorded(survivor, case, plan)
    assert_open_is_idle(survivor)
    write_everywhere(survivor, branch)
    assert_healthy(survivor)
    assert_recorded(survivor, case, plan)


def assert_recorded(context: CommitContext, case: Case, plan: dict[str, Any]) -> None:
    """One audit row that says what happened, or none where nothing was pending."""
    branch = branch_of(case.place)
    undoing = [commit for commit in context.manifest.commits(branch).values() if commit.recovers == plan["operation"]]
    rows = audit.recoveries(context)
    if case.outcome in (Outcome.UNTOUCHED, Outcome.DONE):
        assert (rows, undoing) == ([], [])
        return
    (row,) = rows
    assert row.operation_id == plan["operation"]
    assert row.branch == branch
    assert row.recovery_for_actor == ACTOR
    assert row.writer_kind == SCENARIOS[case.writer].kind
    assert len(row.tables) == 2
    if case.outcome is Outcome.FORWARD:
        assert row.recovery_kind == "RolledForward"
        assert row.graph_commit_id == plan["commit"]
        assert undoing == []
        commit = context.manifest.commits(branch)[plan["commit"]]
        assert (commit.actor, commit.recovery_for_actor) in ((ACTOR, None), (RECOVERY_ACTOR, ACTOR))
        return
    assert row.recovery_kind == "RolledBack"
    if case.outcome is Outcome.NOTHING_MOVED or case.place == FIRST_WRITE:
        assert row.graph_commit_id is None
        assert undoing == []
        return
    (commit,) = undoing
    assert row.graph_commit_id == commit.id
    assert (commit.kind, commit.actor, commit.recovery_for_actor) == ("recovery", RECOVERY_ACTOR, ACTOR)


def write_everywhere(context: CommitContext, branch: str) -> None:
    """A write that takes one row from every table of a branch that has any."""
    state = context.manifest.load(branch)
    written = [entry for entry in state.tables.values() if entry.row_count]
    step = Step(lambda table: stage_delete(table, ids=table.read(["id"])["id"][:1]))
    effects = [effect(context, state, entry.key, step) for entry in written]
    execute(context, Write(Kind.MUTATION, branch, lineage(), tuple(effects), accepted(state)))
    after = context.manifest.load(branch)
    assert [after.by_key[entry.key].row_count for entry in written] == [entry.row_count - 1 for entry in written]


# --- creating graphs and branches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("death", ["init.after_claim", "init.after_tables", "init.after_schema_files"])
def test_death_while_creating_a_graph(death: str, tmp_path: Path) -> None:
    """There is no graph; creating it again leaves one graph and nothing of the first try."""
    uri = str(tmp_path / "graph")
    kill(uri, Death(death), "init")
    with pytest.raises(GraphNotFound, match="omnigraph init"):
        open_for_writing(connect(uri))
    context = connect(uri)
    create(context, SCHEMA)
    assert_healthy(context)
    assert_open_is_idle(context)
    insert(context, {STAFF: staff(["ada"])})
    assert_healthy(context)


def test_death_after_creating_a_graph(tmp_path: Path) -> None:
    """The graph is there; opening it removes the claim."""
    uri = str(tmp_path / "graph")
    kill(uri, Death("init.after_manifest"), "init")
    with pytest.raises(AlreadyInitialized):
        create(connect(uri), SCHEMA)
    context = connect(uri)
    open_for_writing(context)
    assert_healthy(context)
    insert(context, {STAFF: staff(["ada"])})
    assert_healthy(context)


def test_death_while_creating_a_branch(graph: CommitContext) -> None:
    kill(graph.root.uri, Death("branch_create.before_ref"), "create-branch", FEATURE)
    assert branch_names(graph) == ["main"]
    create_branch(graph, FEATURE, "main")
    insert(graph, {STAFF: staff(["eve"])}, branch=FEATURE)
    assert ids(graph, STAFF, FEATURE) == ["eve"]
    assert_healthy(graph)


@pytest.mark.parametrize(("death", "gone"), [("branch_delete.before_ref", False), ("branch_delete.after_ref", True)])
def test_death_while_deleting_a_branch(graph: CommitContext, death: str, gone: bool) -> None:
    """The ref decides. The name can be used again at once; a fork that is left is nobody's."""
    create_branch(graph, FEATURE, "main")
    insert(graph, {STAFF: staff(["eve"])}, branch=FEATURE)
    kill(graph.root.uri, Death(death), "delete-branch", FEATURE)
    assert (FEATURE in branch_names(graph)) != gone
    if not gone:
        assert ids(graph, STAFF, FEATURE) == ["eve"]
        assert_healthy(graph)
        delete_branch(graph, FEATURE)
        assert_healthy(graph)
    create_branch(graph, FEATURE, "main")
    assert ids(graph, STAFF, FEATURE) == []
    insert(graph, {STAFF: staff(["fay"])}, branch=FEATURE)
    assert ids(graph, STAFF, FEATURE) == ["fay"]
    assert ids(graph, STAFF) == []
    open_for_writing(connect(graph.root.uri))


# --- nothing is forgotten ---------------------------------------------------------------------------------------------


def test_every_failpoint_is_exercised() -> None:
    """A failpoint that is declared and that no test passes armed proves nothing."""
    deaths = {death.failpoint for case in matrix() for death in (case.write, *case.recoveries)}
    assert deaths | LIFECYCLE_DEATHS | set(EXERCISED_ELSEWHERE) == failpoints.NAMES


@pytest.mark.parametrize("name", sorted(EXERCISED_ELSEWHERE))
def test_where_other_failpoints_are_exercised(name: str) -> None:
    place = TESTS / EXERCISED_ELSEWHERE[name]
    files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    assert any(f'"{name}"' in file.read_text() or f"{name}=" in file.read_text() for file in files)


def test_the_matrix_is_large_and_names_no_state_twice() -> None:
    cases = matrix()
    assert len({str(case) for case in cases}) == len(cases)
    assert len(cases) >= 300
