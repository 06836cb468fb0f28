"""A load from its input to its commit: read, check, stage, commit; as a whole or not at all.

An attempt whose base moved before its first effect has done nothing. Append and merge then check again, without reading
again, and start over; an update reads again, because it has taken values from stored rows; an overwrite reports the conflict,
because what it replaces is no longer what was there.
"""

from __future__ import annotations

import hashlib
import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import orjson
import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit.branch_refs import check_name, read_ref
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commit_made, earlier_receipt, refuse_other_request
from omnigraph.commit.messages import changed_of, load_message, new_lineage
from omnigraph.commit.model import MAIN, Commit, Lineage, ManifestState
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.rows import Receipt
from omnigraph.commit.sidecar import Kind, list_sidecars
from omnigraph.commit.staging_jobs import RunningJob, staging_job
from omnigraph.commit.updates import HeadIs, RecordReceipt, check
from omnigraph.commit.window import WRITE_RESTART_BUDGET, effect_window
from omnigraph.errors import (
    AlreadyExists,
    BadRequest,
    BranchNotFound,
    Conflict,
    ExpectedVersionMismatch,
    KeyConflict,
    OmnigraphError,
    ReadSetChanged,
)
from omnigraph.ids import new_ulid
from omnigraph.load.checks import MODES, OVERWRITE, UPDATE, Plan
from omnigraph.load.chunks import Chunk
from omnigraph.load.digest import contents_of
from omnigraph.load.engine import HELD_BYTES, Engine, placed
from omnigraph.load.exact import Rules
from omnigraph.load.exchange import Exchange, InMemory
from omnigraph.load.inputs import Inputs
from omnigraph.load.model import LoadReport, LoadResult, Progress, Request, TableLoad
from omnigraph.load.parsed import rejection
from omnigraph.load.scratch import Scratch, exchange_for
from omnigraph.load.stored import Pin, Stored
from omnigraph.load.tasks import DigestSpec, DigestWay, Job, digest_chunk, remove_files
from omnigraph.load.work import Verdict, Work, timed
from omnigraph.spark.jobs import SparkRunner
from omnigraph.storage.locks import HeldLock
from omnigraph.storage.tables.commit import drop_fork, fork
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    stage_fragments,
    stage_overwrite_fragments,
    staged_files,
    staged_marks,
    write_rows,
)
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import whole

#: How much text one partition of the keys stands for.
_PARTITION_BYTES = 64 << 20
#: Text that is digested is cut as for so many cores, however many there are, so that a repeat has the same chunks.
_DIGESTED_PARALLELISM = 8
_CONTENTS, _KEY = "contents", "key"

_log = logging.getLogger(__name__)

failpoints.declare("load.read", "load.checked", "load.forked", "load.prepared")


@dataclass
class Load:
    """One load and the graph it goes to."""

    context: CommitContext
    request: Request
    inputs: Inputs
    engine: Engine
    scratch: Scratch
    job_id: str = field(default_factory=new_ulid)
    #: Forks that were made for this load and are not published.
    forks: dict[str, Location] = field(default_factory=dict)
    #: Files that were staged for this attempt: deletion marks, and the rows of a load that holds them.
    attempt_files: list[str] = field(default_factory=list)
    restarts: int = 0
    running: RunningJob | None = None
    #: The commit has begun, and nobody has said that it came to nothing.
    committing: bool = False
    #: The digest of what was read, once it was.
    contents: str | None = None

    def run(self) -> LoadResult:
        """Carry the load out as one commit."""
        _refuse_bad(self.request)
        while True:
            try:
                return self._run()
            except (ReadSetChanged, ExpectedVersionMismatch):
                # An update has taken values from stored rows while it read, so it reads again.
                again = self.request.mode == UPDATE and self.request.if_commit is None
                if not again or self.restarts == WRITE_RESTART_BUDGET:
                    raise
                self.restarts += 1
                self.job_id, self.committing = new_ulid(), False
                self.forks.clear()
                self.attempt_files.clear()

    def _run(self) -> LoadResult:
        request = self.request
        known = self._earlier_receipt()
        if known is not None:
            return self._repeated(known)
        lineage = new_lineage("load", request.actor, request.message)
        state, _ = self._capture()
        check([request.schema], state)
        self.engine, self.inputs = placed(self.engine, self.inputs, self.scratch, holds=self._holds)
        self._label()
        with self._at_work(state, lineage) as work:
            work.tell(Progress("engine", 0, 1, 0, f"{self.engine.name}: {self.engine.why}"))
            work.read()
            if work.digest is not None:
                self.contents = contents_of(work.digests())
            failpoints.hit("load.read")
            return self._until_committed(work, lineage)

    def _label(self) -> None:
        """Say on Spark's page what the jobs of this load are for."""
        runner = self.engine.runner
        if isinstance(runner, SparkRunner):
            label = f"load {self.inputs.shown_name()} → {self.request.branch}"
            self.engine = replace(self.engine, runner=runner.labelled(label))

    # --- the base ---------------------------------------------------------------------------------------------------

    def _capture(self) -> tuple[ManifestState, bool]:
        """The state this load is prepared against, and whether its branch is still to be created from it."""
        request = self.request
        if request.base is not None and request.branch != MAIN and read_ref(self.context.store, request.branch) is None:
            check_name(request.branch)
            return self.context.manifest.load(request.base), True
        return self.context.manifest.load(request.branch), False

    def _shared(self, state: ManifestState, creates: bool) -> frozenset[str]:
        """The types whose tables belong to another branch still."""
        return frozenset(
            entry.key for entry in state.tables.values() if creates or self.context.forks.is_shared(state, entry)
        )

    def _stored(self, state: ManifestState) -> Stored:
        pins = {entry.key: Pin(entry.location, entry.version, entry.row_count) for entry in state.tables.values()}
        return Stored(self.context.root, pins)

    # --- the work ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _at_work(self, state: ManifestState, lineage: Lineage) -> Iterator[Work]:
        request = self.request
        creates = state.branch != request.branch
        holds = self._holds
        tables = [entry.location for entry in state.tables.values()]
        with staging_job(self.context.store, self.job_id, "load", request.branch, tables) as self.running:
            job = Job(
                self.job_id, self._rules(), request.mode, self._stored(state), self._exchange(holds), request.embedder
            )
            digest = self._digest_way()
            shared = self._shared(state, creates)
            work = Work(job, self._chunks(), self.engine.runner, holds, shared, request.progress, digest)
            try:
                yield work
            except BaseException:
                # Once the commit has begun, a version may name what was staged: recovery settles it, cleanup removes
                # what it leaves.
                if not self.committing:
                    self._discard(work)
                elif self.forks and self._came_to_nothing(lineage):
                    self._drop_forks()
                raise

    @property
    def _holds(self) -> bool:
        """Whether the rows are few enough to be kept in memory until all checks have passed."""
        return self.inputs.size <= HELD_BYTES

    def _rules(self) -> Rules:
        request = self.request
        return Rules(request.catalog, request.external_blobs, request.lenient, updates=request.mode == UPDATE)

    def _chunks(self) -> list[Chunk]:
        digested = self._digest_way() is not None
        return self.inputs.chunks(_DIGESTED_PARALLELISM if digested else self.engine.runner.parallelism)

    def _digest_way(self) -> DigestWay | None:
        """How the contents are digested; None where nothing compares them."""
        if self.request.idempotency_key is None or self.request.idempotency == _KEY:
            return None
        return DigestWay(self.inputs.ordered)

    def _came_to_nothing(self, lineage: Lineage) -> bool:
        """Whether it is certain that a commit that failed has no effect, now or later; forks that only it had are left then."""
        try:
            if {fork.branch for fork in self.forks.values()} & set(list_sidecars(self.context.store)):
                return False
            return self.context.manifest.find_commit(self.request.branch, lineage.id) is None
        except BranchNotFound:
            return True
        except OmnigraphError:
            return False

    def _exchange(self, holds: bool) -> Exchange:
        if holds:
            return InMemory()
        wanted = -(-self.inputs.size // _PARTITION_BYTES)
        partitions = min(max(wanted, self.engine.runner.parallelism, 1), 256)
        shared = self.engine.shared_disk
        return exchange_for(self.scratch, self.context.root, self.job_id, partitions, shared_disk=shared)

    def _until_committed(self, work: Work, lineage: Lineage) -> LoadResult:
        request = self.request
        while True:
            try:
                _, creates = self._capture()
                if creates:
                    return self._attempt(work, lineage, None)
                with effect_window(self.context, request.branch, lost_before=self.restarts > 0) as held:
                    return self._attempt(work, lineage, held)
            except (Conflict, AlreadyExists) as conflict:
                # What came in between may have been an earlier sending of this very request.
                known = self._earlier_receipt()
                if known is not None:
                    self._discard(work)
                    return self._repeated(known)
                if not self._may_restart(conflict) or self.restarts == WRITE_RESTART_BUDGET:
                    raise
                self.restarts += 1
                self.committing = False
                # A version that was taken back may name these files still; cleanup removes them with it.
                self.attempt_files.clear()
                work.forget_staged(frozenset(self.forks))
                self._drop_forks()

    def _may_restart(self, conflict: OmnigraphError) -> bool:
        request = self.request
        if isinstance(conflict, AlreadyExists):
            # Somebody else has created the branch meanwhile; with a name that overlaps there is no way.
            return conflict.name == request.branch
        moved = isinstance(conflict, ReadSetChanged | ExpectedVersionMismatch)
        return moved and request.mode not in (OVERWRITE, UPDATE) and request.if_commit is None

    def _attempt(self, work: Work, lineage: Lineage, held: HeldLock | None) -> LoadResult:
        request = self.request
        state, creates = self._capture()
        known = self._earlier_receipt()
        if known is not None:
            self._discard(work)
            return self._repeated(known)
        check([request.schema], state)
        if request.if_commit is not None:
            check([HeadIs(request.if_commit)], state)
        if request.mode == UPDATE:
            _require_read(work, state)
        plan = Plan(request.catalog, request.mode, work.written, self._stored(state), attempt=self.restarts)
        verdict = work.check(plan)
        failpoints.hit("load.checked")
        _refuse_rejected(work, verdict)
        operation_id = new_ulid()
        targets = self._targets(work, state, creates, operation_id)
        work.settle_rows(targets)
        work.require_whole(self.inputs.rows)
        write = self._write(work, state, creates, lineage, verdict, targets, operation_id)
        failpoints.hit("load.prepared")
        work.tell(Progress("commit", 0, 1, sum(work.rows().values())))
        self.committing = True
        with timed(work.seconds, "commit"):
            after = execute(self.context, write, held)
        self._tell_committed(work)
        self.forks.clear()
        self.attempt_files.clear()
        commit = commit_made(self.context, after, request.branch, lineage.id)
        assert commit is not None, "a load that succeeded has a commit"
        return self._result(work.rows(), creates, commit, self._report(work, verdict, plan.stored))

    # --- the write --------------------------------------------------------------------------------------------------

    def _targets(self, work: Work, state: ManifestState, creates: bool, operation_id: str) -> Stored:
        """The tables that rows are staged for. A large load forks those that are shared, now that all checks have passed."""
        stored = self._stored(state)
        if work.holds:
            return stored
        pins = dict(stored.pins)
        for key in sorted(work.written & self._shared(state, creates)):
            entry = state.by_key[key]
            self.forks[key] = Location(entry.path, operation_id)
            # Nobody knows this fork but the job's record.
            assert self.running is not None
            self.running.add(self.forks[key])
            fork(self.context.tables, entry.location, entry.version, operation_id)
            failpoints.hit("load.forked")
            pins[key] = Pin(self.forks[key], entry.version, entry.row_count)
        work.forget_staged(frozenset(self.forks))
        return Stored(self.context.root, pins)

    def _write(
        self,
        work: Work,
        state: ManifestState,
        creates: bool,
        lineage: Lineage,
        verdict: Verdict,
        targets: Stored,
        operation_id: str,
    ) -> Write:
        request = self.request
        shared = self._shared(state, creates)
        effects = tuple(
            self._effect(work, state, key, verdict, targets, forks=key in shared) for key in sorted(work.written)
        )
        key = request.idempotency_key
        receipt = {"commit": lineage.id, "rows": work.rows(), "created": creates}
        return Write(
            kind=Kind.LOAD,
            branch=request.branch,
            lineage=self._told(lineage, work.rows()),
            effects=effects,
            reads=tuple(state.by_key[name] for name in sorted(self._looked_at(work))),
            updates=() if key is None else (RecordReceipt(key, self._fingerprint(), receipt),),
            requires=request.schema,
            if_commit=request.if_commit,
            branch_created_from=request.base if creates else None,
            operation_id=operation_id,
        )

    def _told(self, lineage: Lineage, rows: dict[str, int]) -> Lineage:
        """The commit with how many rows it changes, and with a message that says so where none was given."""
        changed = changed_of(rows)
        default = load_message(self.request.title, self.request.mode, changed)
        return replace(lineage, changed=changed, message=lineage.message or default)

    def _effect(
        self, work: Work, state: ManifestState, key: str, verdict: Verdict, targets: Stored, *, forks: bool
    ) -> TableEffect:
        mode, replaced = self.request.mode, verdict.replaced.get(key)
        rows, fragments = work.held_rows(key), work.fragments(key)

        def transaction(table: Table) -> Staged:
            written = write_rows(table, rows) if work.holds else fragments
            if work.holds:
                self.attempt_files += staged_files(table.location, written)
            if mode == OVERWRITE:
                return stage_overwrite_fragments(table, written)
            return stage_fragments(table, written, replaced if replaced is not None and len(replaced) else None)

        entry = state.by_key[key]
        if forks and work.holds:
            # The fork is made in phase B; what is staged for it is staged then.
            return TableEffect(entry, (Step(transaction),), forks=True)
        pin = targets.pins[key]
        staged = transaction(self.context.tables.open(pin.location, pin.version))
        self.attempt_files += staged_marks(staged)
        return TableEffect(entry, (Step(staged),), forks=forks)

    def _looked_at(self, work: Work) -> set[str]:
        """The tables that were read for a check and are not written."""
        catalog, written = self.request.catalog, work.written
        seen: set[str] = set()
        for edge in catalog.edges.values():
            ends = {f"node:{edge.from_type}", f"node:{edge.to_type}"}
            if edge.type_key in written:
                seen |= ends
            elif self.request.mode == OVERWRITE and ends & written:
                seen.add(edge.type_key)
        return seen - written

    def _discard(self, work: Work) -> None:
        """Nothing of this load will be committed: remove what it staged."""
        work.discard()
        remove_files(self.context.store, self.attempt_files)
        self._drop_forks()

    def _drop_forks(self) -> None:
        for location in self.forks.values():
            try:
                drop_fork(self.context.tables, location)
            except OmnigraphError:
                # An unreferenced fork is nobody's; cleanup removes it.
                continue
        self.forks.clear()

    # --- the answer -------------------------------------------------------------------------------------------------

    def _result(
        self, rows: dict[str, int], created: bool, commit: Commit, report: LoadReport | None = None
    ) -> LoadResult:
        request = self.request
        tables = tuple(
            TableLoad(key.partition(":")[0], key.partition(":")[2], count, request.mode)
            for key, count in sorted(rows.items(), key=lambda item: (not item[0].startswith("node:"), item[0]))
        )
        return LoadResult(
            branch=request.branch,
            base_branch=request.base if request.branch != MAIN else None,
            branch_created=created,
            mode=request.mode,
            tables=tables,
            nodes_loaded=sum(table.rows for table in tables if table.kind == "node"),
            edges_loaded=sum(table.rows for table in tables if table.kind == "edge"),
            commit=commit,
            report=report or LoadReport(),
        )

    def _report(self, work: Work, verdict: Verdict, stored: Stored) -> LoadReport:
        lines, skipped = work.lines()
        return LoadReport(
            engine=self.engine.name,
            why=self.engine.why,
            rows=sum(work.rows().values()),
            bytes=sum(chunk.size for chunk in work.chunks),
            lines=lines,
            skipped_lines=skipped,
            ignored=work.ignored(),
            restarts=self.restarts,
            cleared=verdict.cleared,
            edges_again=self._edges_again(work, stored),
            seconds=work.seconds,
            peak_memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )

    def _edges_again(self, work: Work, stored: Stored) -> tuple[str, ...]:
        """The edge types without a key of which the first edges of the input were all there before, between the same nodes."""
        if self.request.mode == OVERWRITE:
            return ()
        return tuple(
            key.partition(":")[2]
            for key, edges in sorted(work.first_edges().items())
            if _are_stored(edges, key, stored)
        )

    def _tell_committed(self, work: Work) -> None:
        """Tell the caller that the load is committed; an error of the caller's can not undo it."""
        try:
            work.tell(Progress("commit", 1, 1, sum(work.rows().values())))
        except Exception:
            _log.warning("the load is committed, and its progress callback raised an error", exc_info=True)

    # --- exactly once -----------------------------------------------------------------------------------------------

    def _fingerprint(self) -> str:
        """What was asked, to tell a repeated request from another one under the same idempotency key."""
        request = self.request
        contents = _KEY if request.idempotency == _KEY else self.contents or self._digested()
        asked = [contents, request.mode, request.branch, request.base, request.lenient, request.if_commit]
        return hashlib.sha256(orjson.dumps(asked)).hexdigest()

    def _digested(self) -> str:
        """The digest of the contents of an input that is not loaded."""
        self.engine, self.inputs = placed(self.engine, self.inputs, self.scratch, holds=self._holds)
        rules, way = self._rules(), DigestWay(self.inputs.ordered)
        specs = [DigestSpec(rules, chunk, way) for chunk in self._chunks()]
        self.contents = contents_of(self.engine.runner.run(digest_chunk, specs))
        return self.contents

    def _earlier_receipt(self) -> Receipt | None:
        request = self.request
        if request.idempotency_key is None:
            return None
        if request.branch != MAIN and read_ref(self.context.store, request.branch) is None:
            return None
        return earlier_receipt(self.context, request.branch, request.idempotency_key)

    def _repeated(self, known: Receipt) -> LoadResult:
        request = self.request
        if request.idempotency != _KEY:
            refuse_other_request(known, self._fingerprint(), request.branch, request.idempotency_key)
        commit = self.context.manifest.find_commit(request.branch, known.commit_id)
        assert commit is not None, "a receipt lies in the manifest beside its commit"
        return self._result(known.receipt["rows"], known.receipt["created"], commit)


def _refuse_bad(request: Request) -> None:
    if request.mode not in MODES:
        raise BadRequest(f"unknown mode '{request.mode}'; the modes are {', '.join(MODES)}")
    if request.idempotency not in (_CONTENTS, _KEY):
        raise BadRequest(f"idempotency is {_CONTENTS} or {_KEY}, not {request.idempotency!r}")


def _are_stored(edges: pa.Table, type_key: str, stored: Stored) -> bool:
    """Whether there is a stored edge from and to the same nodes for each of a few edges."""
    found = stored.rows_with(type_key, "src", whole(edges["src"]), ["src", "dst"])
    pairs = set(zip(found["src"].to_pylist(), found["dst"].to_pylist(), strict=True))
    return all(pair in pairs for pair in zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True))


def _require_read(work: Work, state: ManifestState) -> None:
    """Raise when a table that rows were completed from is no longer what it was then."""
    for key in sorted(work.written):
        pin, entry = work.job.targets.pins[key], state.by_key[key]
        if (pin.location, pin.version) != (entry.location, entry.version):
            raise ReadSetChanged(f"{key} has changed while an update of it was read; repeat the load", table_key=key)


def _refuse_rejected(work: Work, verdict: Verdict) -> None:
    """Raise what stands in the way: all problems of the input, or the first id that a strict insert may not have."""
    places = work.places()
    total = verdict.problems.total + verdict.meet_count
    if not total:
        return
    if not verdict.problems.total:
        first = verdict.meets[0]
        more = f" (and {verdict.meet_count - 1} more)" if verdict.meet_count > 1 else ""
        file, line = places.find(first.order)
        raise KeyConflict(
            f"{file}:{line}: {first.type_key} {first.entity_id!r} exists already, or is given twice{more}; "
            "nothing was written, load with mode=merge to replace it, or mode=update to keep what is not given",
            type_key=first.type_key,
            entity_id=first.entity_id,
            places=[
                (*places.find(meet.order), f"{meet.type_key} {meet.entity_id!r} exists already")
                for meet in verdict.meets
            ],
        )
    listed = [(problem.order, problem.message) for problem in verdict.problems.listed]
    listed += [(meet.order, f"{meet.type_key} {meet.entity_id!r} exists already") for meet in verdict.meets]
    listed.sort(key=lambda item: (-1 if item[0] is None else item[0], item[1]))
    errors = [(*places.find(order), message) for order, message in listed]
    raise rejection(errors, total)
