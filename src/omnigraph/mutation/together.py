"""Groups of writes that are published together: each sees the changes of earlier ones, and makes its own commit.

They share one captured state, one staged transaction per table and one commit of the manifest. A refused write settles nothing
that others see. No two of them write the same row, so that the change of each can be told from the single publish; a write that
would is left for the next publish, with all writes behind it, so the order is that of arrival.

A `Member` is a write that can be judged this way: a plain mutation (here), a transaction of such (`mutation.transaction`), or
a small load (`load.member`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commits_made, refuse_no_text
from omnigraph.commit.groups import Joinable, Outcome
from omnigraph.commit.manifest import Warm, receipts_in
from omnigraph.commit.model import Changed, Commit, Group, Lineage, ManifestState, Touched, identity_text
from omnigraph.commit.protocol import Write
from omnigraph.commit.rows import Receipt
from omnigraph.commit.updates import EarlierCommits, HeadIs, RecordReceipt, Update, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out, effect_window
from omnigraph.commit.writers import LOAD, MUTATION
from omnigraph.errors import ManifestContention
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.query import ir
from omnigraph.language.schema.catalog import Catalog
from omnigraph.mutation.base import Base
from omnigraph.mutation.effects import Change, change_of, effect_of
from omnigraph.mutation.execute import Attempt, Mutation, MutationResult, Request, Work, result_of
from omnigraph.mutation.settled import Settled
from omnigraph.mutation.staging import Entity, Pending
from omnigraph.values.columns import whole

Result = TypeVar("Result")


@dataclass(frozen=True)
class Judged(Generic[Result]):
    """The changes of a group's member to the state that earlier members leave; not settled yet."""

    #: The rows that it puts and removes, in order.
    pending: Sequence[Pending]
    #: Its lineage; its commit gets an id when the member is admitted.
    lineage: Lineage
    #: Makes its answer from its commit; called with None when it changes nothing.
    answer: Callable[[Commit | None], Result]
    #: Makes the receipt for an idempotency key and the id of its commit.
    receipt: Callable[[str, str], RecordReceipt]


class Member(ABC, Generic[Result]):
    """One write in the queue of its branch. `writing`: the same write, in case it goes alone."""

    writing: Writing[Result]
    #: The id of the commit that a group was last about to publish for it, and its answer; None before that.
    _planned: tuple[str, Callable[[Commit | None], Result]] | None = None

    @abstractmethod
    def judge(self, base: Base) -> Judged[Result]:
        """Carry it out on a state with its settled changes, or raise the refusal. `base` is not changed."""

    @abstractmethod
    def alone(self) -> Result:
        """Carry it out as the only write of its publish."""

    def plan(self, commit_id: str, answer: Callable[[Commit | None], Result]) -> None:
        """Record the commit that a group is about to publish for it."""
        self._planned = commit_id, answer

    def go_on_alone(self) -> Result:
        """Go on after a failed group: if its commit was published, or recovery publishes it, return that; else go alone."""
        context, branch = self.writing.context, self.writing.branch
        if self._planned is not None:
            commit_id, answer = self._planned
            with effect_window(context, branch, lost_before=True):
                made = context.manifest.find_commit(branch, commit_id)
            if made is not None:
                return answer(made)
        return self.alone()


def join(member: Member[Result]) -> Result:
    """Carry a write out, alone or in a group with others that wait for its branch."""
    queue = member.writing.context.queues.of(member.writing.branch, _write_together)
    result: Result = queue.write(member)
    return result


# --- mutations --------------------------------------------------------------------------------------------------------


def mutate(context: CommitContext, request: Request, mutation: Mutation) -> MutationResult:
    """Carry one mutation out as one commit, or none if it changes nothing. Waiting mutations share a publish."""
    work = Work(context, request, [mutation])
    try:
        if request.since is not None:
            check([request.requires], request.since)
            Attempt(work, request.since, judges=False).carry_out(mutation)
            return work.write()
        return join(_MutationMember(work, mutation)) if can_join(mutation.plan, request.catalog) else work.write()
    finally:
        work.copies.close()


def can_join(plan: ir.MutationPlan, catalog: Catalog) -> bool:
    """Whether a mutation is quick to judge: nothing is embedded, no blob is read, and no pattern is matched."""
    for statement in plan.statements:
        match statement:
            case ir.InsertNode(name) | ir.UpsertNode(name) | ir.UpdateNodes(name) | ir.DeleteNodes(name):
                entity: Entity = catalog.nodes[name]
            case ir.InsertEdge(name) | ir.UpdateEdges(name) | ir.DeleteEdges(name):
                entity = catalog.edges[name]
            case _:
                return False
        if is_slow(entity):
            return False
    return True


def is_slow(entity: Entity) -> bool:
    """Whether rows of a type may take long to make, because texts are embedded or blobs are read."""
    return any(declared.embed is not None or declared.type.is_blob for declared in entity.properties.values())


class _MutationMember(Member[MutationResult]):
    """One mutation in the queue of its branch."""

    def __init__(self, work: Work, mutation: Mutation) -> None:
        self.writing: Work = work
        self._mutation = mutation

    def judge(self, base: Base) -> Judged[MutationResult]:
        attempt = Attempt(self.writing, base.state, base=base)
        run = attempt.run(self._mutation)
        attempt.judge(run)
        return judged(self.writing, list(run.staging), result_of(run))

    def alone(self) -> MutationResult:
        return self.writing.write()


def judged(work: Work, pending: Sequence[Pending], result: MutationResult) -> Judged[MutationResult]:
    """The judgement of a mutation or a transaction."""
    return Judged(
        pending,
        replace(work.lineage, changed=Changed(result.affected_nodes, result.affected_edges)),
        lambda commit: replace(result, commit=commit),
        lambda key, commit_id: work.receipt(key, result, commit_id),
    )


# --- several as one publish -------------------------------------------------------------------------------------------


def _write_together(writers: Sequence[Joinable[Any]]) -> Sequence[Outcome[Any]]:
    """Carry out the first of the writes that wait for one branch; see `commit.groups.Queue`."""
    members = [writer for writer in writers if isinstance(writer, Member)]
    if len(members) == 1:
        return [Outcome(members[0].alone())]
    try:
        return carry_out(_Together(members))
    except ManifestContention as busy:
        # The branch was locked for too long; nothing was written, and going alone would only wait again.
        return [Outcome(error=ManifestContention(str(busy))) for _ in members]


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A write that will become a commit. `touched`: by type, the ids it writes or removes, and how many it writes."""

    member: Member[Any]
    place: int
    judged: Judged[Any]
    touched: Mapping[str, tuple[Sequence[str], int]]


class _Together(Writing[Sequence[Outcome[Any]]]):
    """Several writes as one; each attempt judges all of them again."""

    writer = MUTATION

    def __init__(self, members: Sequence[Member[Any]]) -> None:
        self._members = members
        self.context, self.branch = members[0].writing.context, members[0].writing.branch

    def capture(self) -> ManifestState:
        self._warm: Warm = self.context.manifest.warm(self.branch)
        self._base = Base(self.context, self._warm.state)
        self._admitted: list[_Admitted] = []
        self._taken: dict[str, set[str]] = {}
        return self._warm.state

    def prepare(self, state: ManifestState) -> Prepared[Sequence[Outcome[Any]]]:
        """Judge the writes in order and stage their changes; gives an outcome for each write that is not left for later."""
        outcomes = self._judged()
        changes = [change_of(settled, self._base) for settled in self._base.settled]
        present = [change for change in changes if change is not None]
        if not present:
            for one in self._admitted:
                outcomes[one.place] = Outcome(one.judged.answer(None))
            return Prepared(None, lambda _: outcomes)
        lineages = self._lineages(present)
        for one, lineage in zip(self._admitted, lineages, strict=True):
            one.member.plan(lineage.id, one.judged.answer)
        first = self._admitted[0].member.writing
        assert first.requires is not None, "a member says which schema it was made for"
        effects = tuple(effect_of(self.context, change, self._base) for change in present)
        write = Write(
            # Both kinds of sidecars are judged in the same way; this kind is what `recovery list` shows.
            kind=(LOAD if all(lineage.kind == LOAD.commit_kind for lineage in lineages) else MUTATION).kind,
            branch=self.branch,
            lineage=lineages[-1],
            effects=effects,
            reads=self._base.read_only({effect.entry.key for effect in effects}),
            updates=self._updates(lineages),
            requires=first.requires,
            if_commit=first.if_commit,
        )
        failpoints.hit("mutation.prepared")

        def told(after: ManifestState | None) -> Sequence[Outcome[Any]]:
            assert after is not None, "something was written"
            made = commits_made(self.context, state, after, self.branch, lineages)
            for one, commit in zip(self._admitted, made, strict=True):
                outcomes[one.place] = Outcome(one.judged.answer(commit))
            return outcomes

        return Prepared(write, told)

    # --- in the order of arrival --------------------------------------------------------------------------------------

    def _judged(self) -> list[Outcome[Any]]:
        """An outcome for each write before the first that must wait; outcomes of admitted writes are provisional."""
        outcomes: list[Outcome[Any]] = []
        known = self._receipts()
        keys: set[str] = set()
        for place, member in enumerate(self._members):
            key = member.writing.idempotency_key
            if key is not None and key in keys:
                # A repeat of a write that is about to be published: the next publish will find its receipt.
                break
            try:
                outcome = self._outcome(place, member, known)
            except Exception as error:
                # The error concerns only this write; the others, and the leader, go on.
                outcome = Outcome(error=error)
            if outcome is None:
                break
            outcomes.append(outcome)
            if key is not None:
                keys.add(key)
        return outcomes

    def _receipts(self) -> dict[str, Receipt]:
        """The receipts that the branch has under the idempotency keys of all writes."""
        keys = {member.writing.idempotency_key for member in self._members}
        return receipts_in(self._warm, {key for key in keys if isinstance(key, str)})

    def _outcome(self, place: int, member: Member[Any], known: Mapping[str, Receipt]) -> Outcome[Any] | None:
        """The outcome of a write carried out after the admitted writes; None when it must wait."""
        writing, key = member.writing, member.writing.idempotency_key
        if key is not None:
            refuse_no_text(key)
            if key in known:
                return Outcome(writing.repeated(known[key]))
        state = self._warm.state
        if writing.requires is not None:
            check([writing.requires], state)
        if writing.if_commit is not None:
            head = self._admitted[-1].judged.lineage.id if self._admitted else state.head
            check([HeadIs(writing.if_commit)], replace(state, head=head))
        found = member.judge(self._base)
        touched = _touched(found.pending)
        if self._admitted and self._must_wait(touched):
            return None
        if touched:
            # Each attempt uses a new commit id, because a planned commit that may not have been made is looked up by its id.
            lineage = replace(found.lineage, id=new_ulid(), created_at=now_micros(), group=None, touched={})
            self._admitted.append(_Admitted(member, place, replace(found, lineage=lineage), touched))
            for pending in found.pending:
                self._base.settled.add(pending)
            for type_key, (ids, _) in touched.items():
                self._taken.setdefault(type_key, set()).update(ids)
        return Outcome() if touched else Outcome(found.answer(None))

    def _must_wait(self, touched: Mapping[str, tuple[Sequence[str], int]]) -> bool:
        """Whether it writes a row that an admitted write also writes, or it or the first write is large."""
        most = self.context.limits.group_rows
        if _size(touched) > most or _size(self._admitted[0].touched) > most:
            return True
        return any(not self._taken.get(key, set()).isdisjoint(ids) for key, (ids, _) in touched.items())

    # --- what is published --------------------------------------------------------------------------------------------

    def _lineages(self, changes: Sequence[Change]) -> list[Lineage]:
        """The lineages of the commits, in order; with a single one there is no group."""
        outdated = {change.type_key: set(change.outdated["id"].to_pylist()) for change in changes}
        size, group_id = len(self._admitted), new_ulid()
        lineages: list[Lineage] = []
        for place, one in enumerate(self._admitted, start=1):
            lineage = one.judged.lineage
            if size > 1:
                touched = {
                    identity_text(self._base.entry(type_key).identity): Touched(
                        tuple(ids), rows - len(outdated.get(type_key, set()).intersection(ids))
                    )
                    for type_key, (ids, rows) in one.touched.items()
                }
                lineage = replace(lineage, group=Group(group_id, place, size), touched=touched)
            lineages.append(lineage)
        return lineages

    def _updates(self, lineages: Sequence[Lineage]) -> tuple[Update, ...]:
        updates: list[Update] = [EarlierCommits(tuple(lineages[:-1]))] if len(lineages) > 1 else []
        for one, lineage in zip(self._admitted, lineages, strict=True):
            key = one.member.writing.idempotency_key
            if key is not None:
                updates.append(replace(one.judged.receipt(key, lineage.id), commit=lineage.id))
        return tuple(updates)


def _touched(layers: Sequence[Pending]) -> dict[str, tuple[Sequence[str], int]]:
    """The ids that a write puts or removes, by type, and how many of them it puts."""
    settled = Settled()
    for pending in layers:
        settled.add(pending)
    found: dict[str, tuple[Sequence[str], int]] = {}
    for rows in settled:
        put, removed = whole(rows.image()["id"]), rows.gone()
        ids = pa.concat_arrays([put, removed]).to_pylist()
        if ids:
            found[rows.entity.type_key] = (ids, len(put))
    return found


def _size(touched: Mapping[str, tuple[Sequence[str], int]]) -> int:
    return sum(len(ids) for ids, _ in touched.values())
