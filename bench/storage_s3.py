"""The requests of a single-row commit on S3: in all and in sequence, early and late, with few types and many."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.measure import Floor, Measure, Row, benchmark, summary
from bench.s3_requests import Recorder, Recording, recorded
from bench.storage import MANY_TYPES
from bench.storage_graphs import commit_many, commit_one, prepare_one, schema
from omnigraph.commit.context import CommitContext
from omnigraph.commit.protocol import execute
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS
from omnigraph.graph.lifecycle import connect
from tests.commit.org import new_graph
from tests.s3 import S3Server, running_server

IN_ALL = 14
IN_SEQUENCE = 8
FEW_TYPES = 4
YOUNG, OLD = 10, 300
#: Two rounds of the manifest's own compaction, so that the mean has its share of it.
WINDOW = 2 * COMPACT_ABOVE_FRAGMENTS


@dataclass(frozen=True)
class CommitRequests:
    """The requests of one commit: preparing it (outside the effect window) and carrying it out."""

    prepare: Recording
    execute: Recording

    def in_all(self) -> int:
        return self.prepare.total + self.execute.total

    def until_visible(self) -> int:
        """Round trips from taking the branch's lock to the moment when readers see the commit."""
        return self.execute.until("PUT", "/__manifest/_versions/").in_sequence

    def until_returned(self) -> int:
        """Round trips of the whole call: preparing, committing, removing the sidecar, giving the lock back."""
        return self.prepare.in_sequence + self.execute.in_sequence


@benchmark("storage.requests")
def requests_of_a_commit() -> Iterator[Row]:
    with running_server() as server, recorded(server) as (proxy, recorder):
        young, old, wide = (
            [record_commit(context, recorder) for _ in range(WINDOW)]
            for context in (
                _graph(server, proxy, FEW_TYPES, YOUNG),
                _graph(server, proxy, FEW_TYPES, OLD),
                _graph(server, proxy, MANY_TYPES, YOUNG),
            )
        )
    yield from _rows(f"at commit {YOUNG}", young)
    yield from _rows(f"at commit {OLD}", old, young)
    yield from _rows(f"with {MANY_TYPES} types", wide, young)


def _graph(server: S3Server, proxy: S3Server, types: int, commits: int) -> CommitContext:
    """A graph that was built without the proxy, which is faster, and is used through it."""
    root = server.new_root()
    commit_many(new_graph(root.uri, schema(types), root.storage_options), commits)
    context = connect(root.uri, storage_options=proxy.options)
    # The first commit of a process reads what later ones know: it is not the one that is counted.
    commit_one(context)
    return context


def record_commit(context: CommitContext, recorder: Recorder) -> CommitRequests:
    """One single-row commit with every request it makes."""
    with recorder.recording() as preparing:
        write = prepare_one(context)
    with recorder.recording() as executing:
        execute(context, write)
    return CommitRequests(preparing(), executing())


def _rows(when: str, commits: list[CommitRequests], young: list[CommitRequests] | None = None) -> Iterator[Row]:
    what = f"single-row commit on S3 {when}"
    yield _row(f"{what}, in all", CommitRequests.in_all, commits, young, goal=IN_ALL)
    yield _row(f"{what}, in sequence until visible", CommitRequests.until_visible, commits, young, goal=IN_SEQUENCE)
    yield _row(f"{what}, in sequence until the call returns", CommitRequests.until_returned, commits, young)
    in_all = [commit.in_all() for commit in commits]
    mean = Measure(statistics.mean(in_all), min(in_all), max(in_all), "requests")
    yield Row(f"{what}, mean with the manifest's compaction", mean)


def _row(
    what: str,
    count: Callable[[CommitRequests], int],
    commits: list[CommitRequests],
    young: list[CommitRequests] | None,
    goal: float | None = None,
) -> Row:
    floor = Floor(f"at commit {YOUNG}, {FEW_TYPES} types", summary(map(count, young), "requests")) if young else None
    return Row(what, summary(map(count, commits), "requests"), floor, goal)
