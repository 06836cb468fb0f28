"""A transaction: mutations and read queries on one captured state, each seeing the earlier ones; then one commit."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of
from omnigraph.commit.model import ManifestState
from omnigraph.commit.write_loop import effect_window
from omnigraph.errors import ExpectedVersionMismatch, HistoricalVersionReclaimed, NotFound, ReadSetChanged
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.mutation.base import Base
from omnigraph.mutation.execute import Asked, Attempt, Mutation, MutationResult, Request, Step, Work
from omnigraph.mutation.together import Judged, Member, can_join, join, judged
from omnigraph.query.result import Result
from omnigraph.query.scan.entities import View

failpoints.declare("transaction.between_queries")


class Transaction:
    """The steps so far, and the first attempt at them. Nothing is durable before `commit`."""

    def __init__(self, context: CommitContext, request: Request) -> None:
        self._steps: list[Step] = []
        self._work = Work(context, request, self._steps)
        # Heal what a dead writer left now, so that it causes no conflict later.
        with effect_window(context, request.branch, lost_before=False):
            state = self._first_state()
        self._attempt = Attempt(self._work, state)
        # A transaction that is never closed leaves nothing behind either.
        weakref.finalize(self, self._work.copies.close)

    def _first_state(self) -> ManifestState:
        """The branch now, or as the caller has read it; for a repeated request, before the first call's commit."""
        context, request = self._work.context, self._work.request
        known = self._work.earlier()
        if known is not None:
            commit = context.manifest.find_commit(request.branch, known.commit_id)
            if commit is not None and commit.parent is not None:
                try:
                    return state_of(context.manifest, context.manifest.commit_near(commit.parent, request.branch))
                except (HistoricalVersionReclaimed, NotFound):
                    pass
        state = request.since or context.manifest.load(request.branch)
        if known is None:
            self._work.check(state)
        return state

    def mutate(self, compiled: CompiledQuery, params: Mapping[str, TypedValue]) -> MutationResult:
        """Carry out one more mutation. After an error the transaction can only be closed."""
        mutation = Mutation(compiled, params)
        result = self._attempt.carry_out(mutation)
        self._steps.append(mutation)
        failpoints.hit("transaction.between_queries")
        return result

    def query(self, ask: Callable[[View], Result]) -> Result:
        """Run a query on the state so far. `ask` is called again when the transaction is restarted."""
        result = ask(self._attempt.view())
        self._steps.append(Asked(lambda view: ask(view).to_arrow(), result.to_arrow()))
        return result

    def commit(self) -> MutationResult:
        """Make the commit, or none if nothing changed. `ReadSetChanged` if other writers changed what it read or wrote."""
        member = _TransactionMember(self._work, self._attempt)
        try:
            return join(member) if self._can_join() else member.alone()
        except ExpectedVersionMismatch as moved:
            raise ReadSetChanged(
                f"{moved.table_key} has changed since this transaction read or wrote it, and nothing of it was written; begin "
                "it again",
                table_key=moved.table_key,
            ) from moved

    def _can_join(self) -> bool:
        """Whether it may join a group: each step is quick to judge, and has the same meaning behind other writes.

        A query may take long. Deletes, and writes since a state that the caller has read, must report changes in between.
        """
        request = self._work.request
        if request.since is not None or not self._steps:
            return False
        return all(
            isinstance(step, Mutation) and not step.deletes and can_join(step.plan, request.catalog)
            for step in self._steps
        )

    def close(self) -> None:
        """Remove its temporary files."""
        self._work.copies.close()


class _TransactionMember(Member[MutationResult]):
    """A transaction in the queue of its branch. In a group it is carried out again, after the earlier writes."""

    def __init__(self, work: Work, first: Attempt) -> None:
        self.writing: Work = work
        self._first = first

    def judge(self, base: Base) -> Judged[MutationResult]:
        before = base.settled
        # Its steps see each other; other writes see them only once it is admitted.
        base.settled = before.copy()
        try:
            attempt = self.writing.carry_out_on(Attempt(self.writing, base.state, base=base))
        finally:
            base.settled = before
        return judged(self.writing, attempt.pending, attempt.result())

    def alone(self) -> MutationResult:
        return self.writing.write(self._first)
