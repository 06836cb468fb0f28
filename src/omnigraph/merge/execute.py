"""Carries out a merge request: plan and stage on the captured target. The loop is `commit.write_loop.carry_out`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from omnigraph import failpoints
from omnigraph.commit.branch_refs import is_name
from omnigraph.commit.config import ENTITY_LEVEL
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commit_made, refuse_other_request
from omnigraph.commit.history import lacking
from omnigraph.commit.manifest import branch_not_found
from omnigraph.commit.messages import changed_of, new_lineage
from omnigraph.commit.model import Changed, Lineage, ManifestState
from omnigraph.commit.protocol import Write
from omnigraph.commit.rows import Receipt
from omnigraph.commit.updates import ImportCommits, RecordReceipt, Update, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out
from omnigraph.commit.writers import BRANCH_MERGE
from omnigraph.errors import (
    BadRequest,
    Conflict,
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
from omnigraph.storage.objects import at_once

failpoints.declare("branch_merge.prepared")

#: How many conflicts are named in the message of the error.
NAMED_CONFLICTS = 3
_OPERATIONS = ("inserted", "updated", "deleted")


@dataclass(frozen=True)
class Planned:
    """The write of one attempt; `plan` is None when there is nothing to do."""

    outcome: str
    plan: Plan | None = None
    merged_parent: str | None = None
    updates: tuple[Update, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One request: the kind and branch of its commit, and how an attempt is prepared from the target's state."""

    kind: str
    branch: str
    #: A description of the request for messages.
    words: str
    options: Options
    fingerprint: str
    prepare: Callable[[ManifestState], Planned]
    #: The message of its commit if the caller gives none.
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
        # If the source was deleted while it was read, this raises `BranchNotFound`.
        context.manifest.load(source)
        raise


def rebase(context: CommitContext, schemas: Schemas, branch: str, onto: str, options: Options) -> MergeResult:
    """Bring a branch up to the head of another branch: that head's state plus the branch's own net change, in one commit.

    The commit is made on the branch, with the other head as merged parent. Therefore that head becomes the base of a later
    merge of the branch, which then brings only the branch's own changes.
    """
    refuse_itself(branch, onto, "rebase needs a branch and another one to bring it up to")
    for name in (branch, onto):
        if not is_name(name):
            raise branch_not_found(name)

    def prepare(ours: ManifestState) -> Planned:
        prepared = _prepare(context, schemas, onto, options, ours)
        return replace(prepared, outcome=REBASED) if prepared.outcome == MERGED else prepared

    words = f"rebase of '{branch}' onto '{onto}'"
    fingerprint = options.fingerprint("rebase", branch, onto)
    message = f"Rebase {branch} onto {onto}"
    return run(context, Request("rebase", branch, words, options, fingerprint, prepare, message))


def refuse_itself(source: str, into: str, needed: str = "merge needs a distinct source and target") -> None:
    """Raise if a branch would be merged with itself."""
    if source == into:
        raise BadRequest(f"a {needed}; both are '{source}'")


def _prepare(context: CommitContext, schemas: Schemas, source: str, options: Options, ours: ManifestState) -> Planned:
    theirs = context.manifest.load(source)
    with at_once(context.root) as requests:
        known, of_source = requests.map(context.manifest.commits, (ours.branch, source))
    relation = relate({**of_source, **known}, ours.head, theirs.head)
    if relation.outcome == ALREADY_UP_TO_DATE:
        return Planned(ALREADY_UP_TO_DATE)
    base = readable_base(context, relation.bases(), theirs)
    stats: dict[str, Any] = {"base": base.commit.id}
    if base.reclaimed:
        stats["reclaimed_bases"] = list(base.reclaimed)
    # The other bases belong to the best base; if its state is gone, the older base in its place is used alone.
    crossed = () if base.reclaimed else tuple(readable_pairs(context, relation.crossed()))
    plan = make_plan(context, schemas, Sides(base.state, ours, theirs, crossed=crossed), options)
    imported = ImportCommits(tuple(lacking(known, of_source, theirs.head)))
    return Planned(relation.outcome, plan, theirs.head, (imported,), stats)


def run(context: CommitContext, request: Request) -> MergeResult:
    """Carry a request out as one commit; no commit if there is nothing to do, or in a dry run."""
    if request.options.dry_run:
        ours = context.manifest.load(request.branch)
        check([request.options.requires], ours)
        return _foreseen(request, request.prepare(ours))
    try:
        return carry_out(_Merging(context, request))
    except PreconditionFailed as moved:
        raise _contention(request) from moved


def _contention(request: Request) -> Conflict:
    """The error of a merge that lost too many races; not a failed precondition, as the caller has set none."""
    return ReadSetChanged(
        f"the {request.words} was overtaken again and again by other writers; repeat it",
        table_key=f"graph_head:{request.branch}",
    )


class _Merging(Writing[MergeResult]):
    """One request over all of its attempts."""

    writer = BRANCH_MERGE

    def __init__(self, context: CommitContext, request: Request) -> None:
        self.context = context
        self.request = request
        self.branch = request.branch
        # The plan reads tables by the names of the schema it is made under.
        self.requires = request.options.requires
        self.idempotency_key = request.options.idempotency_key
        message = request.options.message or request.message
        self.lineage = new_lineage(request.kind, request.options.actor, message)

    def prepare(self, state: ManifestState) -> Prepared[MergeResult]:
        request, planned = self.request, self.request.prepare(state)
        foreseen = _foreseen(request, planned)
        if planned.plan is None:
            return Prepared(None, lambda _: foreseen)
        if foreseen.conflicts:
            raise _conflicts(request, foreseen)
        if planned.plan.schema.files is not None and request.options.allow_schema is not None:
            request.options.allow_schema()
        effects, schema = stage(self.context, state, planned.plan), planned.plan.schema
        write = Write(
            kind=self.writer.kind,
            branch=self.branch,
            lineage=replace(self.lineage, merged_parent=planned.merged_parent, changed=_changed(planned.plan)),
            effects=tuple(effects.tables),
            updates=(*planned.updates, *effects.updates, *_receipt(request, foreseen, self.lineage)),
            schema=schema.files,
            # The outcome is valid only for the head that the target had when the sides were compared.
            if_commit=state.head,
            requires=request.options.requires,
        )
        if schema.files_before is not None:
            keep_replaced(self.context, schema.files_before)
        failpoints.hit("branch_merge.prepared")

        def told(after: ManifestState | None) -> MergeResult:
            assert after is not None, "something was written"
            return replace(foreseen, commit=commit_made(self.context, after, self.branch, self.lineage.id))

        return Prepared(write, told)

    def repeated(self, known: Receipt) -> MergeResult:
        """The answer of the first call, rebuilt from its receipt."""
        request, receipt = self.request, known.receipt
        refuse_other_request(known, request.fingerprint, self.branch, self.idempotency_key)
        commit = self.context.manifest.find_commit(self.branch, known.commit_id)
        # Old receipts, written before decisions were listed, have none.
        decided = tuple(Decision(**one) for one in receipt.get("decided", ()))
        # Old receipts, written before graphs had settings, lack the level: it was the level of the request.
        asked = ENTITY_LEVEL if request.options.is_habit else request.options.level
        return MergeResult(receipt["outcome"], commit, (), receipt["stats"], decided, receipt.get("level", asked))


def _changed(plan: Plan) -> Changed:
    """How many rows a plan inserts, updates and deletes."""
    by_type = plan.stats()["tables"]
    return changed_of({key: sum(counts[name] for name in _OPERATIONS) for key, counts in by_type.items()})


def _foreseen(request: Request, planned: Planned) -> MergeResult:
    """The answer of the request except for its commit."""
    level = request.options.level
    if planned.plan is None:
        return MergeResult(planned.outcome, None, (), dict(planned.stats), level=level)
    plan, conflicts = planned.plan, planned.plan.conflicts
    outcome = CONFLICTS if conflicts else planned.outcome
    stats = {**planned.stats, **plan.stats()}
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
