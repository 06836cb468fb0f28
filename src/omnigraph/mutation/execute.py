"""A mutation from its compiled query to its commit: capture a base, run the statements, validate, stage, commit.

An attempt whose base moved before its first effect has done nothing. Inserts then start over. So does an update whose rows
are still what they were when it was first prepared: the same rows match, with the same values. Otherwise the update reports
the conflict, because the caller may have meant the rows as they were. A delete always reports it.

A first attempt is prepared while others write. One that follows a lost attempt, or finds a writer at work or dead, is
prepared inside the effect window of the branch, where nothing moves: nobody loses again and again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commit_made, earlier_receipt, refuse_other_request
from omnigraph.commit.model import Commit, Lineage, ManifestState
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.rows import Receipt
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import HeadIs, RecordReceipt, SchemaIs, check
from omnigraph.commit.window import WRITE_RESTART_BUDGET, effect_window
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, Conflict, ExpectedVersionMismatch, ReadSetChanged
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.language.query.ir import DeleteEdges, DeleteNodes, MutationPlan
from omnigraph.language.schema.catalog import Catalog
from omnigraph.mutation.base import Base
from omnigraph.mutation.constants import Constants
from omnigraph.mutation.effects import stage
from omnigraph.mutation.embedding import TextVectors, embed_missing
from omnigraph.mutation.fingerprint import fingerprint
from omnigraph.mutation.staging import Staging
from omnigraph.mutation.statements import Affected, Rows, Run, first_difference
from omnigraph.query.caches import Caches
from omnigraph.query.limits import Budget, Limits
from omnigraph.query.run import Run as Reading
from omnigraph.storage.locks import HeldLock
from omnigraph.validation.rows import check_rows
from omnigraph.validation.sets import check_sets

failpoints.declare("mutation.prepared")


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did; `commit` is None when it changed nothing."""

    affected_nodes: int
    affected_edges: int
    commit: Commit | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a mutation."""

    compiled: CompiledQuery
    catalog: Catalog
    params: Mapping[str, TypedValue]
    branch: str
    embedder: Embedder
    #: The schema that the query was compiled under.
    requires: SchemaIs
    actor: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    #: The state that the caller has read: what the mutation writes or its updates match must not have changed since.
    since: ManifestState | None = None
    #: URI prefixes that external blob values may have.
    external_blobs: tuple[str, ...] = ()

    @property
    def plan(self) -> MutationPlan:
        plan = self.compiled.rewritten
        if not isinstance(plan, MutationPlan):
            raise BadRequest(f"'{self.compiled.query.name}' is a read query; run it with query, not with mutate")
        return plan

    @property
    def deletes(self) -> bool:
        """Whether it deletes; a mutation either deletes or inserts and updates."""
        return any(isinstance(statement, DeleteNodes | DeleteEdges) for statement in self.plan.statements)

    def fingerprint(self) -> str:
        """What was asked, to tell a repeated request from another one under the same idempotency key."""
        return fingerprint(self.plan, self.params, self.branch, self.if_commit)


def mutate(context: CommitContext, request: Request) -> MutationResult:
    """Carry a mutation out as one commit; none when it changes nothing."""
    lineage = Lineage(new_ulid(), now_micros(), "mutation", request.actor)
    constants = Constants(request.params, now=time.time_ns() // 1_000_000)
    vectors = TextVectors(request.embedder)
    expected = _since(context, request, constants)
    restarts = 0
    while True:
        try:
            with effect_window(context, request.branch, lost_before=restarts > 0) as held:
                return _attempt(context, request, lineage, constants, vectors, held, expected)
        except Conflict as conflict:
            # What came in between may have been an earlier sending of this very request.
            known = earlier_receipt(context, request.branch, request.idempotency_key)
            if known is not None:
                return _repeated(context, request, known)
            if not _may_restart(request, expected, conflict) or restarts == WRITE_RESTART_BUDGET:
                raise
            expected.lost = conflict
            restarts += 1


@dataclass
class _Expected:
    """The rows that an attempt must find again: those of the caller's state, or of the first attempt.

    `lost`: the conflict of the attempt before, which is what the caller is told when they have changed.
    """

    rows: Rows | None = None
    lost: Conflict | None = None

    def met_by(self, found: Rows) -> None:
        """Take the first rows as expected; raise the conflict when later ones differ from them."""
        if self.rows is None:
            self.rows = found
            return
        changed = first_difference(self.rows, found)
        if changed is None:
            return
        if self.lost is None:
            self.lost = ReadSetChanged(
                f"rows of {changed} that this write is about have changed since they were read; read them again and "
                "repeat the write",
                table_key=changed,
            )
        raise self.lost


def _since(context: CommitContext, request: Request, constants: Constants) -> _Expected:
    """The rows of the state that the caller has read, where there is one."""
    if request.since is None:
        return _Expected()
    check([request.requires], request.since)
    return _Expected(_run(context, request.since, request, constants).rows(written=True))


def _may_restart(request: Request, expected: _Expected, conflict: Conflict) -> bool:
    if conflict is expected.lost or request.if_commit is not None or request.deletes:
        return False
    return isinstance(conflict, ReadSetChanged | ExpectedVersionMismatch)


def _attempt(
    context: CommitContext,
    request: Request,
    lineage: Lineage,
    constants: Constants,
    vectors: TextVectors,
    held: HeldLock | None,
    expected: _Expected,
) -> MutationResult:
    state = context.manifest.load(request.branch)
    known = earlier_receipt(context, request.branch, request.idempotency_key)
    if known is not None:
        return _repeated(context, request, known)
    check([request.requires], state)
    if request.if_commit is not None:
        check([HeadIs(request.if_commit)], state)
    run = _run(context, state, request, constants)
    expected.met_by(run.rows(written=request.since is not None))
    if not list(run.staging):
        return MutationResult(run.affected.nodes, run.affected.edges, None)
    embed_missing(run.staging, vectors)
    _validate(run)
    write = _write(context, request, lineage, run)
    failpoints.hit("mutation.prepared")
    after = execute(context, write, held)
    commit = commit_made(context, after, request.branch, lineage.id)
    return MutationResult(run.affected.nodes, run.affected.edges, commit)


def _no_search(text: str, dimension: int, model: str | None) -> tuple[float, ...]:
    raise AssertionError("a mutation's expressions hold no search")


def _run(context: CommitContext, state: ManifestState, request: Request, constants: Constants) -> Run:
    base = Base(context, state)
    reading = Reading(base, request.catalog, request.params, constants.now, Caches(), _no_search, Budget(Limits()))
    run = Run(request.catalog, base, constants, Staging(request.catalog), Affected(), reading, request.external_blobs)
    for statement in request.plan.statements:
        run.carry_out(statement)
    return run


def _validate(run: Run) -> None:
    """Judge the final image; the first broken rule is the error."""
    changes = run.staging.changes()
    for change in changes.values():
        for violation in check_rows(change.entity, change.upserts):
            raise violation.to_error()
    for violation in check_sets(changes, run.base):
        raise violation.to_error()


def _write(context: CommitContext, request: Request, lineage: Lineage, run: Run) -> Write:
    effects = tuple(stage(context, pending, run.base) for pending in run.staging)
    receipt = {"affected_nodes": run.affected.nodes, "affected_edges": run.affected.edges, "commit": lineage.id}
    key = request.idempotency_key
    return Write(
        kind=Kind.MUTATION,
        branch=request.branch,
        lineage=lineage,
        effects=effects,
        reads=run.base.read_only({effect.entry.key for effect in effects}),
        updates=() if key is None else (RecordReceipt(key, request.fingerprint(), receipt),),
        requires=request.requires,
        if_commit=request.if_commit,
    )


# --- exactly once -----------------------------------------------------------------------------------------------------


def _repeated(context: CommitContext, request: Request, known: Receipt) -> MutationResult:
    """The answer to the first call, for a repeat of it."""
    refuse_other_request(known, request.fingerprint(), request.branch, request.idempotency_key)
    commit = context.manifest.find_commit(request.branch, known.commit_id)
    return MutationResult(known.receipt["affected_nodes"], known.receipt["affected_edges"], commit)
