"""One process of a race: `python -m tests.commit.race_child SCENARIO FOLDER NUMBER SECONDS`.

The folder holds the graph (`graph`, or `graph-0`, `graph-1`, … where a scenario needs several). Every process touches
`ready-NUMBER`, waits for `go`, works until its time is up, and keeps a journal: what it is about to commit, what was
acknowledged, what was lost and why. The journal is a file, so that it outlives a process that is killed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.commit.protocol import Step, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.errors import AlreadyExists, BranchNotFound, OmnigraphError, StorageError
from omnigraph.graph.lifecycle import connect, create, open_for_writing
from omnigraph.storage.tables.staged import stage_append, stage_delete
from tests.commit.lawless import lawless
from tests.commit.org import (
    MEMBER_OF,
    MENTORS,
    SCHEMA,
    STAFF,
    TEAM,
    accepted,
    effect,
    lineage,
    member_of,
    mentors,
    staff,
    table_of,
    team,
    write,
)


class Worker:
    """One process: its folder, its number, its time and its journal."""

    def __init__(self, folder: Path, number: int, seconds: float) -> None:
        self.folder = folder
        self.number = number
        self.seconds = seconds
        self.random = random.Random(number)
        self._journal = (folder / f"journal-{number}").open("a")
        # One that takes the place of a process that was killed goes on with names of its own.
        self._life = self._journal.tell()

    def note(self, **entry: object) -> None:
        self._journal.write(json.dumps(entry) + "\n")
        self._journal.flush()

    def name(self, number: int) -> str:
        """What this process calls what it adds in a round."""
        return f"w{self.number}-{self._life}-{number}"

    def rounds(self) -> Iterator[int]:
        """Count until the time is up, from when everybody is ready."""
        (self.folder / f"ready-{self.number}").touch()
        while not (self.folder / "go").exists():
            time.sleep(0.005)
        end = time.monotonic() + self.seconds
        number = 0
        while time.monotonic() < end:
            yield number
            number += 1

    def context(self, name: str = "graph") -> CommitContext:
        context = connect(str(self.folder / name))
        context.manifest.load()
        return context

    def carry_out(self, context: CommitContext, prepared: Write, added: dict[str, list[str]], **more: object) -> bool:
        """Execute a write and journal how it went; every error must be one of ours."""
        commit = prepared.lineage.id
        self.note(plan=commit, added=added, **more)
        try:
            state = execute(context, prepared)
        except OmnigraphError as error:
            self.note(lost=commit, error=type(error).__name__, message=str(error))
            return False
        self.note(ack=commit, incarnation=state.incarnation)
        return True

    def add(self, context: CommitContext, changes: dict[str, pa.Table], branch: str = MAIN) -> bool:
        state = context.manifest.load(branch)
        base = {key: state.by_key[key].version for key in changes}
        added = {key: data["id"].to_pylist() for key, data in changes.items()}
        return self.carry_out(context, write(context, changes, branch=branch), added, base=base, branch=branch)


# --- writers ----------------------------------------------------------------------------------------------------------


def disjoint(worker: Worker) -> None:
    """Every process has a table of its own."""
    context = worker.context()
    make: dict[str, Callable[[str], pa.Table]] = {
        STAFF: lambda name: staff([name]),
        TEAM: lambda name: team([name]),
        MENTORS: lambda name: mentors([(name, name)]),
        MEMBER_OF: lambda name: member_of([(name, name)]),
    }
    key = list(make)[worker.number % 4]
    for number in worker.rounds():
        worker.add(context, {key: make[key](worker.name(number))})


def same_table(worker: Worker) -> None:
    """All processes add to one table."""
    context = worker.context()
    for number in worker.rounds():
        worker.add(context, {STAFF: staff([worker.name(number)])})


def two_tables(worker: Worker) -> None:
    """All processes add to two tables at once, so that a half-done write shows."""
    _two_tables(worker, worker.context())


def without_locks(worker: Worker) -> None:
    """The same as `two_tables`, without respect for locks."""
    _two_tables(worker, lawless(worker.context()))


def _two_tables(worker: Worker, context: CommitContext) -> None:
    for number in worker.rounds():
        name = worker.name(number)
        worker.add(context, {STAFF: staff([name]), TEAM: team([name])})


# --- edges against deletes --------------------------------------------------------------------------------------------


def link(worker: Worker) -> None:
    """Add people and edges between people that exist; a check that no longer holds is made again."""
    context = worker.context()
    for number in worker.rounds():
        time.sleep(0.02)  # so that who removes has a chance
        if number % 3 == 0:
            worker.add(context, {STAFF: staff([worker.name(number)])})
            continue
        while not _link_once(worker, context):
            pass


def _link_once(worker: Worker, context: CommitContext) -> bool:
    state = context.manifest.load()
    people = _ids(context, state, STAFF)
    if len(people) < 2:
        return True
    source, target = worker.random.sample(people, 2)
    data = mentors([(source, target)])
    staged = stage_append(table_of(context, state.by_key[MENTORS]), data)
    prepared = Write(
        Kind.MUTATION,
        MAIN,
        lineage(),
        (effect(context, state, MENTORS, Step(staged)),),
        accepted(state),
        reads=(state.by_key[STAFF],),
    )
    return worker.carry_out(context, prepared, {MENTORS: data["id"].to_pylist()})


def remove(worker: Worker) -> None:
    """Delete people together with their edges, as they were when the write was prepared."""
    context = worker.context()
    for _ in worker.rounds():
        _remove_once(worker, context)


def _remove_once(worker: Worker, context: CommitContext) -> None:
    state = context.manifest.load()
    people = _ids(context, state, STAFF)
    if len(people) < 5:
        return
    gone = worker.random.choice(people)
    incident = (pc.field("src") == gone) | (pc.field("dst") == gone)
    edges = table_of(context, state.by_key[MENTORS]).read(["id"], incident)["id"].to_pylist()
    person = stage_delete(table_of(context, state.by_key[STAFF]), ids=pa.array([gone]))
    effects = [effect(context, state, STAFF, Step(person))]
    if edges:
        staged = stage_delete(table_of(context, state.by_key[MENTORS]), ids=pa.array(edges))
        effects.append(effect(context, state, MENTORS, Step(staged)))
    reads = () if edges else (state.by_key[MENTORS],)
    prepared = Write(Kind.MUTATION, MAIN, lineage(), tuple(effects), accepted(state), reads)
    worker.carry_out(context, prepared, {}, removed={STAFF: [gone], MENTORS: edges})


def _ids(context: CommitContext, state: ManifestState, key: str) -> list[str]:
    found: list[str] = table_of(context, state.by_key[key]).read(["id"])["id"].to_pylist()
    return found


# --- branches, creation, migration ------------------------------------------------------------------------------------


def churn(worker: Worker) -> None:
    """Create, delete and write one branch, in any order."""
    context = worker.context()
    for number in worker.rounds():
        action = worker.random.choice(["create", "delete", "write", "write", "write"])
        before = read_ref(context.store, "hot")
        try:
            if action == "create":
                create_branch(context, "hot", MAIN)
            elif action == "delete":
                delete_branch(context, "hot")
            else:
                worker.add(context, {STAFF: staff([worker.name(number)])}, "hot")
        except (AlreadyExists, BranchNotFound):
            worker.note(refused=action)
        except StorageError:
            # Staging fails in many ways when the branch is deleted meanwhile, and its forks with it.
            if read_ref(context.store, "hot") == before:
                raise
            worker.note(refused=action)
        else:
            worker.note(did=action)


def initialise(worker: Worker) -> None:
    """Create the graph in every folder; somebody else does the same."""
    for number in worker.rounds():
        name = f"graph-{number}"
        try:
            create(connect(str(worker.folder / name)), SCHEMA, actor=f"w{worker.number}")
        except OmnigraphError as error:
            worker.note(graph=name, error=type(error).__name__)
        else:
            worker.note(graph=name, created=True)


def migrate(worker: Worker) -> None:
    """Open every old graph read-write and write on its branch, which is old too."""
    for number in worker.rounds():
        name = f"graph-{number}"
        if not (worker.folder / name).exists():
            return
        context = connect(str(worker.folder / name))
        open_for_writing(context)
        while not worker.add(context, {STAFF: staff([f"w{worker.number}"])}, "feature"):
            pass


SCENARIOS: dict[str, Callable[[Worker], None]] = {
    scenario.__name__: scenario
    for scenario in (disjoint, same_table, two_tables, without_locks, link, remove, churn, initialise, migrate)
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Worker(Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
