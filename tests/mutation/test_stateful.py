"""Random mutations, branches, reopens and faults, against a plain model: graph and model agree after every step."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import CommitStateUnknown, OmnigraphError, RecoveryRequired, ValidationError
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_healthy
from tests.mutation.model import SCHEMA, Content, Delete, Insert, Refused, Statement, Update, carry_out

HANDLES = st.sampled_from(["ada", "ben", "cleo"])
TEAMS = st.sampled_from(["core", "labs"])
TEXTS = st.sampled_from(["x", "y"])
#: One more than the schema allows, so that some are refused.
LEVELS = st.integers(0, 10)
BADGES = st.integers(1, 3)
BRANCHES = ["feature", "experiment", "third"]

INSERTS = st.one_of(
    st.builds(lambda *values: Insert("Staff", values), HANDLES, st.none() | LEVELS, st.none() | BADGES),
    st.builds(lambda code: Insert("Team", (code,)), TEAMS),
    st.builds(lambda text: Insert("Note", (text,)), TEXTS),
    st.builds(lambda *ends: Insert("Mentors", ends), HANDLES, HANDLES),
    st.builds(lambda *ends: Insert("MemberOf", ends), HANDLES, TEAMS),
)
UPDATES = st.one_of(
    st.builds(Update, st.just("level"), LEVELS, HANDLES),
    st.builds(Update, st.just("badge"), BADGES, HANDLES),
    st.builds(Update, st.just("level"), LEVELS, st.none(), LEVELS),
)
DELETES = st.one_of(
    st.builds(Delete, st.just("Staff"), st.just("handle"), HANDLES),
    st.builds(Delete, st.just("Team"), st.just("code"), TEAMS),
    st.builds(Delete, st.just("Note"), st.just("text"), TEXTS),
    st.builds(Delete, st.just("Mentors"), st.sampled_from(["from", "to"]), HANDLES),
    st.builds(Delete, st.just("MemberOf"), st.just("from"), HANDLES),
)
STATEMENTS = st.lists(INSERTS | UPDATES, min_size=1, max_size=5) | st.lists(DELETES, min_size=1, max_size=3)

POPULATION: list[Statement] = [
    *(Insert("Staff", (handle, 5, badge)) for badge, handle in enumerate(("ada", "ben"), start=1)),
    Insert("Staff", ("cleo", None, None)),
    Insert("Team", ("core",)),
    Insert("Note", ("x",)),
    *(Insert("Mentors", pair) for pair in (("ada", "ben"), ("ben", "cleo"), ("cleo", "cleo"))),
    Insert("MemberOf", ("ada", "core")),
]

WRITE_FAULTS = [
    "mutation.prepared",
    "mutation.pre_phase_a",
    "recovery.sidecar_write",
    "mutation.post_phase_a",
    "table_commit.before_commit",
    "table_commit.lost_acknowledgement",
    "mutation.mid_phase_b",
    "mutation.post_phase_b_pre_manifest_commit",
    "publisher.load_contention",
    "publisher.before_commit",
    "publisher.after_commit",
    "mutation.post_phase_c",
    "recovery.sidecar_delete",
    "recovery.sidecar_list",
]
RECOVERY_FAULTS = [
    "undo.before_commit",
    "recovery.before_undo",
    "recovery.after_undo",
    "recovery.after_roll_back",
    "recovery.before_roll_forward",
    "recovery.after_roll_forward",
    "recovery.before_audit",
    "recovery.record_audit",
    "recovery.after_audit",
]
FAULTS = st.tuples(st.sampled_from(WRITE_FAULTS), st.none() | st.sampled_from(RECOVERY_FAULTS))


class Twins(RuleBasedStateMachine):
    """A graph on disk and its model. Every rule does the same to both."""

    @initialize(statements=st.lists(INSERTS, max_size=4))
    def start(self, statements: list[Statement]) -> None:
        """A graph that is populated, so that most steps find something to do."""
        self.folder = Path(tempfile.mkdtemp(prefix="twins-"))
        self.graph = og.init(self.folder / "g", SCHEMA)
        self.model: dict[str, Content] = {"main": Content()}
        self.parent: dict[str, str] = {}
        #: Commits whose state can still be looked at, with what they led to.
        self.known: list[tuple[str, str, Content]] = []
        self._write("main", POPULATION, ())
        self._write("main", statements, ())

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            # A record that could not be removed is left for whoever comes next.
            og.open(self.graph.uri)
            assert_healthy(connect(self.graph.uri))
        finally:
            shutil.rmtree(self.folder)

    # --- rules ------------------------------------------------------------------------------------------------------

    @rule(place=st.integers(0, 3), statements=STATEMENTS)
    def mutate(self, place: int, statements: list[Statement]) -> None:
        self._write(self._branch(place), statements, ())

    @rule(place=st.integers(0, 3), statements=STATEMENTS, faults=FAULTS)
    def mutate_with_a_fault(self, place: int, statements: list[Statement], faults: tuple[str, str | None]) -> None:
        self._write(self._branch(place), statements, tuple(name for name in faults if name is not None))

    @precondition(lambda self: len(self.model) <= len(BRANCHES))
    @rule(place=st.integers(0, 3))
    def create_branch(self, place: int) -> None:
        base = self._branch(place)
        name = next(name for name in BRANCHES if name not in self.model)
        self.graph.create_branch(name, base)
        self.model[name] = deepcopy(self.model[base])
        self.parent[name] = base
        self._agree()

    @precondition(lambda self: len(self.model) > 1)
    @rule(place=st.integers(0, 2))
    def delete_branch(self, place: int) -> None:
        name = sorted(self.parent)[place % len(self.parent)]
        if name in self.parent.values():
            with pytest.raises(OmnigraphError, match="depends on it"):
                self.graph.delete_branch(name)
        else:
            self.graph.delete_branch(name)
            del self.model[name], self.parent[name]
            self.known = [entry for entry in self.known if entry[0] != name]
        self._agree()

    @rule()
    def reopen(self) -> None:
        self.graph = og.open(self.graph.uri)
        self._agree()

    @precondition(lambda self: self.known)
    @rule(number=st.integers(0))
    def look_back(self, number: int) -> None:
        branch, commit, content = self.known[number % len(self.known)]
        assert shown(self.graph, branch, commit) == content

    # --- both sides -------------------------------------------------------------------------------------------------

    def _branch(self, place: int) -> str:
        return sorted(self.model)[place % len(self.model)]

    def _write(self, branch: str, statements: list[Statement], faults: tuple[str, ...]) -> None:
        if not statements:
            return
        source = f"query q() {{ {' '.join(statement.text() for statement in statements)} }}"
        before, head = self.model[branch], self.graph.head(branch).id
        try:
            outcome = carry_out(before, statements)
        except Refused as refused:
            with pytest.raises(ValidationError, match="|".join(refused.rules)):
                self.graph.mutate(source, branch=branch)
            assert self.graph.head(branch).id == head
            self._agree()
            return
        try:
            with ExitStack() as stack:
                for fault in faults:
                    stack.enter_context(failpoints.armed(fault))
                result = self.graph.mutate(source, branch=branch)
        except (CommitStateUnknown, RecoveryRequired):
            # Finished or undone as a whole, by whoever comes next.
            assert faults
            self.graph.refresh()
            after = shown(self.graph, branch)
            assert after in (before, outcome.content)
            self.model[branch] = after
        except OmnigraphError:
            # Any other error says that nothing happened.
            assert faults
        else:
            assert (result.affected_nodes, result.affected_edges) == (outcome.nodes, outcome.edges)
            assert (result.commit is not None) == outcome.changed
            self.model[branch] = outcome.content
            if result.commit is not None:
                assert self.graph.head(branch) == result.commit
                self.known.append((branch, result.commit.id, outcome.content))
        self._agree()

    def _agree(self) -> None:
        assert set(self.graph.branches()) == set(self.model)
        for branch, content in self.model.items():
            assert shown(self.graph, branch) == content, branch


def shown(graph: og.Graph, branch: str, at: str | None = None) -> Content:
    """What a graph holds, in the form of the model."""
    snapshot = graph.snapshot(branch, at)
    staff, teams, notes, mentors, members = (
        snapshot.open(key).read().to_pylist()
        for key in ("node:Staff", "node:Team", "node:Note", "edge:Mentors", "edge:MemberOf")
    )
    assert len({row["id"] for row in staff}) == len(staff), "two rows with one id"
    return Content(
        {row["handle"]: (row["level"], row["badge"]) for row in staff},
        {row["code"] for row in teams},
        Counter(row["text"] for row in notes),
        Counter((row["src"], row["dst"]) for row in mentors),
        Counter((row["src"], row["dst"]) for row in members),
    )


def agree(runs: int) -> None:
    """So many graphs, each through so many steps."""
    run_state_machine_as_test(
        Twins,
        settings=settings(
            max_examples=runs,
            stateful_step_count=10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_graph_and_model_agree() -> None:
    agree(60)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_graph_and_model_agree_for_long() -> None:
    agree(5_000)
