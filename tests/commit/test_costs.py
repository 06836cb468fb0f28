"""What a commit, a branch and an open cost, as counts: requests, manifest writes, manifest scans. Never times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.s3_requests import Recorder, Recording, recorded
from bench.storage_graphs import schema
from bench.storage_s3 import CommitRequests, record_commit
from omnigraph import failpoints
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import manifest_location
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.graph.lifecycle import open_for_reading, open_for_writing
from omnigraph.ids import new_ulid
from omnigraph.storage.tables.version_files import versions_path
from tests.commit.org import STAFF, TEAM, again, insert, new_graph, staff, team
from tests.s3 import S3Server

# --- on S3: every request, Lance's too --------------------------------------------------------------------------------

#: A single-row commit, from preparing it to giving the lock back. What each is: see `test_the_requests_of_a_commit`.
REQUESTS = 14
ROUND_TRIPS_UNTIL_VISIBLE = 8
ROUND_TRIPS = 12
#: A commit of another table than the one before also replaces a row of an older fragment of the manifest.
REQUESTS_OF_ANOTHER_TABLE = 16


@pytest.fixture(scope="module")
def recorder(s3_server: S3Server) -> Iterator[tuple[S3Server, Recorder]]:
    with recorded(s3_server) as proxy_and_recorder:
        yield proxy_and_recorder


@pytest.fixture(scope="module")
def commits(recorder: tuple[S3Server, Recorder]) -> list[CommitRequests]:
    """Some commits on S3 between two compactions of the manifest."""
    context = s3_graph(recorder[0])
    for number in range(2):
        insert(context, {STAFF: staff([f"p{number}"])})
    return [record_commit(context, recorder[1]) for _ in range(4)]


def s3_graph(server: S3Server) -> CommitContext:
    root = server.new_root()
    return new_graph(root.uri, storage_options=root.storage_options)


def test_a_commit_on_s3_makes_so_many_requests(commits: list[CommitRequests]) -> None:
    assert [commit.in_all() for commit in commits] == [REQUESTS] * len(commits)


def test_a_commit_on_s3_waits_for_so_many_round_trips(commits: list[CommitRequests]) -> None:
    # A busy machine can keep requests that were sent together from overlapping: the shortest chain is what is needed.
    assert min(commit.until_visible() for commit in commits) <= ROUND_TRIPS_UNTIL_VISIBLE
    assert min(commit.until_returned() for commit in commits) <= ROUND_TRIPS


def test_the_requests_of_a_commit(commits: list[CommitRequests]) -> None:
    commit = commits[-1]
    places = [(request.verb, place(request.path)) for request in (*commit.prepare.requests, *commit.execute.requests)]
    assert Counter(places) == {
        ("LIST", "__manifest versions"): 2,  # before preparing, and by Lance before its commit
        ("PUT", "table data"): 1,
        ("PUT", "__locks"): 2,
        ("LIST", "table versions"): 1,  # by Lance before its commit
        ("PUT", "__recovery"): 1,
        ("PUT", "table transactions"): 1,
        ("PUT", "table versions"): 1,
        ("PUT", "__manifest data"): 1,
        ("PUT", "__manifest deletions"): 1,
        ("PUT", "__manifest transactions"): 1,
        ("PUT", "__manifest versions"): 1,
        ("DELETE", "bucket"): 1,  # the sidecar
    }


#: What a writer looks at under the lock when somebody else may have written since it gave the lock back.
LOOKS = {("LIST", "__manifest versions"): 1, ("LIST", "__recovery"): 1, ("LIST", "table versions"): 1}


def looked_at(requests: Recording, usual: Recording) -> Counter[tuple[str, str]]:
    """The listings of a commit that another one did without."""
    found, others = (
        Counter((one.verb, place(one.path)) for one in recording.requests if one.verb == "LIST")
        for recording in (requests, usual)
    )
    return found - others


def test_after_another_writer_everything_is_looked_at(recorder: tuple[S3Server, Recorder]) -> None:
    """Also when that one has come and gone: the lock is free again, but it was somebody else who freed it."""
    proxy, recording = recorder
    context = s3_graph(proxy)
    other = again(context)
    for number in range(2):
        insert(context, {STAFF: staff([f"p{number}"])})
    usual = record_commit(context, recording).execute
    insert(other, {STAFF: staff(["theirs"])})
    assert looked_at(record_commit(context, recording).execute, usual) == LOOKS
    assert looked_at(record_commit(context, recording).execute, usual) == {}
    assert context.manifest.load().by_key[STAFF].row_count == 6


def test_after_a_record_that_stayed_everything_is_looked_at(recorder: tuple[S3Server, Recorder]) -> None:
    proxy, recording = recorder
    context = s3_graph(proxy)
    for number in range(2):
        insert(context, {STAFF: staff([f"p{number}"])})
    usual = record_commit(context, recording).execute
    with failpoints.armed("recovery.sidecar_delete"):
        insert(context, {STAFF: staff(["stays"])})
    assert LOOKS.keys() <= looked_at(record_commit(context, recording).execute, usual).keys()
    assert list_sidecars(context.store) == []


def test_a_write_that_failed_is_followed_by_one_that_looks(recorder: tuple[S3Server, Recorder]) -> None:
    proxy, recording = recorder
    context = s3_graph(proxy)
    for number in range(2):
        insert(context, {STAFF: staff([f"p{number}"])})
    usual = record_commit(context, recording).execute
    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit"):
        insert(context, {STAFF: staff(["finished"])})
    assert LOOKS.keys() <= looked_at(record_commit(context, recording).execute, usual).keys()


def place(path: str) -> str:
    """Which part of a graph a request is about; S3 names a listing's prefix and a bulk delete's keys elsewhere."""
    decoded = path.replace("%2F", "/")
    for folder in ("__locks", "__recovery"):
        if f"/{folder}/" in decoded:
            return folder
    dataset = "__manifest" if "__manifest/" in decoded else "table" if "nodes/" in decoded else "bucket"
    parts = ("data", "deletions", "transactions", "versions")
    return next((f"{dataset} {part}" for part in parts if f"/_{part}/" in decoded or f"/{part}/" in decoded), dataset)


def test_commits_of_several_tables_in_turn(recorder: tuple[S3Server, Recorder]) -> None:
    proxy, recording = recorder
    context = s3_graph(proxy)
    changes = [{STAFF: staff(["a"])}, {TEAM: team(["b"])}, {STAFF: staff(["c"])}, {TEAM: team(["d"])}]
    for change in changes:
        insert(context, change)
    with recording.recording() as requests:
        insert(context, {STAFF: staff(["e"])})
    assert requests().total == REQUESTS_OF_ANOTHER_TABLE


def test_requests_do_not_depend_on_history_or_types(recorder: tuple[S3Server, Recorder]) -> None:
    proxy, recording = recorder
    root = proxy.new_root()
    context = new_graph(root.uri, schema(12), root.storage_options)
    for number in range(COMPACT_ABOVE_FRAGMENTS + 4):
        insert(context, {STAFF: staff([f"p{number}"])})
    assert record_commit(context, recording).in_all() == REQUESTS


# --- the manifest -----------------------------------------------------------------------------------------------------


def manifest_versions(context: CommitContext) -> int:
    return len(context.store.list("__manifest/_versions")) - 1  # and Lance's hint


def test_one_manifest_write_and_no_scan_per_commit(graph: CommitContext) -> None:
    insert(graph, {STAFF: staff(["first"])})
    versions, scans = manifest_versions(graph), graph.manifest.scans
    for number in range(5):
        insert(graph, {STAFF: staff([f"p{number}"]), TEAM: team([f"t{number}"])})
    assert manifest_versions(graph) - versions == 5
    assert graph.manifest.scans - scans == 0


def test_a_compaction_costs_one_scan_and_two_versions(graph: CommitContext) -> None:
    commits = 3 * COMPACT_ABOVE_FRAGMENTS
    versions, scans = manifest_versions(graph), graph.manifest.scans
    for number in range(commits):
        insert(graph, {STAFF: staff([f"p{number}"])})
    compactions = (manifest_versions(graph) - versions - commits) / 2
    assert compactions in (2, 3)
    assert graph.manifest.scans - scans <= 1 + compactions


# --- control files ----------------------------------------------------------------------------------------------------

MANY_TYPES = 112


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> CommitContext:
    """A graph of one type."""
    return new_graph(str(tmp_path_factory.mktemp("few") / "graph"), schema(1))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> CommitContext:
    """A graph of many types."""
    return new_graph(str(tmp_path_factory.mktemp("many") / "graph"), schema(MANY_TYPES))


def counted(context: CommitContext, action: Callable[[CommitContext], object]) -> Counter[str]:
    """The requests for control files that an action makes."""
    before = Counter(context.store.counts)
    action(context)
    return Counter(context.store.counts) - before


def commit_one(context: CommitContext) -> None:
    insert(context, {STAFF: staff([new_ulid()])})


def create_and_delete_a_branch(context: CommitContext) -> None:
    create_branch(context, "b", "main")
    delete_branch(context, "b")


@pytest.mark.parametrize(
    ("action", "ceiling"),
    [
        pytest.param(commit_one, {"list": 1, "put": 1, "delete": 1}, id="commit"),
        pytest.param(heal, {"list": 1}, id="heal-nothing"),
        # The deletes and a listing of what goes were Lance's before, with a request for each other branch. The first branch of a
        # graph that is deleted also costs a put and two listings: from then on parents are noted.
        pytest.param(create_and_delete_a_branch, {"list": 7, "get": 7, "head": 1, "put": 1, "delete": 2}, id="branch"),
        pytest.param(open_for_reading, {"list": 2, "head": 1, "get": 4}, id="open-ro"),
        pytest.param(open_for_writing, {"list": 3, "head": 2, "get": 5, "create": 2, "delete": 1}, id="open-rw"),
    ],
)
def test_requests_for_control_files_are_few_and_do_not_depend_on_the_types(
    few: CommitContext, many: CommitContext, action: Callable[[CommitContext], object], ceiling: dict[str, int]
) -> None:
    few, many = again(few), again(many)
    with_few, with_many = counted(few, action), counted(many, action)
    assert with_few == with_many
    assert with_few <= Counter(ceiling)


def test_a_branch_touches_no_table(many: CommitContext) -> None:
    def table_files() -> int:
        return len(many.store.list("nodes"))

    before = table_files()
    create_and_delete_a_branch(many)
    assert table_files() == before


# --- the newest version -----------------------------------------------------------------------------------------------


def test_a_reader_whose_version_was_cleaned_up_sees_the_newest(graph: CommitContext) -> None:
    """Its version is gone and so is the next one; that must not look like "nothing is newer"."""
    behind = again(graph)
    behind.manifest.load()
    for number in range(3):
        insert(graph, {STAFF: staff([f"p{number}"])})
    newest = graph.manifest.load()
    folder = Path(graph.root.uri, versions_path(manifest_location("main")))
    for old in sorted(folder.glob("*.manifest"))[1:]:
        old.unlink()
    assert behind.manifest.load().version == newest.version
