"""Single-row inserts on one branch, by one client and by eight at once: threads of one handle, on local disk and on S3."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, scratch_folder, summary
from bench.mutation_graphs import call, fresh_name
from bench.s3_requests import recorded
from tests.mutation.org_graph import SCHEMA
from tests.s3 import running_server

CLIENTS = 8
#: How many times the commits per second of one client eight of them make together, and how far apart they may be.
GOAL = 5.0
FAIR = 2.0
#: What every request to the store takes longer on S3, and how long clients write, in seconds.
S3_LATENCY = 0.03
_SECONDS_LOCAL, _SECONDS_S3 = 4.0, 12.0
_ROUNDS = 3


@dataclass(frozen=True)
class Run:
    """The commits per second of some clients that write for a while, and the commits of each of them."""

    rate: float
    commits: tuple[int, ...]


def write(graph: omnigraph.Graph, clients: int, duration: float) -> Run:
    """Let clients insert row after row until the time is over; every insert that was begun is finished and counted."""
    commits = [0] * clients
    begun, end = time.perf_counter(), time.perf_counter() + duration

    def insert(client: int) -> None:
        while time.perf_counter() < end:
            assert call(graph, "put", h=fresh_name(), n=1).commit is not None
            commits[client] += 1

    threads = [threading.Thread(target=insert, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Run(sum(commits) / (time.perf_counter() - begun), tuple(commits))


def rows(where: str, new_graph: Callable[[], omnigraph.Graph], duration: float) -> Iterator[Row]:
    """One client and eight in turn, each time on a new graph, so that both write tables of the same size."""
    alone: list[Run] = []
    together: list[Run] = []
    for _ in range(_ROUNDS):
        for runs, clients in ((alone, 1), (together, CLIENTS)):
            graph = new_graph()
            write(graph, 1, duration / 8)
            runs.append(write(graph, clients, duration))
    one, eight = (summary([run.rate for run in runs], unit="commits/s") for runs in (alone, together))
    gains = [many.rate / single.rate for many, single in zip(together, alone, strict=True)]
    yield Row(f"{where}: one client", one)
    yield Row(f"{where}: {CLIENTS} clients", eight, Floor("one client", one))
    # Goals are upper bounds: what one commit of eight clients takes, against the time of one client.
    share = summary([1 / gain for gain in gains], unit="of one client's time")
    yield Row(f"{where}: a commit of {CLIENTS} clients takes", share, goal=1 / GOAL)
    yield Row(f"{where}: most against fewest commits of a client", _unfairness(together), goal=FAIR)


def _unfairness(runs: list[Run]) -> Measure:
    return summary([max(run.commits) / max(1, min(run.commits)) for run in runs], unit="times")


@benchmark("groups.local")
def local() -> Iterator[Row]:
    with scratch_folder() as folder:
        numbers = count()
        yield from rows("local", lambda: omnigraph.init(folder / str(next(numbers)), SCHEMA), _SECONDS_LOCAL)


@benchmark("groups.s3")
def s3() -> Iterator[Row]:
    with running_server() as server, recorded(server, S3_LATENCY) as (proxy, _):

        def new_graph() -> omnigraph.Graph:
            root = proxy.new_root()
            return omnigraph.init(root.uri, SCHEMA, storage_options=root.storage_options)

        yield from rows(f"S3 with {1000 * S3_LATENCY:g} ms", new_graph, _SECONDS_S3)
