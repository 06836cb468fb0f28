"""How cost grows: with rows, commits, branches, types, writers, and with the time that each request to S3 takes.

Every curve is measured at three sizes (`OMNIGRAPH_SCALE` says which) and compared with a line through the first two. Requests,
files and bytes are counts, which another load on the machine does not change; seconds are what they are on the machine.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import boto3
import orjson

import omnigraph
from bench.measure import Row, benchmark, scratch_folder, seconds
from bench.s3_requests import Recorder, recorded
from bench.scale_model import curves, sizes
from bench.storage_graphs import commit_many, schema
from omnigraph.commit.context import CommitContext
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS
from omnigraph.storage.root import Root
from tests.commit.org import new_graph
from tests.s3 import S3Server, running_server

Costs = Mapping[tuple[str, str], float]

_PUT = "query put($h: String) { insert Staff { handle: $h, level: 1 } }"
_FIND = 'query find() { match { $s: Staff { handle: "s1" } } return { $s.level } }'
_COMMITS_EACH = 8
_CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


def _measured(curve: str, of: str, measure: Callable[[int], Costs]) -> Iterator[Row]:
    for found in curves({size: measure(size) for size in sizes(curve)}):
        yield from found.rows(of)


# --- rows -------------------------------------------------------------------------------------------------------------


@benchmark("scale.rows")
def of_rows() -> Iterator[Row]:
    """Nodes and three times as many edges, loaded in a process of its own from Parquet, and counted through two hops."""
    yield from _measured("rows", "rows", _rows)


def _rows(count: int) -> Costs:
    with scratch_folder() as folder:
        child = subprocess.run(
            [sys.executable, "-m", "bench.scale", str(folder), str(count)], check=True, capture_output=True
        )
        told = orjson.loads(child.stdout)
        return {
            ("bytes of the graph", "bytes"): float(_size(folder / "g")),
            ("files of the graph", "files"): float(_files(folder / "g")),
            ("peak memory of the load", "bytes"): told["peak"],
            ("load", "s"): told["load"],
            ("two-hop count", "s"): told["count"],
        }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def load_and_count(folder: str, count: str) -> None:
    """Make, load and query a graph of so many rows, a quarter of them nodes; tells what it took as JSON."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    nodes = int(count) // 4
    drawn = np.random.default_rng(3)
    keys = pa.array([f"p{number}" for number in range(nodes)])
    people, knows = Path(folder, "nodes/Person/a.parquet"), Path(folder, "edges/Knows/a.parquet")
    for path in (people, knows):
        path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"key": keys, "age": pa.array(drawn.integers(0, 90, nodes), pa.int32())}), people)
    ends = [keys.take(pa.array(drawn.integers(0, nodes, 3 * nodes))) for _ in range(2)]
    pq.write_table(pa.table({"from": ends[0], "to": ends[1]}), knows)
    graph = omnigraph.init(Path(folder, "g"), "node Person { key: String @key age: I32 }\nedge Knows: Person -> Person")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loading = seconds(lambda: graph.load([str(people), str(knows)], "append", format="parquet"))
    peak = max(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
    text = "query q() { match { $a: Person $a knows $b $b knows $c } return { count($c) as n } }"
    counting = seconds(lambda: graph.query(text, timeout=None))
    sys.stdout.buffer.write(orjson.dumps({"load": loading, "count": counting, "peak": peak}))


# --- what a graph holds besides rows ----------------------------------------------------------------------------------


@benchmark("scale.commits")
def of_commits() -> Iterator[Row]:
    """Single-row commits on one branch, its table compacted now and then."""
    yield from _on_s3("commits", lambda root, count: commit_many(_new(root, 1), count), COMPACT_ABOVE_FRAGMENTS)


@benchmark("scale.branches")
def of_branches() -> Iterator[Row]:
    """Branches of main that have changed nothing yet."""

    def build(root: Root, count: int) -> None:
        _new(root, 1)
        graph = omnigraph.open(root.uri, storage_options=root.storage_options)
        for number in range(count):
            graph.create_branch(f"b{number:05d}")

    yield from _on_s3("branches", build)


@benchmark("scale.types")
def of_types() -> Iterator[Row]:
    """Node types without rows."""
    yield from _on_s3("types", lambda root, count: _new(root, count))


def _new(root: Root, types: int) -> CommitContext:
    return new_graph(root.uri, schema(types), root.storage_options)


def _on_s3(curve: str, build: Callable[[Root, int], object], turns: int = 1) -> Iterator[Row]:
    """What opening, reading, writing and branching ask of the store, by how much there is."""
    with running_server() as server, recorded(server) as (proxy, recorder):

        def measure(count: int) -> Costs:
            root = server.new_root()
            build(root, count)
            return {**_stored(server, root), **_requests(root.uri, proxy, recorder, turns)}

        yield from _measured(curve, curve, measure)


def _requests(uri: str, proxy: S3Server, recorder: Recorder, turns: int) -> dict[tuple[str, str], float]:
    """The requests of each call, as means over so many turns: the manifest grows until it is compacted, and then anew."""
    found: dict[tuple[str, str], list[int]] = {}

    def counted(what: str, action: Callable[[], object]) -> None:
        with recorder.recording() as recording:
            action()
        found.setdefault((f"{what}, requests", "requests"), []).append(recording().total)
        found.setdefault((f"{what}, requests in sequence", "requests"), []).append(recording().in_sequence)

    graph = omnigraph.open(uri, storage_options=proxy.options)
    # The first write of a process reads what later ones know.
    graph.mutate(_PUT, params={"h": "first"})
    for turn in range(turns):
        counted("open and one query", lambda: _opened_and_asked(uri, proxy))
        counted("one-row commit", partial(graph.mutate, _PUT, params={"h": f"turn{turn}"}))
    counted("create a branch", lambda: graph.create_branch("measured"))
    counted("list the branches", graph.branches)
    return {name: statistics.mean(counts) for name, counts in found.items()}


def _opened_and_asked(uri: str, proxy: S3Server) -> omnigraph.Graph:
    graph = omnigraph.open(uri, storage_options=proxy.options)
    graph.query(_FIND)
    return graph


def _stored(server: S3Server, root: Root) -> dict[tuple[str, str], float]:
    """How many objects the graph has, and how large its manifest is."""
    client = boto3.client("s3", endpoint_url=server.endpoint, region_name="us-east-1", **_CREDENTIALS)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=root.bucket, Prefix=root.prefix)
    listed = [item for page in pages for item in page.get("Contents", ())]
    manifest = [item for item in listed if "/__manifest/" in item["Key"]]
    return {
        ("objects of the graph", "objects"): float(len(listed)),
        ("objects of the manifest", "objects"): float(len(manifest)),
        ("bytes of the manifest, all versions", "bytes"): float(sum(item["Size"] for item in manifest)),
    }


# --- writers and latency ----------------------------------------------------------------------------------------------


@benchmark("scale.writers")
def of_writers() -> Iterator[Row]:
    """So many processes' worth of handles that write rows of their own to one branch at the same time."""
    with running_server() as server, recorded(server) as (proxy, recorder):

        def measure(count: int) -> Costs:
            root = server.new_root()
            _new(root, 1)
            handles = [omnigraph.open(root.uri, storage_options=proxy.options) for _ in range(count)]

            def write(number: int) -> None:
                for turn in range(_COMMITS_EACH):
                    handles[number].mutate(_PUT, params={"h": f"w{number}-{turn}"})

            with recorder.recording() as recording, ThreadPoolExecutor(count) as threads:
                taken = seconds(lambda: list(threads.map(write, range(count))))
            commits = count * _COMMITS_EACH
            return {
                ("requests of all writers together, for each commit", "requests"): recording().total / commits,
                ("seconds for each commit of all writers together", "s"): taken / commits,
            }

        yield from _measured("writers", "writers", measure)


@benchmark("scale.latency")
def of_latency() -> Iterator[Row]:
    """The same calls where every request takes so many milliseconds more."""
    with running_server() as server:
        root = server.new_root()
        commit_many(_new(root, 4), 10)

        def measure(milliseconds: int) -> Costs:
            with recorded(server, milliseconds / 1000) as (proxy, _):
                cold = seconds(lambda: _opened_and_asked(root.uri, proxy))
                graph = _opened_and_asked(root.uri, proxy)
                graph.mutate(_PUT, params={"h": f"first{milliseconds}"})
                names = iter(range(_COMMITS_EACH))
                put = min(
                    seconds(lambda: graph.mutate(_PUT, params={"h": f"m{milliseconds}-{next(names)}"}))
                    for _ in range(_COMMITS_EACH)
                )
                return {("open and one query", "s"): cold, ("one-row commit", "s"): put}

        yield from _measured("milliseconds", "ms for each request", measure)


if __name__ == "__main__":
    load_and_count(*sys.argv[1:])
