"""From a request to its commit: capture, plan, stage, commit; start over when the target has moved.

A first attempt is prepared while others write. One that follows a lost attempt is prepared inside the effect window of the
target, where nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from omnigraph import failpoints
from omnigraph.commit.branch_refs import is_name
from omnigraph.commit.config import ENTITY_LEVEL
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commit_made, earlier_receipt, refuse_other_request
from omnigraph.commit.history import lacking
from omnigraph.commit.manifest import branch_not_found
from omnigraph.commit.messages import changed_of, new_lineage
from omnigraph.commit.model import Changed, Lineage, ManifestState
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.rows import Receipt
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import ImportCommits, RecordReceipt, Update, check
from omnigraph.commit.window import WRITE_RESTART_BUDGET, effect_window
from omnigraph.errors import (
    BadRequest,
    Conflict,
    ExpectedVersionMismatch,
    HistoricalVersionReclaimed,
    MergeConflicts,
    PreconditionFailed,
    ReadSetChanged,
    StorageError,
)
from omnigraph.evolution.apply import keep_replaced
from omnigraph.merge.ancestry import ALREADY_UP_TO_DATE, MERGED, REBASED, relate
from omnigraph.merge.effects import stage
from omnigraph.merge.options import Options
from omnigraph.merge.plan import Plan, make_plan
from omnigraph.merge.result import CONFLICTS, LISTED_DECISIONS, Decision, MergeResult
from omnigraph.merge.schemas import Schemas
from omnigraph.merge.states import Sides, readable_base, readable_pairs
from omnigraph.storage.locks import HeldLock
from omnigraph.storage.objects import at_once

failpoints.declare("branch_merge.prepared")

#: How many conflicts the message of the error names.
NAMED_CONFLICTS = 3
_OPERATIONS = ("inserted", "updated", "deleted")


@dataclass(frozen=True)
class Prepared:
    """What an attempt is going to publish; without a plan there is nothing to do."""

    outcome: str
    plan: Plan | None = None
    merged_parent: str | None = None
    updates: tuple[Update, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One call: how its commit is called, where it goes, and how an attempt at it is prepared from the target's state."""

    kind: str
    branch: str
    #: The request in words, for messages.
    words: str
    options: Options
    fingerprint: str
    prepare: Callable[[ManifestState], Prepared]
    #: What its commit says where the caller has given no message.
    message: str | None = None


def merge(context: CommitContext, schemas: Schemas, source: str, into: str, options: Options) -> MergeResult:
    """Merge the head of one branch into another."""
    refuse_itself(source, into)
    for name in (source, into):
        if not is_name(name):
            raise branch_not_found(name)
    words = f"merge of '{source}' into '{into}'"
    fingerprint = options.fingerprint("merge", source, into)
    prepare = partial(_prepare, context, schemas, source, options)
    try:
        return run(context, Request("merge", into, words, options, fingerprint, prepare, f"Merge {source} into {into}"))
    except (StorageError, HistoricalVersionReclaimed):
        # Was the source deleted while it was read? Then that is the answer.
        context.manifest.load(source)
        raise


def rebase(context: CommitContext, schemas: Schemas, branch: str, onto: str, options: Options) -> MergeResult:
    """Bring a branch up to the head of another one: what that has, with the branch's own net change on top, in one commit.

    The commit is made on the branch, with the head of the other one as its merged parent. That head is then the base of a later
    merge of the branch, so that such a merge brings the branch's own change and nothing else.
    """
    refuse_itself(branch, onto, "rebase needs a branch and another one to bring it up to")
    for name in (branch, onto):
        if not is_name(name):
            raise branch_not_found(name)

    def prepare(ours: ManifestState) -> Prepared:
        prepared = _prepare(context, schemas, onto, options, ours)
        return replace(prepared, outcome=REBASED) if prepared.outcome == MERGED else prepared

    words = f"rebase of '{branch}' onto '{onto}'"
    fingerprint = options.fingerprint("rebase", branch, onto)
    message = f"Rebase {branch} onto {onto}"
    return run(context, Request("rebase", branch, words, options, fingerprint, prepare, message))


def refuse_itself(source: str, into: str, needed: str = "merge needs a distinct source and target") -> None:
    """A branch is not merged into itself."""
    if source == into:
        raise BadRequest(f"a {needed}; both are '{source}'")


def _prepare(context: CommitContext, schemas: Schemas, source: str, options: Options, ours: ManifestState) -> Prepared:
    theirs = context.manifest.load(source)
    with at_once(context.root) as requests:
        known, of_source = requests.map(context.manifest.commits, (ours.branch, source))
    relation = relate({**of_source, **known}, ours.head, theirs.head)
    if relation.outcome == ALREADY_UP_TO_DATE:
        return Prepared(ALREADY_UP_TO_DATE)
    base = readable_base(context, relation.bases(), theirs)
    stats: dict[str, Any] = {"base": base.commit.id}
    if base.reclaimed:
        stats["reclaimed_bases"] = list(base.reclaimed)
    # The other bases belong to the best one; where that is gone, the older one that took its place stands alone.
    crossed = () if base.reclaimed else tuple(readable_pairs(context, relation.crossed()))
    plan = make_plan(context, schemas, Sides(base.state, ours, theirs, crossed=crossed), options)
    imported = ImportCommits(tuple(lacking(known, of_source, theirs.head)))
    return Prepared(relation.outcome, plan, theirs.head, (imported,), stats)


def run(context: CommitContext, request: Request) -> MergeResult:
    """Carry a request out as one commit; none when there is nothing to do or it is a dry run."""
    if request.options.dry_run:
        ours = context.manifest.load(request.branch)
        check([request.options.requires], ours)
        return _foreseen(request, request.prepare(ours))
    lineage = new_lineage(request.kind, request.options.actor, request.options.message or request.message)
    restarts = 0
    while True:
        try:
            with effect_window(context, request.branch, lost_before=restarts > 0) as held:
                return _attempt(context, request, lineage, held)
        except (ReadSetChanged, ExpectedVersionMismatch, PreconditionFailed) as moved:
            # What came in between may have been an earlier sending of this very request.
            known = earlier_receipt(context, request.branch, request.options.idempotency_key)
            if known is not None:
                return _repeated(context, request, known)
            if restarts == WRITE_RESTART_BUDGET:
                raise _contention(request, moved) from moved
            restarts += 1


def _contention(request: Request, moved: Conflict) -> Conflict:
    if not isinstance(moved, PreconditionFailed):
        return moved
    # The caller has set no precondition: what was lost is a race.
    return ReadSetChanged(
        f"the {request.words} was overtaken again and again by other writers; repeat it",
        table_key=f"graph_head:{request.branch}",
    )


def _attempt(context: CommitContext, request: Request, lineage: Lineage, held: HeldLock | None) -> MergeResult:
    ours = context.manifest.load(request.branch)
    known = earlier_receipt(context, request.branch, request.options.idempotency_key)
    if known is not None:
        return _repeated(context, request, known)
    # The plan reads tables by the names of the schema it is made under.
    check([request.options.requires], ours)
    prepared = request.prepare(ours)
    foreseen = _foreseen(request, prepared)
    if prepared.plan is None:
        return foreseen
    if foreseen.conflicts:
        raise _conflicts(request, foreseen)
    effects, schema = stage(context, ours, prepared.plan), prepared.plan.schema
    write = Write(
        kind=Kind.BRANCH_MERGE,
        branch=request.branch,
        lineage=replace(lineage, merged_parent=prepared.merged_parent, changed=_changed(prepared.plan)),
        effects=tuple(effects.tables),
        updates=(*prepared.updates, *effects.updates, *_receipt(request, foreseen, lineage)),
        schema=schema.files,
        # Whatever the target's head was when the sides were compared, the outcome holds for that head only.
        if_commit=ours.head,
        requires=request.options.requires,
    )
    if schema.files_before is not None:
        keep_replaced(context, schema.files_before)
    failpoints.hit("branch_merge.prepared")
    after = execute(context, write, held)
    return replace(foreseen, commit=commit_made(context, after, request.branch, lineage.id))


def _changed(plan: Plan) -> Changed:
    """How many rows a plan inserts, updates and deletes."""
    by_type = plan.stats()["tables"]
    return changed_of({key: sum(counts[name] for name in _OPERATIONS) for key, counts in by_type.items()})


def _foreseen(request: Request, prepared: Prepared) -> MergeResult:
    """The answer, but for the commit."""
    level = request.options.level
    if prepared.plan is None:
        return MergeResult(prepared.outcome, None, (), dict(prepared.stats), level=level)
    plan, conflicts = prepared.plan, prepared.plan.conflicts
    outcome = CONFLICTS if conflicts else prepared.outcome
    stats = {**prepared.stats, **plan.stats()}
    return MergeResult(outcome, None, conflicts, stats, plan.decided[:LISTED_DECISIONS], level)


def _conflicts(request: Request, foreseen: MergeResult) -> MergeConflicts:
    named = "; ".join(f"{found.kind}: {found.message}" for found in foreseen.conflicts[:NAMED_CONFLICTS])
    more = len(foreseen.conflicts) - NAMED_CONFLICTS
    rest = f"; and {more} more" if more > 0 else ""
    count = len(foreseen.conflicts)
    return MergeConflicts(
        f"the {request.words} has {count} conflict{'' if count == 1 else 's'}, nothing was written: {named}{rest}. "
        "Change one side, or decide with a strategy or with resolutions",
        conflicts=foreseen.conflicts,
    )


# --- exactly once -----------------------------------------------------------------------------------------------------


def _receipt(request: Request, foreseen: MergeResult, lineage: Lineage) -> tuple[RecordReceipt, ...]:
    key = request.options.idempotency_key
    if key is None:
        return ()
    receipt = {
        "outcome": foreseen.outcome,
        "stats": dict(foreseen.stats),
        "commit": lineage.id,
        "decided": [decision.to_dict() for decision in foreseen.decided],
        "level": foreseen.level,
    }
    return (RecordReceipt(key, request.fingerprint, receipt),)


def _repeated(context: CommitContext, request: Request, known: Receipt) -> MergeResult:
    """The answer to the first call, for a repeat of it."""
    refuse_other_request(known, request.fingerprint, request.branch, request.options.idempotency_key)
    commit = context.manifest.find_commit(request.branch, known.commit_id)
    # A receipt that was written before decisions were listed has none.
    decided = tuple(Decision(**one) for one in known.receipt.get("decided", ()))
    # One that was written before graphs had settings does not tell the level: it is the one that was asked for.
    asked = ENTITY_LEVEL if request.options.is_habit else request.options.level
    level = known.receipt.get("level", asked)
    return MergeResult(known.receipt["outcome"], commit, (), known.receipt["stats"], decided, level)
