"""Carries mutations out, from compiled queries to one commit: capture a base, run the statements, validate, stage, commit.

A write is one mutation, or the mutations of a transaction in order; each sees the changes of the ones before it.

An attempt whose base moved before its first effect has changed nothing. Inserts are then restarted. Updates too, if their rows
are as they were when first prepared: the same rows match, with the same values; and the read queries of a transaction must
give the same answers. Otherwise the conflict is reported, because the caller may have relied on the previous state. A delete
always reports it.

The loop itself is `commit.write_loop.carry_out`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commit_made, refuse_other_request
from omnigraph.commit.messages import new_lineage
from omnigraph.commit.model import Changed, Commit, ManifestState
from omnigraph.commit.protocol import Write
from omnigraph.commit.rows import Receipt
from omnigraph.commit.updates import HeadIs, RecordReceipt, SchemaIs, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out
from omnigraph.commit.writers import MUTATION
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, Conflict, OmnigraphError, ReadSetChanged
from omnigraph.ids import new_ulid
from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.language.query.ir import DeleteEdges, DeleteMatched, DeleteNodes, MutationPlan
from omnigraph.language.schema.catalog import Catalog
from omnigraph.mutation.base import Base
from omnigraph.mutation.constants import Constants
from omnigraph.mutation.copies import Copies, Overlay
from omnigraph.mutation.effects import stage
from omnigraph.mutation.embedding import TextVectors, embed_missing
from omnigraph.mutation.fingerprint import fingerprint_of_all
from omnigraph.mutation.refused import NotHeld
from omnigraph.mutation.staging import Pending, Staging
from omnigraph.mutation.statements import Affected, Rows, Run, first_difference
from omnigraph.query.caches import Caches
from omnigraph.query.limits import Budget, Limits
from omnigraph.query.run import Run as Reading
from omnigraph.query.scan.entities import View
from omnigraph.shown import Shown
from omnigraph.validation.rows import check_rows
from omnigraph.validation.sets import check_sets

failpoints.declare("mutation.prepared")

#: The most ids that a receipt holds.
MOST_IDS = 1000


@dataclass(frozen=True, slots=True)
class MutationResult(Shown):
    """What a mutation did. `commit`: None when it changed nothing, and for a mutation inside a transaction.

    `ids`: the ids of the nodes and edges that were written or deleted, the first 1,000 of them. `counts`: how many
    nodes and edges were affected, by type.
    """

    affected_nodes: int
    affected_edges: int
    commit: Commit | None
    ids: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {**asdict(self), "ids": list(self.ids)}


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters of a write, besides its mutations."""

    catalog: Catalog
    branch: str
    embedder: Embedder
    #: The schema under which the queries were compiled.
    requires: SchemaIs
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    #: The state that the caller has read: rows that the write changes, or its updates match, must not have changed since.
    since: ManifestState | None = None
    #: The allowed URI prefixes of external blob values.
    external_blobs: tuple[str, ...] = ()


class FreshIds:
    """Ids generated for rows without a key; a restarted attempt gives the same rows the same ids."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def maker(self) -> Callable[[], str]:
        """A function that returns these ids in order, from the first."""
        given = iter(range(len(self._made)))

        def make() -> str:
            place = next(given, None)
            if place is not None:
                return self._made[place]
            self._made.append(new_ulid())
            return self._made[-1]

        return make


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mutation of a write, with its time in milliseconds since the epoch."""

    compiled: CompiledQuery
    params: Mapping[str, TypedValue]
    now: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    fresh: FreshIds = field(default_factory=FreshIds)

    @property
    def plan(self) -> MutationPlan:
        plan = self.compiled.rewritten
        if not isinstance(plan, MutationPlan):
            raise BadRequest(f"{self.compiled.query.title} is a read query; run it with query, not with mutate")
        return plan

    @property
    def deletes(self) -> bool:
        """Whether it deletes; a mutation either deletes, or inserts and updates."""
        return any(
            isinstance(statement, DeleteNodes | DeleteEdges | DeleteMatched) for statement in self.plan.statements
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """A read query of a transaction, with its answer."""

    ask: Callable[[View], pa.Table]
    found: pa.Table


Step = Mutation | Asked


class Work(Writing[MutationResult]):
    """One write over all of its attempts; `steps` are carried out in order."""

    writer = MUTATION

    def __init__(self, context: CommitContext, request: Request, steps: Sequence[Step]) -> None:
        self.context = context
        self.request = request
        self.steps = steps
        self.branch, self.requires = request.branch, request.requires
        self.if_commit, self.idempotency_key = request.if_commit, request.idempotency_key
        self.lineage = new_lineage(self.writer.commit_kind, request.actor, request.message)
        self.vectors = TextVectors(request.embedder)
        self.copies = Copies(context, request.branch)
        #: A first attempt that has carried the steps out already, as in a transaction; else None.
        self._first: Attempt | None = None
        #: By step, from the first attempt: the rows that updates matched, and with `since` also the rows that were written.
        self._expected: list[Rows] = []
        #: The conflict of the previous attempt, which is raised if those rows have changed.
        self._lost: Conflict | None = None

    def write(self, first: Attempt | None = None) -> MutationResult:
        """Make the commit. `first`: an attempt that has carried the steps out; None: carry them out here."""
        self._first = first
        return carry_out(self)

    def met(self, place: int, found: Rows) -> None:
        """Record the rows of a step in the first attempt; raise the conflict if a later attempt finds different rows."""
        if place == len(self._expected):
            self._expected.append(found)
            return
        changed = first_difference(self._expected[place], found)
        if changed is not None:
            raise self._changed(changed)

    def _changed(self, type_key: str) -> Conflict:
        if self._lost is None:
            self._lost = ReadSetChanged(
                f"rows of {type_key} that this write is about have changed since they were read; read them again and "
                "repeat the write",
                table_key=type_key,
            )
        return self._lost

    # --- called by the loop -----------------------------------------------------------------------------------------

    def capture(self) -> ManifestState:
        return super().capture() if self._first is None else self._first.base.state

    def prepare(self, state: ManifestState) -> Prepared[MutationResult]:
        attempt = self._first or self.carry_out_on(Attempt(self, state))
        staged = (stage(self.context, settled, attempt.base) for settled in attempt.base.settled)
        effects = tuple(effect for effect in staged if effect is not None)
        result = attempt.result()
        if not effects:
            return Prepared(None, lambda _: result)
        key = self.idempotency_key
        write = Write(
            kind=self.writer.kind,
            branch=self.branch,
            lineage=replace(self.lineage, changed=Changed(result.affected_nodes, result.affected_edges)),
            effects=effects,
            reads=attempt.base.read_only({effect.entry.key for effect in effects}),
            updates=() if key is None else (self.receipt(key, result, self.lineage.id),),
            requires=self.request.requires,
            if_commit=self.if_commit,
        )
        failpoints.hit("mutation.prepared")
        return Prepared(write, lambda after: replace(result, commit=self._commit_in(after)))

    def carry_out_on(self, attempt: Attempt) -> Attempt:
        """Carry the steps out; raises the conflict if updates match different rows, or queries answer differently."""
        for step in self.steps:
            if isinstance(step, Mutation):
                attempt.carry_out(step)
            elif not step.ask(attempt.view()).equals(step.found):
                raise self._changed(", ".join(attempt.base.touched()))
        return attempt

    def _commit_in(self, after: ManifestState | None) -> Commit | None:
        return None if after is None else commit_made(self.context, after, self.branch, self.lineage.id)

    def may_restart(self, conflict: OmnigraphError) -> bool:
        deletes = any(isinstance(step, Mutation) and step.deletes for step in self.steps)
        return super().may_restart(conflict) and conflict is not self._lost and not deletes

    def lost(self, conflict: OmnigraphError) -> None:
        assert isinstance(conflict, Conflict), "a mutation restarts on conflicts only"
        self._first, self._lost = None, conflict

    def check(self, state: ManifestState) -> None:
        """Raise unless the branch has the required schema and head."""
        check([self.request.requires], state)
        if self.if_commit is not None:
            check([HeadIs(self.if_commit)], state)

    # --- exactly once -----------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """The fingerprint of the request, to tell a repeat from a different request under one idempotency key."""
        mutations = [(step.plan, step.params) for step in self.steps if isinstance(step, Mutation)]
        return fingerprint_of_all(mutations, self.request.branch, self.request.if_commit)

    def receipt(self, key: str, result: MutationResult, commit_id: str) -> RecordReceipt:
        """The receipt to store under an idempotency key: the request, and the answer without the commit's own fields."""
        answer = {name: value for name, value in result.to_dict().items() if name != "commit"}
        answer["commit"] = commit_id
        return RecordReceipt(key, self.fingerprint(), answer)

    def repeated(self, known: Receipt) -> MutationResult:
        """The answer of the first call, rebuilt from its receipt."""
        request, receipt = self.request, known.receipt
        refuse_other_request(known, self.fingerprint(), request.branch, request.idempotency_key)
        commit = self.context.manifest.find_commit(request.branch, known.commit_id)
        # Receipts of earlier releases have neither ids nor counts.
        ids, counts = tuple(receipt.get("ids", ())), receipt.get("counts", {})
        return MutationResult(receipt["affected_nodes"], receipt["affected_edges"], commit, ids, counts)


class Attempt:
    """The mutations of a write carried out on one captured state of the branch; nothing of it is durable.

    `judges`: whether the result must satisfy the rules; False when only the matched rows are needed.
    """

    def __init__(self, work: Work, state: ManifestState, *, judges: bool = True, base: Base | None = None) -> None:
        self.base = base or Base(work.context, state)
        self._work = work
        self._judges = judges
        self._steps = 0
        self._affected = Affected()
        self._ids: dict[str, None] = {}
        #: The pending changes of all mutations, in order.
        self.pending: list[Pending] = []

    def carry_out(self, mutation: Mutation) -> MutationResult:
        """Carry out one more mutation; after an error the attempt is unusable."""
        run = self.run(mutation)
        self._work.met(self._steps, run.rows(written=self._work.request.since is not None))
        self._steps += 1
        if self._judges:
            self.judge(run)
        return self.settle(run)

    def run(self, mutation: Mutation) -> Run:
        """Carry out the statements of one more mutation; later mutations do not see it before it is settled."""
        request, constants = self._work.request, Constants(mutation.params, mutation.now)
        budget = Budget(Limits())
        reading = Reading(self.base, request.catalog, mutation.params, constants.now, Caches(), _no_search, budget)
        staging = Staging(request.catalog, mutation.fresh.maker())
        copies = self._work.copies
        run = Run(request.catalog, self.base, constants, staging, Affected(), reading, copies, request.external_blobs)
        plan, body = mutation.plan, mutation.compiled.query.body
        assert isinstance(body, ast.Mutation), "a plan of statements is made of statements"
        for statement, written in zip(plan.statements, body.statements, strict=True):
            try:
                run.carry_out(statement)
            except NotHeld as refused:
                raise refused.at(written, mutation.compiled.source) from None
        return run

    def judge(self, run: Run) -> None:
        """Complete what a mutation has staged, and raise for the first rule that it breaks."""
        embed_missing(run.staging, self._work.vectors)
        _validate(run)

    def settle(self, run: Run) -> MutationResult:
        """Make the staged changes of a mutation visible to later mutations."""
        for pending in run.staging:
            self.base.settled.add(pending)
            self.pending.append(pending)
        result = result_of(run)
        self._affected.add(run.affected)
        if len(self._ids) < MOST_IDS:
            self._ids.update(dict.fromkeys(result.ids))
        return result

    def view(self) -> View:
        """The state after all mutations so far, for a query."""
        return Overlay(self.base, self._work.copies, self.base.settled)

    def result(self) -> MutationResult:
        """The combined result of all mutations."""
        affected = self._affected
        ids = tuple(self._ids)[:MOST_IDS]
        return MutationResult(affected.nodes, affected.edges, None, ids, dict(affected.counts))


def _no_search(text: str, dimension: int, model: str | None) -> tuple[float, ...]:
    raise BadRequest("a mutation does not embed texts to search with; give `nearest` a vector")


def result_of(run: Run) -> MutationResult:
    """The result of one mutation."""
    return MutationResult(run.affected.nodes, run.affected.edges, None, _ids_of(run.staging), dict(run.affected.counts))


def _ids_of(staging: Staging) -> tuple[str, ...]:
    """The first ids that a query writes or removes."""
    ids: dict[str, None] = {}
    for pending in staging:
        for table in (pending.image(), pending.removed()):
            ids.update(dict.fromkeys(table["id"].slice(0, MOST_IDS).to_pylist()))
    return tuple(ids)[:MOST_IDS]


def _validate(run: Run) -> None:
    """Check the final image after a query; raises for the first broken rule."""
    changes = run.staging.changes()
    for change in changes.values():
        for violation in check_rows(change.entity, change.upserts):
            raise violation.to_error()
    for violation in check_sets(changes, run.base):
        raise violation.to_error()
