"""The real writers, as a user calls them, for the suites that kill processes and make stores fail.

    python -m tests.commit.real_writers URI VERB BRANCH

With TRACE=1 it prints the failpoints that the verb passes, in order, as `name:n` for the nth passing; with CRASH_AT=name:n it is
killed there. Each verb changes several tables where it can.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.embedding.embedder import Embedder
from omnigraph.graph.graph import Graph
from omnigraph.graph.handle import Connection, Door
from omnigraph.graph.lifecycle import open_for_reading
from omnigraph.graph.schema_watch import SchemaWatch
from omnigraph.spark.options import spark_options
from tests.commit.org import SCHEMA

ACTOR = "real"
SOURCE, FEATURE, NEW = "source", "feature", "new"
#: Modules that declare failpoints a verb may pass.
DECLARING = ("mutation.execute", "load.execute", "merge.execute", "evolution.apply", "maintenance.optimize",
             "maintenance.reclaim", "commit.branches", "commit.layout")  # fmt: skip

WRITES = """
query hire() {
  insert Staff { handle: "hal", level: 22 }
  insert Staff { handle: "ada", level: 99 }
  insert Mentors { from: "ada", to: "hal" }
}
query leave() { delete Staff where handle = "ada" }
query fresh() { insert Team { code: "fresh" } }
"""
ROWS = [
    {"type": "Staff", "data": {"handle": "ada", "level": 98}},
    {"type": "Staff", "data": {"handle": "ida", "level": 23}},
    {"type": "Team", "data": {"code": "ops"}},
    {"edge": "MemberOf", "from": "ida", "to": "ops"},
]
IMAGE = [
    {"type": "Staff", "data": {"handle": "zara"}},
    {"edge": "Mentors", "from": "zara", "to": "zara"},
    {"edge": "MemberOf", "from": "zara", "to": "core"},
]
WIDER = SCHEMA.replace("level: I32?", "level: I32? @index\n  desk: String?").replace(
    "began: Date?", 'since: Date? @rename_from("began")'
)

#: Columns are rewritten: a wider type, and required properties of a node and of an edge type that are computed.
REWRITTEN = SCHEMA.replace("level: I32?", "level: I64?\n  loud: String @unique").replace(
    "began: Date?", "began: Date? label: String"
)
BACKFILL = {"Staff.loud": "upper(handle)", "Mentors.label": 'concat(from, "-", to)'}

Verb = Callable[[og.Graph, str], object]


def _pick(graph: og.Graph, branch: str) -> object:
    (commit,) = (commit for commit in graph.commits(SOURCE) if commit.actor == "picked")
    return graph.cherry_pick(commit.id, branch, actor=ACTOR)


def _revert(graph: og.Graph, branch: str) -> object:
    (commit,) = (commit for commit in graph.commits(branch) if commit.actor == "reverted")
    return graph.revert(commit.id, branch, actor=ACTOR)


VERBS: dict[str, Verb] = {
    "mutation": lambda graph, branch: graph.mutate(WRITES, "hire", branch=branch, actor=ACTOR, idempotency_key="once"),
    "delete": lambda graph, branch: graph.mutate(WRITES, "leave", branch=branch, actor=ACTOR),
    "load": lambda graph, branch: graph.load(ROWS, "merge", branch=branch, actor=ACTOR, engine="local"),
    "overwrite": lambda graph, branch: graph.load(IMAGE, "overwrite", branch=branch, actor=ACTOR, engine="local"),
    "spark-load": lambda graph, branch: graph.load(ROWS, "merge", branch=branch, actor=ACTOR, engine="spark"),
    "ingest": lambda graph, branch: graph.ingest(ROWS, NEW, branch, actor=ACTOR, engine="local"),
    "merge": lambda graph, branch: graph.merge(SOURCE, branch, actor=ACTOR),
    "revert": _revert,
    "cherry-pick": _pick,
    "schema": lambda graph, _: graph.apply_schema(WIDER, actor=ACTOR),
    "schema-rows": lambda graph, branch: graph.apply_schema(REWRITTEN, branch=branch, backfill=BACKFILL, actor=ACTOR),
    "merge-schema": lambda graph, branch: graph.merge(SOURCE, branch, actor=ACTOR),
    "rebase": lambda graph, branch: graph.rebase(branch, onto=SOURCE, actor=ACTOR),
    "ensure-indices": lambda graph, branch: graph.ensure_indices(branch, actor=ACTOR),
    "optimize": lambda graph, branch: graph.optimize(branch, actor=ACTOR),
}
#: Verbs after which readers of rows see nothing new.
SILENT = {"ensure-indices", "optimize", "schema"}


def fill(uri: str) -> None:
    """What the verbs start from: rows in several fragments, a commit to take back, a branch to merge from, one to write on."""
    graph = og.init(uri, SCHEMA)
    people = [{"type": "Staff", "data": {"handle": name, "level": 20}} for name in ("ada", "ben", "cleo", "dov")]
    teams = [{"type": "Team", "data": {"code": code}} for code in ("core", "labs")]
    edges = [{"edge": "Mentors", "from": "ada", "to": "ben"}, {"edge": "MemberOf", "from": "ada", "to": "core"}]
    graph.load([*people, *teams, *edges], "append")
    graph.mutate('query q() { insert Staff { handle: "eve" } insert Team { code: "late" } }', actor="reverted")


def branch_off(graph: og.Graph) -> None:
    """The branches; a schema change is made without them."""
    graph.create_branch(SOURCE)
    graph.load([{"type": "Staff", "data": {"handle": "sue"}}, {"edge": "Mentors", "from": "sue", "to": "ben"}],
               "append", branch=SOURCE, actor="picked")  # fmt: skip
    graph.mutate('query q() { update Staff set { level: 51 } where handle = "ben" }', branch=SOURCE)
    graph.mutate('query q() { delete Staff where handle = "cleo" }', branch=SOURCE)
    graph.create_branch(FEATURE)


def content(graph: og.Graph) -> dict[str, list[str]]:
    """What readers see on every branch, without the generated ids of edges and without properties that are null."""
    found = {}
    for branch in graph.branches():
        lines = [json.loads(line) for line in b"".join(graph.export_chunks(branch=branch)).splitlines()]
        for line in lines:
            dropped = {"id"} if "edge" in line else set()
            line["data"] = {k: v for k, v in line["data"].items() if k not in dropped and v is not None}
        found[branch] = sorted(json.dumps(line, sort_keys=True) for line in lines)
    return found


def graph_over(context: CommitContext) -> og.Graph:
    """A handle over a context that is there already, such as one whose store fails."""
    watch = SchemaWatch(context, open_for_reading(context))
    return Graph(Door(Connection(context, watch, Embedder(None), spark_options(None))), mode="rw", actor=ACTOR)


def main(uri: str, verb: str, branch: str) -> None:
    for module in DECLARING:
        importlib.import_module(f"omnigraph.{module}")
    graph = og.open(uri)
    wanted = os.environ.get("CRASH_AT", "")
    passed: Counter[str] = Counter()
    trace: list[str] = []

    def passing(name: str) -> None:
        passed[name] += 1
        trace.append(f"{name}:{passed[name]}")
        if trace[-1] == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    with ExitStack() as stack:
        for name in sorted(failpoints.NAMES):
            stack.enter_context(failpoints.armed(name, partial(passing, name)))
        VERBS[verb](graph, branch)
    print(json.dumps(trace))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(*sys.argv[1:])
