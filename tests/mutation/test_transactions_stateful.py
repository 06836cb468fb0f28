"""Random transactions against a plain model: every question inside one sees exactly what its queries have done so far."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import BadRequest, CommitStateUnknown, Conflict, OmnigraphError, RecoveryRequired, ValidationError
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_healthy
from tests.mutation.model import SCHEMA, Content, Refused, Statement, carry_out
from tests.mutation.test_stateful import DELETES, INSERTS, POPULATION, UPDATES, WRITE_FAULTS, shown

STATEMENTS = st.lists(INSERTS | UPDATES, min_size=1, max_size=3) | st.lists(DELETES, min_size=1, max_size=2)

#: The whole content of a graph as five questions: two scans, two traversals and a lookup by value.
ASKED = {
    "staff": "match { $s: Staff } return { $s.handle as a, $s.level as b, $s.badge as c }",
    "teams": "match { $t: Team } return { $t.code as a }",
    "notes": "match { $n: Note } return { $n.text as a }",
    "mentors": "match { $s: Staff $s $e: mentors $t } return { $s.handle as a, $t.handle as b }",
    "members": "match { $s: Staff $s $e: memberOf $t } return { $s.handle as a, $t.code as b }",
}


def source(statements: list[Statement]) -> str:
    return f"query q() {{ {' '.join(statement.text() for statement in statements)} }}"


def asked(transaction: og.Transaction) -> Content:
    """What a transaction shows, in the form of the model."""
    rows = {
        name: [tuple(row.values()) for row in transaction.query(f"query q() {{ {text} }}").rows]
        for name, text in ASKED.items()
    }
    assert len({row[0] for row in rows["staff"]}) == len(rows["staff"]), "two rows with one key"
    return Content(
        {row[0]: (row[1], row[2]) for row in rows["staff"]},
        {row[0] for row in rows["teams"]},
        Counter(row[0] for row in rows["notes"]),
        Counter((row[0], row[1]) for row in rows["mentors"]),
        Counter((row[0], row[1]) for row in rows["members"]),
    )


class Transactions(RuleBasedStateMachine):
    """A graph, its model, at most one transaction and the model of what that has done."""

    @initialize(indexed=st.booleans())
    def start(self, indexed: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="transactions-"))
        self.graph = og.init(self.folder / "g", SCHEMA)
        self.graph.mutate(source(POPULATION))
        if indexed:
            self.graph.optimize()
        self.model = carry_out(Content(), POPULATION).content
        self.transaction: og.Transaction | None = None
        self.inside = self.model
        #: Whether someone else has written since it began.
        self.disturbed = False

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            if self.transaction is not None:
                self.transaction.rollback()
            og.open(self.graph.uri)
            assert_healthy(connect(self.graph.uri))
        finally:
            shutil.rmtree(self.folder)

    # --- rules ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.transaction is None)
    @rule()
    def begin(self) -> None:
        self.transaction, self.inside, self.disturbed = self.graph.transaction(), self.model, False
        self.steps: list[list[Statement]] = []

    @precondition(lambda self: self.transaction is not None)
    @rule(statements=STATEMENTS)
    def mutate(self, statements: list[Statement]) -> None:
        assert self.transaction is not None
        try:
            outcome = carry_out(self.inside, statements)
        except Refused as refused:
            with pytest.raises(ValidationError, match="|".join(refused.rules)):
                self.transaction.mutate(source(statements))
            with pytest.raises(BadRequest, match="is over"):
                self.transaction.commit()
            self.transaction = None
            self._agree()
            return
        result = self.transaction.mutate(source(statements))
        assert (result.affected_nodes, result.affected_edges, result.commit) == (outcome.nodes, outcome.edges, None)
        assert sum(result.counts.values()) == outcome.nodes + outcome.edges
        self.inside = outcome.content
        self.steps.append(statements)
        self._agree()

    @precondition(lambda self: self.transaction is not None)
    @rule()
    def ask(self) -> None:
        assert self.transaction is not None
        assert asked(self.transaction) == self.inside

    @precondition(lambda self: self.transaction is not None)
    @rule(fault=st.none() | st.sampled_from(WRITE_FAULTS))
    def commit(self, fault: str | None) -> None:
        assert self.transaction is not None
        transaction, self.transaction = self.transaction, None
        try:
            if fault is None:
                result = transaction.commit()
            else:
                with failpoints.armed(fault):
                    result = transaction.commit()
        except (CommitStateUnknown, RecoveryRequired):
            assert fault is not None
            self.graph.refresh()
            found = shown(self.graph, "main")
            assert found == self.model or found == self._after_others()
            self.model = found
        except Conflict:
            assert self.disturbed or fault is not None
        except OmnigraphError:
            # Others may have taken away what it relied on; any other error comes from the fault.
            assert fault is not None or self.disturbed
        else:
            assert result.commit is None or result.commit == self.graph.head()
            self.model = self._after_others()
        self._agree()

    @precondition(lambda self: self.transaction is not None)
    @rule()
    def roll_back(self) -> None:
        assert self.transaction is not None
        self.transaction.rollback()
        self.transaction = None
        self._agree()

    @rule(statements=STATEMENTS)
    def write_outside(self, statements: list[Statement]) -> None:
        try:
            outcome = carry_out(self.model, statements)
        except Refused:
            return
        self.graph.mutate(source(statements))
        self.model = outcome.content
        self.disturbed |= outcome.changed
        self._agree()

    def _after_others(self) -> Content:
        """What the graph holds after the transaction: with others in between it counts as carried out after them."""
        content = self.model
        for statements in self.steps:
            content = carry_out(content, statements).content
        return content

    def _agree(self) -> None:
        assert shown(self.graph, "main") == self.model


def agree(runs: int) -> None:
    """So many graphs, each through so many steps."""
    run_state_machine_as_test(
        Transactions,
        settings=settings(
            max_examples=runs,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_transactions_and_model_agree() -> None:
    agree(60)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_transactions_and_model_agree_for_long() -> None:
    agree(5_000)
