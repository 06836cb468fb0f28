"""A disk that is full for moments while a graph is written, and a model of what the graph must hold.

    python -m tests.soak.full_disk FOLDER mounted|limited EPISODES SEED [SPARK]

`mounted`: FOLDER is a small file system of its own; a filler process takes and frees its space. `limited`: the process
limits the size of its own files (RLIMIT_FSIZE) for moments, which needs no privileges and cuts files in the same way.

Each episode does one thing with every kind of writer in turn. Then there is space again, and a fresh handle must read what
the model says: the effect of what was acknowledged, nothing of what failed, and a further write works. The last line of
the output is a JSON object with the counts; every violation is a line that begins with VIOLATION.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import omnigraph as og
from omnigraph.errors import CommitStateUnknown, OmnigraphError, RecoveryRequired, StorageError
from omnigraph.graph.loading import Mode as LoadMode

SCHEMA = """
node P {
  name: String @key
  value: I64
  note: String? @index
  content: Blob?
}
edge Knows: P -> P
"""
WIDER = SCHEMA.replace("value: I64", "value: I64\n  extra: String?")
WRITES = """
query insert_one($n: String, $v: I64, $t: String) { insert P { name: $n, value: $v, note: $t } }
query insert_two($a: String, $b: String, $v: I64) {
  insert P { name: $a, value: $v } insert P { name: $b, value: $v } insert Knows { from: $a, to: $b } }
query update_one($n: String, $v: I64) { update P set { value: $v } where name = $n }
query delete_one($n: String) { delete P where name = $n }
"""
READS = """
query nodes() { match { $p: P } return { $p.name, $p.value } }
query edges() { match { $a: P $a knows $b } return { $a.name, $b.name } }
"""
PAGE = 4096
#: A graph is replaced after so many episodes, so that the disk is not full of history.
EPISODES_PER_GRAPH = 30

FILLER = """
import os, random, select, sys, time
place, leave = sys.argv[1], None
def free():
    found = os.statvfs(os.path.dirname(place)); return found.f_bavail * found.f_frsize
while True:
    if leave is None or select.select([sys.stdin], [], [], 0)[0]:
        line = sys.stdin.readline()
        if not line: sys.exit()
        leave = None if line.strip() == "stop" else int(line)
        if leave is None:
            if os.path.exists(place): os.remove(place)
            print("free", flush=True)
            continue
        first = True
    with open(place, "ab") as file:
        take = free() - leave
        try:
            if take > 0: os.posix_fallocate(file.fileno(), file.tell(), take)
        except OSError: pass
    if first: print("full", flush=True); first = False
    time.sleep(random.uniform(0, 0.006))
    os.remove(place)
    time.sleep(random.uniform(0, 0.003))
"""


class MountedDisk:
    """The file system that a folder lies on, filled by another process up to a few pages."""

    def __init__(self, folder: Path) -> None:
        self._filler = subprocess.Popen(
            [sys.executable, "-c", FILLER, str(folder / "filler")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _tell(self, line: str) -> None:
        assert self._filler.stdin
        assert self._filler.stdout
        self._filler.stdin.write(f"{line}\n")
        self._filler.stdin.flush()
        self._filler.stdout.readline()

    @contextlib.contextmanager
    def full(self, rng: random.Random) -> Iterator[None]:
        self._tell(str(rng.randrange(14) * PAGE))
        try:
            yield
        finally:
            self._tell("stop")


class LimitedDisk:
    """This process may not write files beyond a size, for moments."""

    def __init__(self, folder: Path) -> None:
        self._none = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextlib.contextmanager
    def full(self, rng: random.Random) -> Iterator[None]:
        over = threading.Event()
        size = rng.choice([0, 60, 150, 300, 450, 700, 1500, 4000])

        def take_and_free() -> None:
            while not over.is_set():
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._none[1]))
                time.sleep(rng.uniform(0, 0.006))
                resource.setrlimit(resource.RLIMIT_FSIZE, self._none)
                time.sleep(rng.uniform(0, 0.003))

        thread = threading.Thread(target=take_and_free)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@dataclass
class Model:
    """What the graph must hold."""

    nodes: dict[str, int] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)
    branches: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    wide: bool = False

    def copy(self) -> Model:
        return Model(dict(self.nodes), set(self.edges), set(self.branches), set(self.tags), self.wide)


def read(uri: str) -> Model:
    """The graph as a fresh handle reads it."""
    graph = og.open(uri)
    nodes = {row["p.name"]: row["p.value"] for row in graph.query(READS, "nodes").rows}
    edges = {(row["a.name"], row["b.name"]) for row in graph.query(READS, "edges").rows}
    for branch in graph.branches():
        for entry in graph.snapshot(branch).entries():
            graph.snapshot(branch).open(entry.key).read(blobs="values")
    branches = {name for name in graph.branches() if name != "main"}
    return Model(nodes, edges, branches, set(graph.tags()), "extra" in graph.schema())


class Episodes:
    """One graph, its model, and what can be done to it: an action prepares, changes the model given, and returns the act."""

    def __init__(self, folder: Path, rng: random.Random, spark: bool) -> None:
        self.folder, self.rng, self.spark = folder, rng, spark
        self.serial = 0
        self.counts: Counter[str] = Counter()
        self.violations = 0
        self.begin()

    def begin(self) -> None:
        """A graph with a few rows in several fragments."""
        self.serial += 1
        self.uri = str(self.folder / f"g{self.serial}")
        self.graph = og.init(self.uri, SCHEMA)
        self.model = Model()
        for _ in range(3):
            self.load_rows(self.model, 5, "append")()
        self.graph.ensure_indices()

    def name(self) -> str:
        self.serial += 1
        return f"n{self.serial:05}"

    def some(self) -> str:
        return self.rng.choice(sorted(self.model.nodes))

    # --- the actions ------------------------------------------------------------------------------------------------

    def insert(self, after: Model) -> Callable[[], object]:
        name, value = self.name(), self.rng.randrange(1000)
        after.nodes[name] = value
        params = {"n": name, "v": value, "t": "x" * self.rng.randrange(3000)}
        return lambda: self.graph.mutate(WRITES, "insert_one", params)

    def insert_edge(self, after: Model) -> Callable[[], object]:
        a, b = self.name(), self.name()
        after.nodes.update({a: 7, b: 7})
        after.edges.add((a, b))
        return lambda: self.graph.mutate(WRITES, "insert_two", {"a": a, "b": b, "v": 7})

    def update(self, after: Model) -> Callable[[], object]:
        name, value = self.some(), self.rng.randrange(1000, 2000)
        after.nodes[name] = value
        return lambda: self.graph.mutate(WRITES, "update_one", {"n": name, "v": value})

    def delete(self, after: Model) -> Callable[[], object]:
        name = self.some()
        del after.nodes[name]
        after.edges = {edge for edge in after.edges if name not in edge}
        return lambda: self.graph.mutate(WRITES, "delete_one", {"n": name})

    def load_rows(
        self, after: Model, count: int, mode: LoadMode, engine: Literal["local", "spark"] = "local"
    ) -> Callable[[], object]:
        lines = []
        for _ in range(count):
            name, to = self.name(), self.rng.choice(sorted(after.nodes) or [None])
            data = {"name": name, "value": 3, "note": "y" * self.rng.randrange(400)}
            if self.rng.random() < 0.2:
                data["content"] = "base64:" + "QUJD" * self.rng.choice([3, 30_000])
            lines.append({"type": "P", "data": data})
            after.nodes[name] = 3
            if to is not None:
                lines.append({"edge": "Knows", "from": name, "to": to})
                after.edges.add((name, to))
        text = "\n".join(map(json.dumps, lines)).encode()
        return lambda: self.graph.load(text, mode, engine=engine)

    def load(self, after: Model) -> Callable[[], object]:
        modes: list[LoadMode] = ["append", "merge"]
        return self.load_rows(after, self.rng.randrange(1, 60), self.rng.choice(modes))

    def load_on_spark(self, after: Model) -> Callable[[], object]:
        return self.load_rows(after, 40, "append", "spark")

    def merge(self, after: Model) -> Callable[[], object]:
        branch = f"b{self.name()}"
        self.graph.create_branch(branch)
        a, gone = self.name(), self.some()
        self.graph.mutate(WRITES, "insert_one", {"n": a, "v": 5, "t": "m"}, branch=branch)
        self.graph.mutate(WRITES, "delete_one", {"n": gone}, branch=branch)
        self.graph.mutate(WRITES, "insert_one", {"n": (b := self.name()), "v": 6, "t": "m"})
        self.model.nodes[b] = after.nodes[b] = 6
        self.model.branches.add(branch)
        after.branches.add(branch)
        after.nodes[a] = 5
        del after.nodes[gone]
        after.edges = {edge for edge in after.edges if gone not in edge}
        return lambda: self.graph.merge(branch)

    def write_branch(self, after: Model) -> Callable[[], object]:
        if not self.model.branches:
            return self.create_branch(after)
        branch = self.rng.choice(sorted(self.model.branches))
        return lambda: self.graph.mutate(WRITES, "insert_one", {"n": self.name(), "v": 5, "t": "m"}, branch=branch)

    def create_branch(self, after: Model) -> Callable[[], object]:
        branch = f"b{self.name()}"
        after.branches.add(branch)
        return lambda: self.graph.create_branch(branch)

    def delete_branch(self, after: Model) -> Callable[[], object]:
        if not self.model.branches:
            return self.create_branch(after)
        branch = self.rng.choice(sorted(self.model.branches))
        after.branches.remove(branch)
        return lambda: self.graph.delete_branch(branch)

    def schema(self, after: Model) -> Callable[[], object]:
        for branch in sorted(self.model.branches):
            self.graph.delete_branch(branch)
        for tag in sorted(self.model.tags):
            self.graph.delete_tag(tag)
        for model in (self.model, after):
            model.branches.clear()
            model.tags.clear()
        after.wide = not after.wide
        wanted = WIDER if after.wide else SCHEMA
        return lambda: self.graph.apply_schema(wanted, allow_data_loss=True)

    def tag(self, after: Model) -> Callable[[], object]:
        name = f"t{self.name()}"
        after.tags.add(name)
        return lambda: self.graph.tag(name)

    def ensure_indices(self, after: Model) -> Callable[[], object]:
        self.load_rows(self.model, 3, "append")()
        after.nodes, after.edges = dict(self.model.nodes), set(self.model.edges)
        return lambda: self.graph.ensure_indices()

    def optimize(self, after: Model) -> Callable[[], object]:
        return lambda: self.graph.optimize()

    def cleanup(self, after: Model) -> Callable[[], object]:
        return lambda: self.graph.cleanup(keep=2)

    def export(self, after: Model) -> Callable[[], object]:
        place = self.folder / f"e{self.name()}.jsonl"

        def act() -> None:
            rows = len(self.model.nodes) + len(self.model.edges)
            try:
                self.graph.export(str(place))
                assert len(place.read_bytes().splitlines()) == rows, "an export was acknowledged and is not whole"
            finally:
                place.unlink(missing_ok=True)

        return act

    def actions(self) -> list[str]:
        kinds = ["insert", "insert_edge", "update", "delete", "load", "merge", "write_branch", "create_branch"]
        kinds += ["delete_branch", "schema", "tag", "ensure_indices", "optimize", "cleanup", "export"]
        return kinds + ["load_on_spark"] * self.spark

    # --- an episode -------------------------------------------------------------------------------------------------

    def run(self, kind: str, disk: MountedDisk | LimitedDisk) -> None:
        after = self.model.copy()
        act = getattr(self, kind)(after)
        possible = [self.model]
        outcome = "ok"
        try:
            with disk.full(self.rng):
                act()
            possible = [after]
        except OmnigraphError as error:
            outcome = type(error).__name__
            if isinstance(error, CommitStateUnknown | RecoveryRequired) or getattr(error, "kind", "") == "unknown":
                possible = [self.model, after]
            elif not isinstance(error, StorageError):
                self.violation(kind, f"a full disk is told as {outcome}: {error}")
        except BaseException:
            outcome = "raw"
            self.violation(kind, traceback.format_exc())
        self.counts[f"{kind} {outcome}"] += 1
        try:
            self.graph = og.open(self.uri)
            self.graph.refresh()
            found = read(self.uri)
            if found not in possible:
                self.violation(kind, f"after {outcome}: {found} is none of {possible}")
            self.model = found
            self.insert(self.model)()
            if read(self.uri) != self.model:
                self.violation(kind, "the write after it is not there")
        except BaseException:
            self.violation(kind, f"after {outcome}: {traceback.format_exc()}")
            self.begin()

    def violation(self, kind: str, what: str) -> None:
        self.violations += 1
        print(f"VIOLATION {kind} in {self.uri}: {what}", flush=True)


def main() -> None:
    folder, kind, count, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rng = random.Random(seed)
    disk = MountedDisk(folder) if kind == "mounted" else LimitedDisk(folder)
    episodes = Episodes(folder, rng, spark=len(sys.argv) > 5)
    turns = episodes.actions()
    for number in range(count):
        if number % EPISODES_PER_GRAPH == EPISODES_PER_GRAPH - 1:
            subprocess.run(["rm", "-rf", episodes.uri], check=True)
            episodes.begin()
        episodes.run(turns[number % len(turns)], disk)
    print(
        json.dumps({"violations": episodes.violations, "episodes": dict(sorted(episodes.counts.items()))}), flush=True
    )
    os._exit(0)


if __name__ == "__main__":
    main()
