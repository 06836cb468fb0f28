"""Writes that are published together: each is judged on the graph as the ones before it leave it, and is a commit of its own.

They share one captured state, one staged transaction per table and one commit of the manifest. One that is refused has settled
nothing that others see. No two of them write the same row, so that what each of them did can be told from the one publish; a
write that would is left for the next publish, and those behind it too: the order is that of arrival.

A `Member` is a write that can be judged this way: a plain mutation (here), a transaction of such (`mutation.transaction`), a
small load (`load.member`).
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
    """What a member of a group does to the graph that the members before it leave. Nothing of it is settled yet."""

    #: The rows that it puts and removes, in order.
    pending: Sequence[Pending]
    #: Its commit, which is given an id when the member is admitted.
    lineage: Lineage
    #: Its answer, given the commit that was made; None when it changes nothing.
    answer: Callable[[Commit | None], Result]
    #: What is remembered under its idempotency key, given the id of its commit.
    receipt: Callable[[str, str], RecordReceipt]


class Member(ABC, Generic[Result]):
    """One write that waits for its branch. `writing`: the same write, for the case that it goes alone."""

    writing: Writing[Result]
    #: The commit that a group was last about to publish for it, and the answer that goes with it.
    _planned: tuple[str, Callable[[Commit | None], Result]] | None = None

    @abstractmethod
    def judge(self, base: Base) -> Judged[Result]:
        """Carry it out on a state and what is settled on it, or raise its refusal. `base` is left as it was."""

    @abstractmethod
    def alone(self) -> Result:
        """Carry it out as the only one."""

    def plan(self, commit_id: str, answer: Callable[[Commit | None], Result]) -> None:
        """Take note of the commit that a group is about to publish for it."""
        self._planned = commit_id, answer

    def go_on_alone(self) -> Result:
        """After a group has failed: its commit may have been published, or be finished by recovery, and then counts."""
        context, branch = self.writing.context, self.writing.branch
        if self._planned is not None:
            commit_id, answer = self._planned
            with effect_window(context, branch, lost_before=True):
                made = context.manifest.find_commit(branch, commit_id)
            if made is not None:
                return answer(made)
        return self.alone()


def join(member: Member[Result]) -> Result:
    """Carry a write out, alone or with others that wait for its branch."""
    queue = member.writing.context.queues.of(member.writing.branch, _write_together)
    result: Result = queue.write(member)
    return result


# --- mutations --------------------------------------------------------------------------------------------------------


def mutate(context: CommitContext, request: Request, mutation: Mutation) -> MutationResult:
    """Carry one mutation out as one commit; none when it changes nothing. Mutations that wait for one branch share a publish."""
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
    """Whether rows of a type may take long to make: texts are embedded, or blobs are read."""
    return any(declared.embed is not None or declared.type.is_blob for declared in entity.properties.values())


class _MutationMember(Member[MutationResult]):
    """One mutation that waits for its branch."""

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
    """A mutation, or a transaction, that was judged."""
    return Judged(
        pending,
        replace(work.lineage, changed=Changed(result.affected_nodes, result.affected_edges)),
        lambda commit: replace(result, commit=commit),
        lambda key, commit_id: work.receipt(key, result, commit_id),
    )


# --- several as one publish -------------------------------------------------------------------------------------------


def _write_together(writers: Sequence[Joinable[Any]]) -> Sequence[Outcome[Any]]:
    """Carry out the first of some writes that wait for one branch; see `commit.groups.Queue`."""
    members = [writer for writer in writers if isinstance(writer, Member)]
    if len(members) == 1:
        return [Outcome(members[0].alone())]
    try:
        return carry_out(_Together(members))
    except ManifestContention as busy:
        # The branch was locked for too long; nothing was written, and alone each would only wait as long again.
        return [Outcome(error=ManifestContention(str(busy))) for _ in members]


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A write that is going to be a commit, and the ids it writes or removes and how many of them are rows, by type."""

    member: Member[Any]
    place: int
    judged: Judged[Any]
    touched: Mapping[str, tuple[Sequence[str], int]]


class _Together(Writing[Sequence[Outcome[Any]]]):
    """Some writes as one; an attempt judges all of them anew."""

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
        """Judge the writes in order and stage what they change; an outcome for each write that was not left for later."""
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
            # Both kinds of records are judged in the same way; this one is what `recovery list` shows.
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
        """An outcome for each write up to the first that must wait; of one that is admitted it is not the last word."""
        outcomes: list[Outcome[Any]] = []
        known = self._receipts()
        keys: set[str] = set()
        for place, member in enumerate(self._members):
            key = member.writing.idempotency_key
            if key is not None and key in keys:
                # A repeat of one that is about to be published: the next publish finds the receipt.
                break
            try:
                outcome = self._outcome(place, member, known)
            except Exception as error:
                # Whatever it is, it is about this one: the others, and the one that leads, go on.
                outcome = Outcome(error=error)
            if outcome is None:
                break
            outcomes.append(outcome)
            if key is not None:
                keys.add(key)
        return outcomes

    def _receipts(self) -> dict[str, Receipt]:
        """What the branch knows under the idempotency keys of all."""
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
            # A commit of each attempt: one that was planned and not made is looked for by its id.
            lineage = replace(found.lineage, id=new_ulid(), created_at=now_micros(), group=None, touched={})
            self._admitted.append(_Admitted(member, place, replace(found, lineage=lineage), touched))
            for pending in found.pending:
                self._base.settled.add(pending)
            for type_key, (ids, _) in touched.items():
                self._taken.setdefault(type_key, set()).update(ids)
        return Outcome() if touched else Outcome(found.answer(None))

    def _must_wait(self, touched: Mapping[str, tuple[Sequence[str], int]]) -> bool:
        """Whether it writes a row that another one writes, or it or the first one is large."""
        most = self.context.limits.group_rows
        if _size(touched) > most or _size(self._admitted[0].touched) > most:
            return True
        return any(not self._taken.get(key, set()).isdisjoint(ids) for key, (ids, _) in touched.items())

    # --- what is published --------------------------------------------------------------------------------------------

    def _lineages(self, changes: Sequence[Change]) -> list[Lineage]:
        """A commit for each of them, in their order; alone it is a commit like any other."""
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
    """The ids that a write puts or removes, by type, and how many of them are rows that it puts."""
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
