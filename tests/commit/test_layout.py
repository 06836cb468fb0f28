"""`__manifest` with much history: it is kept apart, a load reads the state alone, and nothing that is known gets lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.commit import rows
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of
from omnigraph.commit.layout import HISTORY_APART, settle_layout
from omnigraph.commit.model import Commit, ManifestState
from omnigraph.commit.publisher import publish
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.tags import set_tag
from omnigraph.commit.updates import DropTable, ImportCommits
from omnigraph.errors import Conflict
from omnigraph.failpoints import FailpointError
from omnigraph.ids import new_ulid, now_micros
from tests import warm
from tests.commit.org import MENTORS, STAFF, TEAM, again, insert, lineage, load_org, mentors, new_graph, staff, team

LIVES = """
import sys
from omnigraph import failpoints
from omnigraph.commit.layout import settle_layout
from omnigraph.graph.lifecycle import connect
failpoints.arm_from_environment()
context = connect(sys.argv[1])
with context.locks.hold(sys.argv[2]):
    settle_layout(context, sys.argv[2])
"""
FAILPOINTS = ["publisher.before_commit", "publisher.after_commit", "layout.after_restate", "layout.after_compaction"]


@pytest.fixture
def old(tmp_path: Path) -> CommitContext:
    """A graph with a long history, a tag, a dropped table, and rows of its state in several fragments."""
    return grown_old(new_graph(str(tmp_path / "g")))


def grown_old(context: CommitContext) -> CommitContext:
    load_org(context)
    set_tag(context, "v1", context.manifest.load().head, actor="me")
    known = tuple(
        Commit(new_ulid(), "gone", None, None, None, now_micros(), 3, "mutation") for _ in range(HISTORY_APART)
    )
    publish(context, "main", [ImportCommits(known)], [], lineage(Kind.BRANCH_MERGE))
    insert(context, {STAFF: staff(["eve"])})
    member_of = context.manifest.load().by_key["edge:MemberOf"]
    publish(context, "main", [DropTable(member_of)], [], lineage())
    insert(context, {STAFF: staff(["fay"]), MENTORS: mentors([("fay", "eve")])})
    return context


def settle(context: CommitContext, branch: str = "main") -> None:
    with context.locks.hold(branch):
        settle_layout(context, branch)


def known(context: CommitContext, branch: str = "main") -> object:
    """Everything a manifest says, but where it is written."""
    state = again(context).manifest.load(branch)
    said = (state.head, state.commit_version, state.tables, state.tags, state.schema_hash)
    return said, again(context).manifest.commits(branch)


def looked_at(context: CommitContext, branch: str = "main") -> int:
    """How many rows a load looks at."""
    dataset = again(context).manifest.warm(branch).dataset
    apart = rows.history_fragments(dataset.schema)
    return sum(part.physical_rows for part in dataset.get_fragments() if part.fragment_id not in apart)


def version(context: CommitContext, branch: str = "main") -> int:
    return again(context).manifest.load(branch).version


def test_a_load_reads_the_state_alone(old: CommitContext) -> None:
    before = known(old)
    assert looked_at(old) > HISTORY_APART
    settle(old)
    assert known(old) == before
    assert looked_at(old) == len(again(old).manifest.load().addresses)
    assert again(old).manifest.load().fragment_count == 2


def test_on_each_kind_of_store(shared_graph: CommitContext) -> None:
    before = known(grown_old(shared_graph))
    settle(shared_graph)
    assert known(shared_graph) == before
    assert looked_at(shared_graph) == len(again(shared_graph).manifest.load().addresses)
    insert(shared_graph, {STAFF: staff(["gil"])})
    assert looked_at(shared_graph) < HISTORY_APART // 2


def test_a_second_time_does_nothing(old: CommitContext) -> None:
    settle(old)
    reached = version(old)
    settle(old)
    assert version(old) == reached


def test_a_short_history_stays_where_it_is(tmp_path: Path) -> None:
    context = new_graph(str(tmp_path / "g"))
    load_org(context)
    settle(context)
    assert again(context).manifest.load().fragment_count == 1
    assert rows.history_fragments(again(context).manifest.warm().dataset.schema) == frozenset()


def test_it_is_written_on_as_before(old: CommitContext) -> None:
    settle(old)
    count = len(again(old).manifest.commits())
    for number in range(30):
        insert(old, {STAFF: staff([f"more{number}"])})
    state = again(old).manifest.load()
    assert looked_at(old) < HISTORY_APART // 2, "what the publisher compacts is not put back among history"
    assert len(again(old).manifest.commits()) == count + 30
    settle(old)
    assert looked_at(old) == len(state.addresses)
    assert again(old).manifest.load().tables == state.tables


def test_the_past_is_read_as_it_was(old: CommitContext) -> None:
    commits = [commit for commit in again(old).manifest.commits().values() if commit.branch == "main"]
    before = [state_of(again(old).manifest, commit) for commit in commits]
    settle(old)
    insert(old, {TEAM: team(["new"])})
    after = [state_of(again(old).manifest, commit) for commit in commits]
    assert [_content(state) for state in after] == [_content(state) for state in before]


def _content(state: ManifestState) -> object:
    return state.version, state.head, state.tables


def test_a_branch_inherits_what_is_known_of_fragments(old: CommitContext) -> None:
    settle(old)
    create_branch(old, "work", "main")
    insert(old, {STAFF: staff(["gil"])}, branch="work")
    assert looked_at(old, "work") < HISTORY_APART // 2
    before = known(old, "work"), known(old)
    settle(old, "work")
    assert (known(old, "work"), known(old)) == before
    assert looked_at(old, "work") == len(again(old).manifest.load("work").addresses)


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_failure_on_the_way(old: CommitContext, failpoint: str) -> None:
    before = known(old)
    with failpoints.armed(failpoint):
        try:
            settle(old)
        except FailpointError:
            assert failpoint != "publisher.after_commit", "that the answer was lost is found out"
    assert known(old) == before
    insert(old, {STAFF: staff(["gil"])})
    settle(old)
    assert looked_at(old) == len(again(old).manifest.load().addresses)


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_death_on_the_way(old: CommitContext, failpoint: str) -> None:
    before = known(old)
    died = warm.run(
        [sys.executable, "-c", LIVES, old.root.uri, "main"],
        env={"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill", "PATH": ""},
        check=False,
    )
    assert died.returncode == -9
    assert known(old) == before
    insert(again(old), {STAFF: staff(["gil"])})
    settle(again(old))
    assert looked_at(old) == len(again(old).manifest.load().addresses)


def between(context: CommitContext, failpoint: str, action: Callable[[], object]) -> None:
    """Let a program that ignores the locks act at a failpoint, once."""
    left = [action]

    def once() -> None:
        if left:
            left.pop()()

    with failpoints.armed(failpoint, once), context.locks.hold("main"):
        settle_layout(context, "main")


def test_a_publish_in_between_is_not_overwritten(old: CommitContext) -> None:
    other = again(old)
    entry = other.manifest.load().by_key[TEAM]
    with pytest.raises(Conflict, match="meanwhile"):
        between(old, "publisher.before_commit", lambda: publish(other, "main", [DropTable(entry)], [], lineage()))
    assert TEAM not in again(old).manifest.load().by_key
    settle(old)
    assert TEAM not in again(old).manifest.load().by_key


@pytest.mark.parametrize("failpoint", ["layout.after_restate", "layout.after_compaction"])
def test_a_publish_between_the_steps_is_seen(old: CommitContext, failpoint: str) -> None:
    other = again(old)
    entry = other.manifest.load().by_key[TEAM]
    between(old, failpoint, lambda: publish(other, "main", [DropTable(entry)], [], lineage()))
    assert TEAM not in again(old).manifest.load().by_key
    assert len(again(old).manifest.commits()) == len(old.manifest.commits())
    settle(old)
    assert looked_at(old) == len(again(old).manifest.load().addresses)


@pytest.mark.parametrize("text", ["", "x", "1,,2", "1, 2", "-1"])
def test_what_can_not_be_read_names_no_fragment(text: str) -> None:
    schema = rows.COLUMNS.with_metadata({rows.HISTORY_KEY: text})
    assert rows.history_fragments(schema) == frozenset()


def test_rows_that_are_written_anew_are_in_no_known_fragment() -> None:
    kept = {rows.HISTORY_KEY.encode(): b"1,2", b"other": b"x"}
    assert set(rows.manifest_schema(4, kept).metadata) == {b"other", rows.STAMP_KEY.encode()}
