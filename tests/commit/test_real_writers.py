"""The crash and fault suites with the real writers: every verb of a handle, killed or failing at every chance it offers.

Where a verb can die is not listed here: a run that nobody disturbs tells which failpoints it passes, and each passing is a case.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.staging_jobs import list_jobs
from omnigraph.errors import CommitStateUnknown, ManifestContention, RecoveryRequired
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.tables.commit import drop_fork
from tests import warm
from tests.commit.failing import WAYS, trials
from tests.commit.healthy import assert_healthy, published_locations
from tests.commit.real_writers import (
    ACTOR,
    BACKFILL,
    FEATURE,
    NEW,
    REWRITTEN,
    SILENT,
    SOURCE,
    VERBS,
    WRITES,
    branch_off,
    content,
    fill,
    graph_over,
)

PROJECT = Path(__file__).resolve().parents[2]
UNDECIDED = (CommitStateUnknown, RecoveryRequired)

#: From here on recovery finishes the write.
NO_WAY_BACK = ("post_confirm", "post_phase_b_pre_manifest_commit")
#: What runs by default: a merge and a load, in the windows between the first effect and the last.
SHORT = {("merge", "main"), ("load", FEATURE), ("schema-rows", FEATURE), ("merge-schema", "main")}
SHORT_WINDOWS = ("mid_phase_b", "post_confirm", "post_phase_b_pre_manifest_commit")
#: Verbs that make no sense at a place.
ELSEWHERE = {("schema", FEATURE), ("rebase", "main")}
PLACES = [(verb, place) for verb in VERBS for place in ("main", FEATURE) if (verb, place) not in ELSEWHERE]


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph to copy; without branches it may be."""
    place = tmp_path_factory.mktemp("real") / "graph"
    fill(str(place))
    return place


def copy(started: Path, target: Path, verb: str, branch: str) -> og.Graph:
    shutil.copytree(started, target)
    graph = og.open(target)
    if verb != "schema":
        branch_off(graph)
    if verb in ("merge-schema", "rebase"):
        graph.apply_schema(REWRITTEN, branch=SOURCE, backfill=BACKFILL)
    if verb == "revert" and branch == FEATURE:
        graph.mutate(WRITES, "hire", branch=FEATURE)
    return graph


def run(graph: og.Graph, verb: str, branch: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
    return warm.run(
        [sys.executable, "-m", "tests.commit.real_writers", graph.uri, verb, branch],
        cwd=PROJECT,
        env={**os.environ, "CRASH_AT": crash_at},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def undisturbed(
    started: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], tuple[list[str], dict[str, list[str]]]]:
    """What a verb passes and what it leads to when nobody disturbs it."""

    @cache
    def tell(verb: str, branch: str) -> tuple[list[str], dict[str, list[str]]]:
        graph = copy(started, tmp_path_factory.mktemp("undisturbed") / "graph", verb, branch)
        done = run(graph, verb, branch)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), content(og.open(graph.uri))

    return tell


# --- deaths -----------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("verb", "branch", "windows"),
    [
        *(pytest.param(*each, SHORT_WINDOWS, id="-".join([*each, "some"])) for each in sorted(SHORT)),
        *(pytest.param(*each, (), id="-".join(each), marks=pytest.mark.long) for each in PLACES),
    ],
)
def test_deaths(
    verb: str,
    branch: str,
    windows: tuple[str, ...],
    started: Path,
    undisturbed: Callable[[str, str], tuple[list[str], dict[str, list[str]]]],
    tmp_path: Path,
) -> None:
    """Killed at any failpoint, a verb is found done or undone as a whole, and can be asked for again."""
    trace, after = undisturbed(verb, branch)
    decided = min(at for at, name in enumerate(trace) if name.partition(":")[0].endswith(NO_WAY_BACK))
    first_effect = next(at for at, name in enumerate(trace) if name.startswith("table_commit.before_commit"))
    chosen = [at for at, name in enumerate(trace) if not windows or name.partition(":")[0].endswith(windows)]
    assert chosen
    for at in chosen:
        graph = copy(started, tmp_path / str(at), verb, branch)
        before = content(graph)
        done = run(graph, verb, branch, crash_at=trace[at])
        assert done.returncode == -signal.SIGKILL, f"it did not die at {trace[at]}: {done.stderr}"

        survivor = og.open(graph.uri)
        happened = made(survivor, verb, branch)
        if at < first_effect:
            assert not happened, trace[at]
        if at >= decided:
            assert happened, trace[at]
        assert content(survivor) == (after if happened else before), f"half of it is there after {trace[at]}"
        healthy(graph.uri)
        if not happened:
            VERBS[verb](survivor, branch)
            assert content(survivor) == after, f"it can not be repeated after {trace[at]}"
        survivor.mutate(WRITES, "fresh", branch=branch)
        healthy(graph.uri)
        shutil.rmtree(tmp_path / str(at))


def made(graph: og.Graph, verb: str, branch: str) -> bool:
    """Whether the commit of the verb is there; never twice."""
    place = NEW if verb == "ingest" else branch
    commits = graph.commits(place) if place in graph.branches() else []
    found = [
        commit for commit in commits if commit.kind != "recovery" and ACTOR in (commit.actor, commit.recovery_for_actor)
    ]
    assert len(found) <= 1
    return bool(found)


def healthy(uri: str) -> None:
    """Nothing is left over but what the record of a dead job accounts for."""
    context = connect(uri)
    for location in {location for job in list_jobs(context.store) for location in job.tables}:
        if location.branch is not None and location not in published_locations(context):
            drop_fork(context.tables, location)
    assert_healthy(connect(uri))


# --- faults -----------------------------------------------------------------------------------------------------------

#: Verbs whose calls to the store are made in this process.
LOCAL = [(verb, place) for verb, place in PLACES if verb != "spark-load"]
SHORT_FAULTS = {("merge", "main", "commit-loses-answer"), ("load", FEATURE, "commit-loses-answer")}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("verb", "branch", "way"),
    [
        pytest.param(
            *each, way, id="-".join([*each, way]), marks=() if (*each, way) in SHORT_FAULTS else pytest.mark.long
        )
        for each in LOCAL
        for way in WAYS
    ],
)
def test_faults(
    verb: str,
    branch: str,
    way: str,
    started: Path,
    undisturbed: Callable[[str, str], tuple[list[str], dict[str, list[str]]]],
    tmp_path: Path,
) -> None:
    """Whatever fails, the answer is true, nothing is half there, and the same handle writes again."""
    _, after = undisturbed(verb, branch)
    for trial in trials(way, tmp_path, lambda target: copy(started, target, verb, branch)):
        graph = graph_over(trial.context)
        before = content(graph)
        error = trial.run(VERBS[verb], graph, branch)
        graph.refresh()
        happened = made(graph, verb, branch)
        if not isinstance(error, UNDECIDED):
            assert happened == (error is None), f"{trial.fired}: {error!r} is not true"
        assert content(graph) == (after if happened else before), f"half of it is there: {trial.fired}, {error!r}"
        if not happened:
            repeated(graph, verb, branch)
            assert content(graph) == after
        graph.mutate(WRITES, "fresh", branch=branch)
        healthy(graph.uri)


def repeated(graph: og.Graph, verb: str, branch: str) -> None:
    """Ask again; what was just put right may have to be looked at anew once."""
    try:
        VERBS[verb](graph, branch)
    except (og.errors.ExpectedVersionMismatch, ManifestContention):
        VERBS[verb](graph, branch)


@pytest.mark.long
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_what_a_verb_shows(
    verb: str, started: Path, undisturbed: Callable[[str, str], tuple[list[str], dict[str, list[str]]]], tmp_path: Path
) -> None:
    """The comparisons above mean something: after a verb readers see something else, but after those that only maintain."""
    before = content(copy(started, tmp_path / "graph", verb, "main"))
    assert (undisturbed(verb, "main")[1] != before) == (verb not in SILENT)
