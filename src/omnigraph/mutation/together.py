"""Mutations that are published together: each is judged on the graph as the ones before it leave it, and is a commit of its own.

They share one captured state, one staged transaction per table and one commit of the manifest. One that is refused has staged
nothing that others see. No two of them write the same row, so that what each of them did can be told from the one publish; a
mutation that would is left for the next publish, and those behind it too: the order is that of arrival.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.groups import Outcome, Writer
from omnigraph.commit.manifest import Warm, receipts_in
from omnigraph.commit.messages import new_lineage
from omnigraph.commit.model import Changed, Group, Lineage, ManifestState, Touched, identity_text
from omnigraph.commit.protocol import Write
from omnigraph.commit.rows import Receipt
from omnigraph.commit.updates import EarlierCommits, HeadIs, Update, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out, commits_made, effect_window, refuse_no_text
from omnigraph.commit.writers import MUTATION
from omnigraph.errors import ManifestContention, OmnigraphError
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.query.ir import (
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    MutationPlan,
    UpdateEdges,
    UpdateNodes,
    UpsertNode,
)
from omnigraph.language.schema.catalog import Catalog
from omnigraph.mutation.base import Base
from omnigraph.mutation.effects import Change, change_of, effect_of
from omnigraph.mutation.execute import Attempt, Mutation, MutationResult, Request, Work
from omnigraph.mutation.staging import Entity, Staging

#: How many rows a mutation may write or remove to be published with others.
MOST_ROWS = 200


def mutate(context: CommitContext, request: Request, mutation: Mutation) -> MutationResult:
    """Carry one mutation out as one commit; none when it changes nothing. Those that wait for the branch share a publish."""
    work = Work(context, request, [mutation])
    try:
        if request.since is not None:
            check([request.requires], request.since)
            Attempt(work, request.since, judges=False).carry_out(mutation)
            return work.write()
        if not _can_join(mutation.plan, request.catalog):
            return work.write()
        queue = context.queues.of(request.branch, _write_together)
        result: MutationResult = queue.write(Member(work, mutation))
        return result
    finally:
        work.copies.close()


def _can_join(plan: MutationPlan, catalog: Catalog) -> bool:
    """Whether a mutation is quick to judge: nothing is embedded, no blob is read, and no pattern is matched."""
    for statement in plan.statements:
        match statement:
            case InsertNode(name) | UpsertNode(name) | UpdateNodes(name) | DeleteNodes(name):
                entity: Entity = catalog.nodes[name]
            case InsertEdge(name) | UpdateEdges(name) | DeleteEdges(name):
                entity = catalog.edges[name]
            case _:
                return False
        if any(declared.embed is not None or declared.type.is_blob for declared in entity.properties.values()):
            return False
    return True


class Member:
    """One mutation that waits for its branch."""

    def __init__(self, work: Work, mutation: Mutation) -> None:
        self.work = work
        self.mutation = mutation
        #: Its result in the group that it was last judged in, once its commit was to be published there.
        self._planned: MutationResult | None = None

    @property
    def request(self) -> Request:
        return self.work.request

    def plan(self, lineage: Lineage, result: MutationResult) -> None:
        """Take the commit that a group is about to publish for it."""
        self.work.lineage = lineage
        self._planned = result

    def alone(self) -> MutationResult:
        """Carry it out as the only one."""
        return self.work.write()

    def go_on_alone(self) -> MutationResult:
        """After a group has failed: its commit may have been published, or be finished by recovery, and then counts."""
        context, branch, lineage = self.work.context, self.request.branch, self.work.lineage
        if self._planned is not None:
            with effect_window(context, branch, lost_before=True):
                made = context.manifest.find_commit(branch, lineage.id)
            if made is not None:
                return replace(self._planned, commit=made)
            alone = {"id": new_ulid(), "created_at": now_micros(), "group": None, "touched": {}}
            self.work.lineage = replace(lineage, **alone)  # type: ignore[arg-type]
        return self.alone()


def _write_together(writers: Sequence[Writer[MutationResult]]) -> Sequence[Outcome[MutationResult]]:
    """Carry out the first of some mutations that wait for one branch; see `commit.groups.Queue`."""
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
    """A mutation that is going to be a commit, and the ids it writes or removes and how many of them are rows, by type."""

    member: Member
    place: int
    lineage: Lineage
    attempt: Attempt
    touched: Mapping[str, tuple[Sequence[str], int]]


class _Together(Writing[Sequence[Outcome[MutationResult]]]):
    """Some mutations as one write; an attempt judges all of them anew."""

    writer = MUTATION

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self.context, self.branch = members[0].work.context, members[0].request.branch

    def capture(self) -> ManifestState:
        self._warm: Warm = self.context.manifest.warm(self.branch)
        self._base = Base(self.context, self._warm.state)
        self._admitted: list[_Admitted] = []
        self._taken: dict[str, set[str]] = {}
        return self._warm.state

    def prepare(self, state: ManifestState) -> Prepared[Sequence[Outcome[MutationResult]]]:
        """Judge them in order and stage those that change something; an outcome for each that was not left for later."""
        outcomes = self._judged()
        changes = [change_of(settled, self._base) for settled in self._base.settled]
        present = [change for change in changes if change is not None]
        if not present:
            return Prepared(None, lambda _: outcomes)
        lineages = self._lineages(present)
        results = [one.attempt.result() for one in self._admitted]
        for one, lineage, result in zip(self._admitted, lineages, results, strict=True):
            one.member.plan(lineage, result)
        first = self._admitted[0].member.request
        effects = tuple(effect_of(self.context, change, self._base) for change in present)
        write = Write(
            kind=self.writer.kind,
            branch=self.branch,
            lineage=lineages[-1],
            effects=effects,
            reads=self._base.read_only({effect.entry.key for effect in effects}),
            updates=self._updates(lineages, results),
            requires=first.requires,
            if_commit=first.if_commit,
        )
        failpoints.hit("mutation.prepared")

        def told(after: ManifestState | None) -> Sequence[Outcome[MutationResult]]:
            assert after is not None, "something was written"
            made = commits_made(self.context, state, after, self.branch, lineages)
            for one, result, commit in zip(self._admitted, results, made, strict=True):
                outcomes[one.place] = Outcome(replace(result, commit=commit))
            return outcomes

        return Prepared(write, told)

    # --- in the order of arrival --------------------------------------------------------------------------------------

    def _judged(self) -> list[Outcome[MutationResult]]:
        """An outcome for each mutation up to the first that must wait; of one that is admitted it is not the last word."""
        outcomes: list[Outcome[MutationResult]] = []
        known = self._receipts()
        keys: set[str] = set()
        for place, member in enumerate(self._members):
            key = member.request.idempotency_key
            if key is not None and key in keys:
                # A repeat of one that is about to be published: the next publish finds the receipt.
                break
            try:
                outcome = self._outcome(place, member, known)
            except OmnigraphError as error:
                outcome = Outcome(error=error)
            if outcome is None:
                break
            outcomes.append(outcome)
            if key is not None:
                keys.add(key)
        return outcomes

    def _receipts(self) -> dict[str, Receipt]:
        """What the branch knows under the idempotency keys of all."""
        keys = {member.request.idempotency_key for member in self._members}
        return receipts_in(self._warm, {key for key in keys if isinstance(key, str)})

    def _outcome(self, place: int, member: Member, known: Mapping[str, Receipt]) -> Outcome[MutationResult] | None:
        """What a mutation is told when it is carried out behind those that were admitted; None when it must wait."""
        request, key = member.request, member.request.idempotency_key
        if key is not None:
            refuse_no_text(key)
            if key in known:
                return Outcome(member.work.repeated(known[key]))
        state = self._warm.state
        check([request.requires], state)
        if request.if_commit is not None:
            head = self._admitted[-1].lineage.id if self._admitted else state.head
            check([HeadIs(request.if_commit)], replace(state, head=head))
        attempt = Attempt(member.work, state, base=self._base)
        run = attempt.run(member.mutation)
        touched = _touched(run.staging)
        size = sum(len(ids) for ids, _ in touched.values())
        overlaps = any(not self._taken.get(key, set()).isdisjoint(ids) for key, (ids, _) in touched.items())
        if self._admitted and (overlaps or size > MOST_ROWS or self._is_large()):
            return None
        attempt.judge(run)
        result = attempt.settle(run)
        if touched:
            lineage = replace(
                new_lineage("mutation", request.actor, request.message),
                changed=Changed(result.affected_nodes, result.affected_edges),
            )
            self._admitted.append(_Admitted(member, place, lineage, attempt, touched))
            for type_key, (ids, _) in touched.items():
                self._taken.setdefault(type_key, set()).update(ids)
        return Outcome(result)

    def _is_large(self) -> bool:
        """Whether the first one is too large to have others published with it."""
        return sum(len(ids) for ids, _ in self._admitted[0].touched.values()) > MOST_ROWS

    # --- what is published --------------------------------------------------------------------------------------------

    def _lineages(self, changes: Sequence[Change]) -> list[Lineage]:
        """A commit for each of them, in their order; alone it is a commit like any other."""
        outdated = {change.type_key: set(change.outdated["id"].to_pylist()) for change in changes}
        size, group_id = len(self._admitted), new_ulid()
        lineages: list[Lineage] = []
        for place, one in enumerate(self._admitted, start=1):
            lineage = one.lineage
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

    def _updates(self, lineages: Sequence[Lineage], results: Sequence[MutationResult]) -> tuple[Update, ...]:
        updates: list[Update] = [EarlierCommits(tuple(lineages[:-1]))] if len(lineages) > 1 else []
        for one, lineage, result in zip(self._admitted, lineages, results, strict=True):
            key = one.member.request.idempotency_key
            if key is not None:
                receipt = one.member.work.receipt(key, result)
                updates.append(replace(receipt, commit=lineage.id))
        return tuple(updates)


def _touched(staging: Staging) -> dict[str, tuple[Sequence[str], int]]:
    """The ids that a mutation writes or removes, by type, and how many of them are rows that it writes."""
    found: dict[str, tuple[Sequence[str], int]] = {}
    for pending in staging:
        put, removed = pending.image()["id"], pending.removed()["id"]
        ids = pa.concat_arrays([*put.chunks, *removed.chunks]).to_pylist() if len(put) + len(removed) else []
        if ids:
            found[pending.entity.type_key] = (ids, len(put))
    return found
