"""The requests of a merge on S3, with few types and many: only the tables that the source has touched may cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import omnigraph
from bench.measure import Floor, Row, benchmark, summary
from bench.s3_requests import Recorder, Recording, recorded
from bench.storage import MANY_TYPES
from bench.storage_graphs import schema
from tests.s3 import S3Server, running_server

ONE_TYPE = 1
ROUNDS = 5
#: With a hundred types more the manifest is longer, which costs a few reads of it; tables that were not touched cost nothing.
GROWTH = 1.1

_PUT = "query put($h: String, $n: I32) { insert Staff { handle: $h, level: $n } }"
_RELEVEL = "query relevel($h: String, $n: I32) { update Staff set { level: $n } where handle = $h }"


@dataclass(frozen=True)
class Merges:
    """The requests of the same merges on one graph, once for each round."""

    fast_forward: tuple[Recording, ...]
    both_sides: tuple[Recording, ...]


@benchmark("merge.requests")
def requests_of_a_merge() -> Iterator[Row]:
    with running_server() as server, recorded(server) as (proxy, recorder):
        narrow, wide = (_merges(server, proxy, recorder, types) for types in (ONE_TYPE, MANY_TYPES))
    for what, few, many in (
        ("fast-forward of one changed row on S3", narrow.fast_forward, wide.fast_forward),
        ("merge of one changed row per side on S3", narrow.both_sides, wide.both_sides),
    ):
        yield from _rows(what, few, many)


def _merges(server: S3Server, proxy: S3Server, recorder: Recorder, types: int) -> Merges:
    """A graph built without the proxy; its merges go through it, in one process that has merged before."""
    root = server.new_root()
    writer = omnigraph.init(root.uri, schema(types), storage_options=root.storage_options)
    for name in ("ours", "theirs"):
        writer.mutate(_PUT, params={"h": name, "n": 0})
    merger = omnigraph.open(root.uri, storage_options=proxy.options)
    recordings: list[list[Recording]] = [[], []]
    # The first round reads what later ones know.
    for turn in range(ROUNDS + 1):
        for diverged, found in enumerate(recordings):
            branch = f"feature{turn}-{diverged}"
            writer.create_branch(branch)
            writer.mutate(_RELEVEL, params={"h": "theirs", "n": 2 * turn + diverged + 1}, branch=branch)
            if diverged:
                writer.mutate(_RELEVEL, params={"h": "ours", "n": turn + 1})
            with recorder.recording() as recording:
                merger.merge(branch)
            found.append(recording())
            writer.delete_branch(branch)
    return Merges(*(tuple(found[1:]) for found in recordings))


def _rows(what: str, few: tuple[Recording, ...], many: tuple[Recording, ...]) -> Iterator[Row]:
    for part, count, growth in (
        ("in all", lambda recording: recording.total, GROWTH),
        ("in sequence", lambda recording: recording.in_sequence, GROWTH),
        ("to tables", _to_tables, 1.0),
    ):
        narrow, wide = (summary(map(count, found), "requests") for found in (few, many))
        yield Row(f"{what}, {ONE_TYPE} type, {part}", narrow)
        floor = Floor(f"with {ONE_TYPE} type", narrow)
        yield Row(f"{what}, {MANY_TYPES} types, {part}", wide, floor, goal=growth * narrow.median)


def _to_tables(recording: Recording) -> int:
    return sum("/nodes/" in unquote(request.path) for request in recording.requests)
