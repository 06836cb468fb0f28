"""A load from its input to its commit: read, check, stage, commit; all of it or nothing.

An attempt whose base moved before its first effect has changed nothing. Append and merge then check again, without reading
again, and start over. An update reads again, because it has taken values from stored rows. An overwrite reports the conflict,
because the stored rows are no longer the rows that it was meant to replace.
"""

from __future__ import annotations

import hashlib
import logging
import resource
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import orjson
import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit.branch_refs import check_name, read_ref
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import commit_made, refuse_other_request
from omnigraph.commit.messages import changed_of, load_message, new_lineage
from omnigraph.commit.model import MAIN, Commit, Lineage, ManifestState
from omnigraph.commit.protocol import Step, TableEffect, Write
from omnigraph.commit.rows import Receipt
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.commit.staging_jobs import RunningJob, staging_job
from omnigraph.commit.updates import RecordReceipt, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out
from omnigraph.commit.writers import LOAD
from omnigraph.errors import (
    AlreadyExists,
    BadRequest,
    BranchNotFound,
    OmnigraphError,
    ReadSetChanged,
)
from omnigraph.ids import new_ulid
from omnigraph.load.checks import MODES, OVERWRITE, UPDATE, Plan
from omnigraph.load.chunks import Chunk
from omnigraph.load.digest import ChunkDigest, contents_of
from omnigraph.load.engine import Engine, placed
from omnigraph.load.exact import Rules
from omnigraph.load.inputs import Inputs
from omnigraph.load.member import LoadMember, can_join
from omnigraph.load.model import LoadReport, LoadResult, Progress, Request, TableLoad
from omnigraph.load.scratch import Scratch, exchange_for
from omnigraph.load.stored import Pin, Stored
from omnigraph.load.strategies import Staged, Strategy, held
from omnigraph.load.tabular import TableRows
from omnigraph.load.tasks import DigestSpec, DigestWay, Job, digest_chunk, remove_files
from omnigraph.load.work import Verdict, Work, refuse_rejected
from omnigraph.mutation.together import join
from omnigraph.spark.jobs import SparkRunner
from omnigraph.storage.tables.commit import drop_fork, fork
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Staged as Transaction
from omnigraph.storage.tables.staged import (
    stage_fragments,
    stage_overwrite_fragments,
    staged_marks,
)
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import whole

#: Bytes of input per partition of the keys.
_PARTITION_BYTES = 64 << 20
#: Input that is digested is cut as if for this many cores, on any machine, so that a repeated load has the same chunks.
_DIGESTED_PARALLELISM = 8
_CONTENTS, _KEY = "contents", "key"

_log = logging.getLogger(__name__)

failpoints.declare("load.read", "load.checked", "load.forked", "load.prepared")


class Load(Writing[LoadResult]):
    """One load into one graph, over all of its attempts."""

    writer = LOAD

    def __init__(
        self, context: CommitContext, request: Request, inputs: Inputs, engine: Engine, scratch: Scratch
    ) -> None:
        self.context = context
        self.request = request
        self.inputs = inputs
        self.engine = engine
        self.scratch = scratch
        self.branch, self.requires = request.branch, request.schema
        self.if_commit, self.idempotency_key = request.if_commit, request.idempotency_key
        self.lineage = new_lineage(self.writer.commit_kind, request.actor, request.message)
        self.job_id = new_ulid()
        #: Forks that were made for this load and are not published, by type key.
        self.forks: dict[str, Location] = {}
        #: Files that this attempt staged: deletion marks, and the rows of a load that holds its rows in memory.
        self.attempt_files: list[str] = []
        self.restarts = 0
        #: The rows that were read, and the staging record that protects their files from cleanup; set by the first reading.
        self.work: Work | None = None
        self.running: RunningJob | None = None
        self._records = ExitStack()
        #: Whether the branch is created by this load.
        self.creates_branch = False
        #: How many checks have been made of the rows that were read.
        self._checks = 0
        #: Whether it waits in a group: then the group's leader works with the rows, and nothing of them lies on disk.
        self._waits = False
        #: The commit has begun, and nothing has shown that it failed.
        self.committing = False
        #: The digest of the input; None until the input was read with digesting on.
        self.contents: str | None = None

    def run(self) -> LoadResult:
        """Carry the load out as one commit and return its result."""
        _refuse_bad(self.request)
        known = self.earlier()
        if known is not None:
            return self.repeated(known)
        with self._records:
            try:
                self.begin()
                self._waits = can_join(self)
                if not self._waits:
                    return self.alone()
                result = join(LoadMember(self))
                if self._waits:
                    # The group has published it; if it went alone, `alone` has told the caller.
                    self._tell_committed()
                return result
            except BaseException:
                self._give_up()
                raise
            finally:
                self._waits = False

    def alone(self) -> LoadResult:
        """Carry the load out as the only write of its publish."""
        self._waits = False
        return carry_out(self)

    # --- called by the loop -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Read the input if it was not read yet: after a lost attempt the same rows are checked again."""
        if self.work is not None:
            return
        state = self.capture()
        check([self.request.schema], state)
        self.engine, self.inputs = placed(self.engine, self.inputs, self.scratch, holds=self._holds)
        self._label()
        tables = [entry.location for entry in state.tables.values()]
        self.running = self._records.enter_context(
            staging_job(self.context.store, self.job_id, "load", self.branch, tables)
        )
        self.work = work = self._new_work(self._stored(state), self._shared(state, self.creates_branch))
        work.tell(Progress("engine", 0, 1, 0, f"{self.engine.name}: {self.engine.why}"))
        work.read()
        if work.digest is not None:
            self.contents = self._contents(work.chunks, work.digests())
        failpoints.hit("load.read")

    def locks(self) -> tuple[str, ...]:
        return () if self._capture()[1] else (self.branch,)

    def capture(self) -> ManifestState:
        state, self.creates_branch = self._capture()
        return state

    def prepare(self, state: ManifestState) -> Prepared[LoadResult]:
        request, work, creates = self.request, self.work, self.creates_branch
        assert work is not None, "an attempt begins with reading"
        if request.mode == UPDATE:
            _require_read(work, state)
        plan = self.plan(work, self._stored(state))
        verdict = work.check(plan)
        failpoints.hit("load.checked")
        refuse_rejected(work, verdict)
        operation_id = new_ulid()
        targets = self._targets(work, state, creates, operation_id)
        work.settle_rows(targets)
        work.require_whole(self.inputs.rows)
        write = self._write(work, state, creates, verdict, targets, operation_id)
        failpoints.hit("load.prepared")
        work.tell(Progress("commit", 0, 1, sum(work.rows().values())))
        self.committing = True
        started = time.perf_counter()

        def told(after: ManifestState | None) -> LoadResult:
            assert after is not None, "a load that succeeded has written"
            work.seconds["commit"] = work.seconds.get("commit", 0.0) + time.perf_counter() - started
            self._tell_committed()
            self.forks.clear()
            self.attempt_files.clear()
            commit = commit_made(self.context, after, self.branch, self.lineage.id)
            assert commit is not None, "a load that succeeded has a commit"
            return self.result(work.rows(), creates, commit, self.report(work, verdict, plan.stored))

        return Prepared(write, told)

    def may_restart(self, conflict: OmnigraphError) -> bool:
        if isinstance(conflict, AlreadyExists):
            # Another writer has created the branch meanwhile; a branch whose name overlaps is a final conflict.
            return conflict.name == self.branch
        return super().may_restart(conflict) and self.request.mode != OVERWRITE

    def lost(self, conflict: OmnigraphError) -> None:
        assert self.work is not None, "an attempt begins with reading"
        self.restarts += 1
        if self.request.mode == UPDATE:
            # An update takes values from stored rows while it reads, so it must read again.
            self._give_up()
            self._records.close()
            self.work, self.job_id = None, new_ulid()
        else:
            self.work.forget_staged(frozenset(self.forks))
            self._drop_forks()
        # A version that was undone may still name these files; cleanup removes them with the version.
        self.attempt_files.clear()
        self.forks.clear()
        self.committing = False

    def _give_up(self) -> None:
        """Remove the staged files and forks where it is certain that no version names them."""
        if self.work is None or self._waits:
            return
        # Once the commit has begun, a version may name staged files: recovery settles the write, cleanup removes the rest.
        if not self.committing:
            self._discard()
        elif self.forks and self._came_to_nothing():
            self._drop_forks()

    def _label(self) -> None:
        """Label the jobs of this load on Spark's web page."""
        runner = self.engine.runner
        if isinstance(runner, SparkRunner):
            label = f"load {self.inputs.shown_name()} → {self.request.branch}"
            self.engine = replace(self.engine, runner=runner.labelled(label))

    # --- the base ---------------------------------------------------------------------------------------------------

    def _capture(self) -> tuple[ManifestState, bool]:
        """The state this load is prepared against, and whether its branch must still be created from it."""
        request = self.request
        if request.base is not None and request.branch != MAIN and read_ref(self.context.store, request.branch) is None:
            check_name(request.branch)
            return self.context.manifest.load(request.base), True
        return self.context.manifest.load(request.branch), False

    def _shared(self, state: ManifestState, creates: bool) -> frozenset[str]:
        """The types whose tables the branch still shares with its parent."""
        return frozenset(
            entry.key for entry in state.tables.values() if creates or self.context.forks.is_shared(state, entry)
        )

    def _stored(self, state: ManifestState) -> Stored:
        pins = {entry.key: Pin(entry.location, entry.version, entry.row_count) for entry in state.tables.values()}
        return Stored(self.context.root, pins)

    # --- the work ---------------------------------------------------------------------------------------------------

    def _new_work(self, stored: Stored, shared: frozenset[str]) -> Work:
        request, strategy = self.request, self._strategy()
        job = Job(self.job_id, self._rules(), request.mode, stored, strategy.exchange, request.embedder)
        runner, way = self.engine.runner, self._digest_way()
        return Work(job, self._chunks(), runner, strategy, shared, request.progress, self._mentioned, way)

    @property
    def _mentioned(self) -> frozenset[str]:
        """The types that an overwrite replaces even when the input has no rows of them."""
        return self.inputs.types if self.request.mode == OVERWRITE else frozenset()

    @property
    def _holds(self) -> bool:
        """Whether the rows are few enough to be kept in memory until all checks have passed."""
        most = self.context.limits.held_bytes
        return most > 0 and self.inputs.size <= most

    def _rules(self) -> Rules:
        request = self.request
        return Rules(request.catalog, request.external_blobs, request.lenient, updates=request.mode == UPDATE)

    def _chunks(self) -> list[Chunk]:
        digested = self._digest_way() is not None
        runner = self.engine.runner
        return self.inputs.chunks(_DIGESTED_PARALLELISM if digested else runner.parallelism, runner)

    def _digest_way(self) -> DigestWay | None:
        """How the contents are digested; None when no idempotency key needs the digest."""
        if self.request.idempotency_key is None or self.request.idempotency == _KEY:
            return None
        return DigestWay(self.inputs.ordered)

    def _came_to_nothing(self) -> bool:
        """Whether a failed commit certainly has no effect, now or later, so that its forks can be dropped."""
        try:
            if {fork.branch for fork in self.forks.values()} & set(list_sidecars(self.context.store)):
                return False
            return self.context.manifest.find_commit(self.request.branch, self.lineage.id) is None
        except BranchNotFound:
            return True
        except OmnigraphError:
            return False

    def _strategy(self) -> Strategy:
        if self._holds:
            return held()
        wanted = -(-self.inputs.size // _PARTITION_BYTES)
        partitions = min(max(wanted, self.engine.runner.parallelism, 1), 256)
        shared = self.engine.shared_disk
        return Staged(exchange_for(self.scratch, self.context.root, self.job_id, partitions, shared_disk=shared))

    # --- the write --------------------------------------------------------------------------------------------------

    def _targets(self, work: Work, state: ManifestState, creates: bool, operation_id: str) -> Stored:
        """The tables that rows are staged for; if the strategy stages ahead, shared tables are forked here."""
        stored = self._stored(state)
        if not work.strategy.forks_ahead:
            return stored
        pins = dict(stored.pins)
        for key in sorted(work.written & self._shared(state, creates)):
            entry = state.by_key[key]
            self.forks[key] = Location(entry.path, operation_id)
            # Only the job's staging record names this fork.
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
        return Write(
            kind=self.writer.kind,
            branch=request.branch,
            lineage=self.told(work.rows()),
            effects=effects,
            reads=tuple(state.by_key[name] for name in sorted(self.looked_at(work))),
            updates=() if key is None else (self.receipt(key, work.rows(), creates, self.lineage.id),),
            requires=request.schema,
            if_commit=request.if_commit,
            branch_created_from=request.base if creates else None,
            operation_id=operation_id,
        )

    def told(self, rows: dict[str, int]) -> Lineage:
        """The lineage with the number of rows per type, and a default message where the caller gave none."""
        changed = changed_of(rows)
        default = load_message(self.request.title, self.request.mode, changed)
        return replace(self.lineage, changed=changed, message=self.lineage.message or default)

    def _effect(
        self, work: Work, state: ManifestState, key: str, verdict: Verdict, targets: Stored, *, forks: bool
    ) -> TableEffect:
        mode, replaced = self.request.mode, verdict.replaced.get(key)

        def transaction(table: Table) -> Transaction:
            written, files = work.strategy.fragments(work, key, table)
            self.attempt_files += files
            if mode == OVERWRITE:
                return stage_overwrite_fragments(table, written)
            return stage_fragments(table, written, replaced if replaced is not None and len(replaced) else None)

        entry = state.by_key[key]
        if forks and not work.strategy.forks_ahead:
            # The fork is made in phase B of the commit, and its rows are staged then.
            return TableEffect(entry, (Step(transaction),), forks=True)
        pin = targets.pins[key]
        staged = transaction(self.context.tables.open(pin.location, pin.version))
        self.attempt_files += staged_marks(staged)
        return TableEffect(entry, (Step(staged),), forks=forks)

    def looked_at(self, work: Work) -> set[str]:
        """The keys of the tables that were read for a check and are not written."""
        catalog, written = self.request.catalog, work.written
        seen: set[str] = set()
        for edge in catalog.edges.values():
            ends = {f"node:{edge.from_type}", f"node:{edge.to_type}"}
            if edge.type_key in written:
                seen |= ends
            elif self.request.mode == OVERWRITE and ends & written:
                seen.add(edge.type_key)
        return seen - written

    def _discard(self) -> None:
        """Remove all staged files and forks; nothing of this load will be committed."""
        if self.work is not None:
            self.work.discard()
        remove_files(self.context.store, self.attempt_files)
        self._drop_forks()

    def _drop_forks(self) -> None:
        for location in self.forks.values():
            try:
                drop_fork(self.context.tables, location)
            except OmnigraphError:
                # No version names this fork; cleanup removes it.
                continue
        self.forks.clear()

    # --- the answer -------------------------------------------------------------------------------------------------

    def result(
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

    def report(self, work: Work, verdict: Verdict, stored: Stored) -> LoadReport:
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
        """Edge types without a key whose first edges in the input were all stored before, between the same nodes."""
        if self.request.mode == OVERWRITE:
            return ()
        return tuple(
            key.partition(":")[2]
            for key, edges in sorted(work.first_edges().items())
            if _are_stored(edges, key, stored)
        )

    def _tell_committed(self) -> None:
        """Tell the caller that the load is committed; an error in the caller's callback can not undo it."""
        work = self.work
        assert work is not None, "what is committed was read"
        try:
            work.tell(Progress("commit", 1, 1, sum(work.rows().values())))
        except Exception:
            _log.warning("the load is committed, and its progress callback raised an error", exc_info=True)

    # --- with others ------------------------------------------------------------------------------------------------

    def judged_work(self, stored: Stored) -> Work:
        """The rows that were read, to be judged against `stored`. An update reads again, because it takes values from there.

        The caller's `progress` is not called: it may only be called on the thread of its caller.
        """
        assert self.work is not None, "a member was read"
        if self.request.mode != UPDATE:
            return replace(self.work, progress=None)
        work = replace(self._new_work(stored, frozenset()), progress=None)
        work.read()
        return work

    def plan(self, work: Work, stored: Stored) -> Plan:
        """The input of the next check."""
        self._checks += 1
        return Plan(self.request.catalog, self.request.mode, work.written, stored, attempt=self._checks)

    # --- exactly once -----------------------------------------------------------------------------------------------

    def _fingerprint(self) -> str:
        """The fingerprint of the request, to tell a repeated request from a different one under one idempotency key."""
        request = self.request
        contents = _KEY if request.idempotency == _KEY else self.contents or self._digested()
        asked = [contents, request.mode, request.branch, request.base, request.lenient, request.if_commit]
        return hashlib.sha256(orjson.dumps(asked)).hexdigest()

    def _digested(self) -> str:
        """Compute the digest of the input without loading it."""
        self.engine, self.inputs = placed(self.engine, self.inputs, self.scratch, holds=self._holds)
        rules, way = self._rules(), DigestWay(self.inputs.ordered)
        chunks = self._chunks()
        specs = [DigestSpec(rules, chunk, way) for chunk in chunks]
        self.contents = self._contents(chunks, self.engine.runner.run(digest_chunk, specs))
        return self.contents

    def _contents(self, chunks: Sequence[Chunk], digests: Sequence[ChunkDigest]) -> str:
        """The contents of the input as one text, including the types that are replaced by no rows."""
        text = contents_of(digests)
        if not self._mentioned:
            return text
        having = {
            chunk.shape.type_key
            for chunk, digest in zip(chunks, digests, strict=True)
            if isinstance(chunk, TableRows) and digest.row_count
        }
        return " ".join([text, *sorted(self._mentioned - having)])

    def receipt(self, key: str, rows: dict[str, int], creates: bool, commit_id: str) -> RecordReceipt:
        """The receipt to store under an idempotency key."""
        return RecordReceipt(key, self._fingerprint(), {"commit": commit_id, "rows": rows, "created": creates})

    def earlier(self) -> Receipt | None:
        if self.idempotency_key is None:
            return None
        if self.branch != MAIN and read_ref(self.context.store, self.branch) is None:
            return None
        return super().earlier()

    def repeated(self, known: Receipt) -> LoadResult:
        self._discard()
        request = self.request
        if request.idempotency != _KEY:
            refuse_other_request(known, self._fingerprint(), request.branch, request.idempotency_key)
        commit = self.context.manifest.find_commit(request.branch, known.commit_id)
        assert commit is not None, "a receipt lies in the manifest beside its commit"
        return self.result(known.receipt["rows"], known.receipt["created"], commit)


def _refuse_bad(request: Request) -> None:
    if request.mode not in MODES:
        raise BadRequest(f"unknown mode '{request.mode}'; the modes are {', '.join(MODES)}")
    if request.idempotency not in (_CONTENTS, _KEY):
        raise BadRequest(f"idempotency is {_CONTENTS} or {_KEY}, not {request.idempotency!r}")


def _are_stored(edges: pa.Table, type_key: str, stored: Stored) -> bool:
    """Whether every one of these edges has a stored edge between the same nodes."""
    found = stored.rows_with(type_key, "src", whole(edges["src"]), ["src", "dst"])
    pairs = set(zip(found["src"].to_pylist(), found["dst"].to_pylist(), strict=True))
    return all(pair in pairs for pair in zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True))


def _require_read(work: Work, state: ManifestState) -> None:
    """Raise if a table that an update took values from has changed since it was read."""
    for key in sorted(work.written):
        pin, entry = work.job.targets.pins[key], state.by_key[key]
        if (pin.location, pin.version) != (entry.location, entry.version):
            raise ReadSetChanged(f"{key} has changed while an update of it was read; repeat the load", table_key=key)
