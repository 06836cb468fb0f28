"""Races between real processes. After each: one history, everything acknowledged is in it, and the rows are exact.

A few seconds each under `make test`, a minute each under `make test-long`.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.format import CURRENT
from omnigraph.commit.history import history
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.graph.lifecycle import connect, open_for_writing
from tests import warm
from tests.commit.healthy import assert_healthy
from tests.commit.old_format import old_graph
from tests.commit.org import MENTORS, STAFF, TEAM, again, ids, insert, new_graph, staff, table_of, team

PROJECT = Path(__file__).resolve().parents[2]
CONFLICTS = {"ExpectedVersionMismatch", "ReadSetChanged", "ManifestContention"}

lasting = pytest.mark.parametrize(
    "seconds", [pytest.param(2.5, id="short"), pytest.param(60.0, id="long", marks=pytest.mark.long)]
)


# --- running a race ---------------------------------------------------------------------------------------------------


@dataclass
class Race:
    """Processes that do something to one folder at the same time."""

    folder: Path
    scenarios: Sequence[str]
    seconds: float
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self) -> Journal:
        """Start everybody, let them go at once, and wait until all are done."""
        self.start()
        return self.finish()

    def start(self) -> None:
        for number, scenario in enumerate(self.scenarios):
            self.enter(number, scenario)
        for number in self.processes:
            self.wait_until_ready(number)
        (self.folder / "go").touch()

    def enter(self, number: int, scenario: str) -> None:
        arguments = [scenario, str(self.folder), str(number), str(self.seconds)]
        log = (self.folder / f"log-{number}").open("ab")
        with log:
            self.processes[number] = warm.Popen(
                [sys.executable, "-m", "tests.commit.race_child", *arguments], cwd=PROJECT, stdout=log, stderr=log
            )

    def wait_until_ready(self, number: int) -> None:
        while not (self.folder / f"ready-{number}").exists():
            assert self.processes[number].poll() is None, self.log(number)
            time.sleep(0.01)

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes.pop(number).wait()
        (self.folder / f"ready-{number}").unlink()

    def finish(self) -> Journal:
        for number, process in self.processes.items():
            assert process.wait() == 0, self.log(number)
        return Journal(sorted(self.folder.glob("journal-*")))

    def log(self, number: int) -> str:
        return (self.folder / f"log-{number}").read_text()


class Journal:
    """What all processes of a race wrote down."""

    def __init__(self, files: Sequence[Path]) -> None:
        # The last line of a process that was killed may be a part of one.
        lines = [line for file in files for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.planned = {entry["plan"]: entry for entry in self.entries if "plan" in entry}
        self.acknowledged = {entry["ack"] for entry in self.entries if "ack" in entry}
        self.lost = {entry["lost"]: entry for entry in self.entries if "lost" in entry}

    def errors(self) -> Counter[str]:
        return Counter(entry["error"] for entry in self.lost.values())


def check(context: CommitContext, journal: Journal, rows: dict[str, set[str]]) -> None:
    """What must hold after every race on one graph; `rows` is what the tables held before."""
    heal(context)
    write_once_more(context)
    assert list_sidecars(context.store) == [], "one more write leaves nothing pending"
    listed = history(context.manifest)
    commits = {commit.id for commit in listed}
    assert len(commits) == len(listed)
    assert [commit.parent for commit in listed] == [*(commit.id for commit in listed[1:]), None], "one line"
    assert journal.acknowledged <= commits, "an acknowledged commit is missing"
    reported = {id_ for id_, entry in journal.lost.items() if entry["error"] in CONFLICTS}
    assert not reported & commits, "a write that was told it lost is there"
    made = [entry for id_, entry in journal.planned.items() if id_ in commits]
    for key in (STAFF, TEAM, MENTORS):
        added = {id_ for entry in made for id_ in entry["added"].get(key, ())}
        removed = {id_ for entry in made for id_ in entry.get("removed", {}).get(key, ())}
        expected = (rows.get(key, set()) | added | ONE_MORE.get(key, set())) - removed
        assert ids(context, key) == sorted(expected)
    assert_healthy(context)


ONE_MORE = {STAFF: {"one-more"}, TEAM: {"one-more"}}


def write_once_more(context: CommitContext) -> None:
    """A last write; it starts over when it found a table that it had to put right first."""
    for _ in range(3):
        with suppress(ExpectedVersionMismatch):
            insert(context, {STAFF: staff(["one-more"]), TEAM: team(["one-more"])})
            return
    raise AssertionError("the graph can not be written any more")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    new_graph(str(tmp_path / "graph"))
    return tmp_path


def graph_at(place: Path, name: str = "graph") -> CommitContext:
    return connect(str(place / name))


# --- writers ----------------------------------------------------------------------------------------------------------


@lasting
def test_writers_of_disjoint_tables_all_commit_in_one_line(place: Path, seconds: float) -> None:
    journal = Race(place, ["disjoint"] * 4, seconds).run()
    assert not journal.lost, journal.errors()
    assert len(journal.acknowledged) > 10
    check(graph_at(place), journal, {})


@lasting
def test_writers_of_one_table_have_one_winner_each_round(place: Path, seconds: float) -> None:
    journal = Race(place, ["same_table"] * 4, seconds).run()
    assert set(journal.errors()) <= CONFLICTS
    assert journal.lost, "nobody ever lost: this was no race"
    won = [journal.planned[id_]["base"][STAFF] for id_ in journal.acknowledged]
    assert len(set(won)) == len(won), "two writers won from one base"
    check(graph_at(place), journal, {})


@lasting
def test_writers_of_several_tables_are_never_half_visible(place: Path, seconds: float) -> None:
    journal = Race(place, ["two_tables"] * 3, seconds).run()
    assert set(journal.errors()) <= CONFLICTS
    check(graph_at(place), journal, {})


@lasting
def test_an_edge_never_dangles(place: Path, seconds: float) -> None:
    people = {f"p{number}" for number in range(12)}
    insert(graph_at(place), {STAFF: staff(sorted(people))})
    journal = Race(place, ["link", "link", "remove"], seconds).run()

    context = graph_at(place)
    state = context.manifest.load()
    edges = table_of(context, state.by_key[MENTORS]).read(["src", "dst"])
    ends = {*edges["src"].to_pylist(), *edges["dst"].to_pylist()}
    assert ends <= set(ids(context, STAFF))
    assert {"ReadSetChanged", "ExpectedVersionMismatch"} & set(journal.errors()), "nobody ever lost: this was no race"
    assert set(journal.errors()) <= CONFLICTS
    assert any("removed" in journal.planned[id_] for id_ in journal.acknowledged)
    check(context, journal, {STAFF: people})


@lasting
def test_a_writer_that_ignores_the_locks_does_no_damage(place: Path, seconds: float) -> None:
    journal = Race(place, ["two_tables", "two_tables", "without_locks"], seconds).run()
    assert journal.acknowledged
    check(graph_at(place), journal, {})


@lasting
def test_writers_go_on_when_others_are_killed(place: Path, seconds: float) -> None:
    victims, generator = 3 if seconds < 10 else 30, random.Random(7)
    race = Race(place, ["two_tables", "same_table", *["two_tables"] * min(victims, 3)], seconds)
    race.start()
    end = time.monotonic() + seconds
    killed = 0
    while killed < victims and time.monotonic() < end:
        number = 2 + killed % 3
        time.sleep(generator.uniform(0.2, 0.7))
        race.kill(number)
        killed += 1
        if victims > 3:
            race.enter(number, "two_tables")
            race.wait_until_ready(number)
    journal = race.finish()
    assert killed >= 3
    assert journal.acknowledged
    check(graph_at(place), journal, {})


# --- branches ---------------------------------------------------------------------------------------------------------


@lasting
def test_one_branch_created_deleted_and_written_by_two(place: Path, seconds: float) -> None:
    context = graph_at(place)
    insert(context, {STAFF: staff(["base"])})
    before = history(context.manifest)
    journal = Race(place, ["churn", "churn"], seconds).run()

    context = graph_at(place)
    assert history(context.manifest) == before, "main is untouched"
    assert ids(context, STAFF) == ["base"]
    did = Counter(entry["did"] for entry in journal.entries if "did" in entry)
    assert min(did["create"], did["delete"], did["write"]) > 0
    assert set(journal.errors()) <= {*CONFLICTS, "BranchNotFound"}
    if "hot" not in branch_names(context):
        create_branch(context, "hot", "main")
    ref = read_ref(context.store, "hot")
    assert ref is not None
    own = {entry["ack"] for entry in journal.entries if entry.get("incarnation") == ref.incarnation}
    added = [id_ for commit in own for id_ in journal.planned[commit]["added"][STAFF]]
    assert ids(context, STAFF, "hot") == sorted(["base", *added]), "what this life of the branch was told it has"
    assert {commit.id for commit in history(context.manifest, "hot")} == own | {commit.id for commit in before}
    insert(context, {STAFF: staff(["one-more"])}, branch="hot")
    assert_healthy(context)
    delete_branch(context, "hot")
    assert_healthy(again(context))


# --- creation and migration -------------------------------------------------------------------------------------------


@lasting
def test_one_folder_initialised_by_several(tmp_path: Path, seconds: float) -> None:
    journal = Race(tmp_path, ["initialise"] * 3, seconds).run()

    created = Counter(entry["graph"] for entry in journal.entries if entry.get("created"))
    refused = [entry for entry in journal.entries if "error" in entry]
    assert {entry["error"] for entry in refused} == {"AlreadyInitialized"}
    graphs = sorted(path.name for path in tmp_path.glob("graph-*"))
    assert created == Counter(graphs), "each was created exactly once"
    for name in graphs[:20]:
        context = graph_at(tmp_path, name)
        open_for_writing(context)
        assert [commit.kind for commit in history(context.manifest)] == ["init"]
        assert_healthy(context)


@lasting
def test_old_graphs_migrated_by_several(tmp_path: Path, seconds: float) -> None:
    expected = {}
    for number in range(4 if seconds < 10 else 40):
        old = old_graph(str(tmp_path / f"graph-{number}"))
        old.commit(["ada"])
        old.create_branch("feature")
        old.commit(["eve"], branch="feature")
        expected[f"graph-{number}"] = old
    Race(tmp_path, ["migrate"] * 3, max(seconds, 20.0)).run()

    for name, old in expected.items():
        context = graph_at(tmp_path, name)
        assert (old.stamp(), old.stamp("feature")) == (CURRENT, CURRENT)
        assert history(context.manifest) == old.history["main"]
        listed = history(context.manifest, "feature")
        assert listed[3:] == old.history["feature"]
        assert [commit.parent for commit in listed] == [*(commit.id for commit in listed[1:]), None]
        assert ids(context, STAFF, "feature") == ["ada", "eve", "w0", "w1", "w2"]
        shutil.rmtree(tmp_path / name)
