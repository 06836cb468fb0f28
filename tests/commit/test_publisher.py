"""The publisher: one compare-and-swap per commit, retried on contention only, settled by commit id when in doubt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from omnigraph import failpoints
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import history
from omnigraph.commit.model import MAIN, Lineage, ManifestState
from omnigraph.commit.publisher import PUBLISHER_RETRY_BUDGET, publish
from omnigraph.commit.updates import (
    DropTable,
    HeadIs,
    RecordReceipt,
    Requirement,
    SetTable,
    SetTag,
    TableAt,
    Update,
    created,
    read,
    written,
)
from omnigraph.errors import (
    BadRequest,
    CommitStateUnknown,
    ExpectedVersionMismatch,
    ManifestContention,
    OmnigraphError,
    PreconditionFailed,
    ReadSetChanged,
)
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.faults import FaultyStore, error_before
from omnigraph.storage.objects import open_store
from tests.commit.org import STAFF, TEAM, again, insert, lineage, staff

ATTEMPTS = PUBLISHER_RETRY_BUDGET + 1


def publish_tag(
    context: CommitContext,
    name: str,
    branch: str = MAIN,
    requirements: Sequence[Requirement] = (),
    planned: Lineage | None = None,
) -> ManifestState:
    """A publish that moves no table."""
    state = context.manifest.load(branch)
    return publish(context, branch, [SetTag(name, state.head)], requirements, planned or lineage())


def assert_linear(context: CommitContext, branch: str = MAIN) -> None:
    """Every commit but one has a parent of its own, and all of them are reachable from the head."""
    commits = again(context).manifest.commits(branch)
    parents = [commit.parent for commit in commits.values()]
    assert len(set(parents)) == len(parents), "two commits share a parent"
    assert parents.count(None) == 1, "there is one root"
    assert len(history(context.manifest, branch)) == len(commits)


# --- what a publish does ----------------------------------------------------------------------------------------------


def test_a_publish_is_one_manifest_version_with_commit_head_and_fence(shared_graph: CommitContext) -> None:
    before = shared_graph.manifest.load()
    planned = lineage()

    after = publish_tag(shared_graph, "t", planned=planned)

    assert (after.version, after.fence, after.head) == (before.version + 1, before.fence + 1, planned.id)
    seen = again(shared_graph).manifest.load()
    assert (seen.version, seen.fence, seen.head, seen.tags) == (
        after.version,
        after.fence,
        planned.id,
        {"t": before.head},
    )
    commit = again(shared_graph).manifest.find_commit(MAIN, planned.id)
    assert commit is not None
    assert (commit.parent, commit.created_at, commit.manifest_version) == (
        before.head,
        planned.created_at,
        after.version,
    )


def test_the_state_after_a_publish_is_what_a_fresh_handle_reads(graph: CommitContext) -> None:
    for number in range(14):  # enough for a compaction in between
        insert(graph, {STAFF: staff([f"p{number}"])})
        adopted, fresh = graph.manifest.load(), again(graph).manifest.load()
        assert adopted == fresh


def test_tables_are_registered_renamed_and_dropped(graph: CommitContext) -> None:
    first = graph.manifest.load()
    old = first.by_key[TEAM]
    fresh = replace(old, key="node:Guild", path="nodes/fresh", identity=(77, 1))

    publish(
        graph,
        MAIN,
        [SetTable(replace(old, key="node:Crew")), SetTable(fresh)],
        [created("node:Guild", (77, 1))],
        lineage(),
    )
    renamed = again(graph).manifest.load()
    publish(graph, MAIN, [DropTable(renamed.by_key["node:Crew"])], [], lineage())
    dropped = again(graph).manifest.load()

    assert renamed.by_key["node:Crew"].path == old.path
    assert renamed.by_key["node:Guild"] == fresh
    assert TEAM not in renamed.by_key
    assert "node:Crew" not in dropped.by_key
    assert again(graph).manifest.load_at(MAIN, first.version).by_key[TEAM] == old


def test_tags_are_set_moved_and_inherited_by_branches(shared_graph: CommitContext) -> None:
    genesis = shared_graph.manifest.load().head
    publish_tag(shared_graph, "release")
    create_branch(shared_graph, "feature", MAIN)
    newer = publish_tag(shared_graph, "release")

    other = again(shared_graph)
    assert other.manifest.load().tags == {"release": newer_parent(other, newer.head)}
    assert other.manifest.load("feature").tags == {"release": genesis}


def newer_parent(context: CommitContext, commit_id: str) -> str | None:
    commit = context.manifest.find_commit(MAIN, commit_id)
    assert commit is not None
    return commit.parent


# --- requirements -----------------------------------------------------------------------------------------------------


def _at_wrong_version(state: ManifestState) -> Requirement:
    entry = state.by_key[STAFF]
    return TableAt(entry.key, entry.identity, entry.version + 7, entry.branch)


def _at_wrong_fork(state: ManifestState) -> Requirement:
    return written(replace(state.by_key[STAFF], branch="01J0000000000000000000FORK"))


def _must_not_exist(state: ManifestState) -> Requirement:
    return created(STAFF, state.by_key[STAFF].identity)


def _dropped(state: ManifestState) -> Requirement:
    return TableAt("node:Gone", (999, 1), 3, None)


def _read_at_another_version(state: ManifestState) -> Requirement:
    return read(replace(state.by_key[STAFF], version=99))


def _another_head(state: ManifestState) -> Requirement:
    return HeadIs("01J00000000000000000000000")


@pytest.mark.parametrize(
    ("broken", "error", "data"),
    [
        pytest.param(_at_wrong_version, ExpectedVersionMismatch, {"expected": 8, "actual": 1}, id="version"),
        pytest.param(_at_wrong_fork, ExpectedVersionMismatch, {"expected": 1, "actual": 1}, id="fork"),
        pytest.param(_must_not_exist, ExpectedVersionMismatch, {"expected": None, "actual": 1}, id="exists"),
        pytest.param(_dropped, ExpectedVersionMismatch, {"expected": 3, "actual": None}, id="dropped"),
        pytest.param(_read_at_another_version, ReadSetChanged, {"table_key": STAFF}, id="read"),
        pytest.param(_another_head, PreconditionFailed, {"expected": "01J00000000000000000000000"}, id="head"),
    ],
)
def test_a_broken_requirement_is_a_typed_conflict_and_never_retried(
    graph: CommitContext,
    broken: Callable[[ManifestState], Requirement],
    error: type[OmnigraphError],
    data: dict[str, object],
) -> None:
    before = graph.manifest.load()
    loads = Counting()

    with failpoints.armed("publisher.load_contention", loads), pytest.raises(error) as raised:
        publish_tag(graph, "t", requirements=[broken(before)])

    assert loads.calls == 1
    assert {name: vars(raised.value)[name] for name in data} == data
    assert again(graph).manifest.load().version == before.version


def test_requirements_that_hold_are_met(graph: CommitContext) -> None:
    state = graph.manifest.load()
    holding: list[Requirement] = [
        written(state.by_key[STAFF]),
        read(state.by_key[TEAM]),
        HeadIs(state.head),
        created("node:New", (9, 9)),
    ]
    assert publish_tag(graph, "t", requirements=holding).version == state.version + 1


# --- contention -------------------------------------------------------------------------------------------------------


class Counting:
    """A failpoint action that counts, and lets another handle publish first while `losses` last."""

    def __init__(self, rival: CommitContext | None = None, losses: int = 0, branch: str = MAIN) -> None:
        self.calls = 0
        self._rival = rival
        self._losses = losses
        self._branch = branch
        self._publishing = False

    def __call__(self) -> None:
        if self._publishing:
            return
        self.calls += 1
        if self._rival is not None and self.calls <= self._losses:
            self._publishing = True
            publish_tag(self._rival, f"rival-{self.calls}", self._branch)
            self._publishing = False


@pytest.mark.parametrize("losses", [1, PUBLISHER_RETRY_BUDGET])
def test_a_lost_race_is_retried_from_the_load(shared_graph: CommitContext, losses: int) -> None:
    planned = lineage()
    tries = Counting(again(shared_graph), losses)

    with failpoints.armed("publisher.before_commit", tries):
        state = publish_tag(shared_graph, "mine", planned=planned)

    assert tries.calls == losses + 1
    commits = again(shared_graph).manifest.commits()
    mine = commits[planned.id]
    assert mine.parent is not None
    assert commits[mine.parent].manifest_version == state.version - 1, "the parent is the last rival's commit"
    assert (mine.created_at, mine.actor) == (planned.created_at, planned.actor), "minted once, the same over retries"
    assert set(state.tags) == {"mine", *(f"rival-{number}" for number in range(1, losses + 1))}
    assert_linear(shared_graph)


def test_contention_beyond_the_budget_is_reported_and_nothing_was_written(shared_graph: CommitContext) -> None:
    planned = lineage()
    tries = Counting(again(shared_graph), losses=100)

    with failpoints.armed("publisher.before_commit", tries), pytest.raises(ManifestContention, match="repeat"):
        publish_tag(shared_graph, "mine", planned=planned)

    assert tries.calls == ATTEMPTS
    assert planned.id not in again(shared_graph).manifest.commits()
    assert "mine" not in again(shared_graph).manifest.load().tags
    assert publish_tag(shared_graph, "mine", planned=planned).head == planned.id


def test_contention_while_loading_is_retried_as_often(graph: CommitContext) -> None:
    with failpoints.armed("publisher.load_contention", "error"), pytest.raises(ManifestContention):
        publish_tag(graph, "t")
    assert publish_tag(graph, "t").tags.keys() == {"t"}


def test_a_requirement_that_breaks_in_a_race_is_not_retried(graph: CommitContext) -> None:
    rival = again(graph)
    entry = graph.manifest.load().by_key[STAFF]
    raced: list[int] = []

    def write_first() -> None:
        if not raced:
            raced.append(1)
            publish(rival, MAIN, [SetTable(replace(entry, version=2, row_count=1))], [], lineage())

    with failpoints.armed("publisher.before_commit", write_first), pytest.raises(ExpectedVersionMismatch) as raised:
        publish(graph, MAIN, [SetTable(replace(entry, version=2))], [written(entry)], lineage())
    assert (raised.value.table_key, raised.value.expected, raised.value.actual) == (STAFF, 1, 2)


# --- two first publishers of a fresh branch ---------------------------------------------------------------------------


@pytest.mark.parametrize("writers", [2, 8])
def test_concurrent_first_publishes_on_a_fresh_branch_make_one_chain(shared_graph: CommitContext, writers: int) -> None:
    create_branch(shared_graph, "fresh", MAIN)
    fork_point = shared_graph.manifest.load().head
    start = threading.Barrier(writers)
    contexts = [again(shared_graph) for _ in range(writers)]
    for context in contexts:
        context.manifest.load("fresh")

    def first_publish(number: int) -> str:
        planned = lineage()
        start.wait()
        while True:
            try:
                publish_tag(contexts[number], f"t{number}", "fresh", planned=planned)
            except ManifestContention:
                continue
            return planned.id

    with ThreadPoolExecutor(writers) as pool:
        published = set(pool.map(first_publish, range(writers)))

    assert_linear(shared_graph, "fresh")
    commits = again(shared_graph).manifest.commits("fresh")
    own = {commit.id for commit in commits.values() if commit.branch == "fresh"}
    assert own == published
    assert [commits[id_].parent for id_ in own].count(fork_point) == 1
    assert set(again(shared_graph).manifest.load("fresh").tags) == {f"t{number}" for number in range(writers)}


# --- commit state unknown ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["publisher.after_commit", "table_commit.lost_acknowledgement"])
def test_a_lost_acknowledgement_is_settled_by_the_commit_id(shared_graph: CommitContext, lost: str) -> None:
    before = shared_graph.manifest.load()
    planned = lineage()

    with failpoints.armed(lost, "error"):
        state = publish_tag(shared_graph, "t", planned=planned)

    assert (state.head, state.version) == (planned.id, before.version + 1), "published once, not twice"
    assert_linear(shared_graph)


def test_an_unreadable_manifest_after_a_lost_acknowledgement_is_its_own_error(graph: CommitContext) -> None:
    create_branch(graph, "feature", MAIN)
    store = FaultyStore(open_store(graph.root))
    context = connect(graph.root.uri, store=store)
    planned = lineage()

    def lose_the_answer() -> None:
        store.inject(error_before("get", "__manifest/_refs/*", nth=None))
        raise failpoints.FailpointError("lost", name="publisher.after_commit")

    with failpoints.armed("publisher.after_commit", lose_the_answer), pytest.raises(CommitStateUnknown) as raised:
        publish_tag(context, "t", "feature", planned=planned)

    assert raised.value.commit_id == planned.id
    assert planned.id in raised.value.message
    store.clear()
    assert context.manifest.find_commit("feature", planned.id) is not None
    version = context.manifest.load("feature").version
    assert publish_tag(context, "t", "feature", planned=planned).version == version, "a repeat writes nothing"


# --- idempotency receipts ---------------------------------------------------------------------------------------------


def record(context: CommitContext, key: str, branch: str = MAIN, rows: int = 1) -> ManifestState:
    updates: list[Update] = [RecordReceipt(key, "request", {"rows": rows})]
    return publish(context, branch, updates, [], lineage())


def test_a_receipt_is_written_with_its_commit_and_found_by_its_key(shared_graph: CommitContext) -> None:
    state = record(shared_graph, "key-1", rows=3)

    receipt = again(shared_graph).manifest.receipt(MAIN, "key-1")
    assert receipt is not None
    assert (receipt.commit_id, receipt.request, receipt.receipt) == (state.head, "request", {"rows": 3})
    assert again(shared_graph).manifest.receipt(MAIN, "key-2") is None


def test_a_key_is_used_once_per_branch(graph: CommitContext) -> None:
    create_branch(graph, "before", MAIN)
    first = record(graph, "key")
    create_branch(graph, "after", MAIN)

    with pytest.raises(BadRequest, match="idempotency key 'key'"):
        record(again(graph), "key")
    with pytest.raises(BadRequest):
        record(graph, "key", "after")

    assert graph.manifest.load().head == first.head
    assert record(graph, "key", "before").branch == "before"


def test_of_two_racing_writes_with_one_key_one_wins(shared_graph: CommitContext) -> None:
    rival = again(shared_graph)
    raced: list[str] = []

    def rival_first() -> None:
        if not raced:
            raced.append("")
            raced[0] = record(rival, "key", rows=7).head

    with failpoints.armed("publisher.before_commit", rival_first), pytest.raises(BadRequest):
        record(shared_graph, "key", rows=8)

    receipt = again(shared_graph).manifest.receipt(MAIN, "key")
    assert receipt is not None
    assert (receipt.commit_id, receipt.receipt) == (raced[0], {"rows": 7})
