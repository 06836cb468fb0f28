"""The work of one load: reads its chunks, checks them against the stored rows, and prepares the rows for the commit.

A `Strategy` decides where the rows are until then.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from omnigraph.errors import KeyConflict
from omnigraph.load.checks import MERGE, Checked, CheckSpec, KeyMeets, Plan, check_partition
from omnigraph.load.chunks import Chunk, Places
from omnigraph.load.digest import ChunkDigest
from omnigraph.load.model import Progress, ProgressCall
from omnigraph.load.parsed import Ignored, Orders, Problem, Problems, rejection
from omnigraph.load.rename_ends import ambiguous, distinct
from omnigraph.load.stored import Stored
from omnigraph.load.stored_keys import needed_keys, put_stored_keys
from omnigraph.load.strategies import Strategy, in_order, not_whole
from omnigraph.load.tasks import (
    ChunkMeasure,
    ChunkResult,
    ChunkSpec,
    DigestWay,
    Job,
    TypeResult,
    measure_chunk,
    remove_staged,
)
from omnigraph.spark.runner import Display, Runner
from omnigraph.storage.tables.row_places import RowPlaces


@dataclass(frozen=True)
class Verdict:
    """The result of the checks."""

    problems: Problems
    meets: tuple[KeyMeets, ...]
    meet_count: int
    replaced: Mapping[str, RowPlaces]
    #: How many stored values a merge replaces by null, by `Type.property`.
    cleared: Mapping[str, int]


@dataclass
class Work:
    """The state of one load from its first line to its commit. `strategy`: where the rows are until then."""

    job: Job
    chunks: Sequence[Chunk]
    runner: Runner
    strategy: Strategy
    #: Types whose tables the branch still shares, so that nothing can be staged for them yet.
    shared: frozenset[str]
    progress: ProgressCall | None = None
    #: Types that an overwrite replaces even if the input has no row of them: a table of the input names its type.
    mentioned: frozenset[str] = frozenset()
    #: How the contents are digested; None: no digest is made.
    digest: DigestWay | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    results: dict[int, ChunkResult] = field(default_factory=dict)
    #: By chunk and type, the result of the last reading; its fragments are the ones that count.
    staged: dict[tuple[int, str], TypeResult] = field(default_factory=dict)
    dropped: Orders = field(default_factory=lambda: np.empty(0, np.int64))
    aliases: pa.Table | None = None
    _ambiguous: list[Problem] = field(default_factory=list)
    _telling_error: Exception | None = None

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read every chunk; edges are read again when they name nodes of the load by other ids than the stored ones."""
        with timed(self.seconds, "read"):
            self._run([self._spec(number) for number in range(len(self.chunks))])
            listed = [result.aliases for result in self.results.values() if result.aliases.num_rows]
            if not listed:
                return
            aliases = pa.concat_tables(listed)
            self._ambiguous = ambiguous(aliases)
            self.aliases = distinct(aliases)
            numbers = [number for number, result in self.results.items() if _has_edges(result)]
            self._run([self._spec(number) for number in numbers])

    def _spec(self, number: int) -> ChunkSpec:
        return ChunkSpec(
            self.job,
            self.chunks[number],
            number,
            aliases=self.aliases,
            stages=self.strategy.stages(frozenset(self.job.targets.pins), self.shared),
            puts_keys=self.strategy.puts_keys,
            digest=self.digest,
        )

    def _run(self, specs: Sequence[ChunkSpec]) -> None:
        total = sum(chunk.size for chunk in self.chunks)
        done = rows = 0

        def shown(read: ChunkMeasure) -> None:
            nonlocal done, rows
            done, rows = done + self.chunks[read.number].size, rows + read.rows
            self.note(Progress("read", done, total, rows))

        task = self.strategy.task
        display = Display(measure_chunk, shown)
        # When a job fails, the results of its finished tasks are kept too, so that their staged files can be removed.
        for result in in_order(specs, self.runner.run(task, specs, display=display, unused=self.keep, stage="read")):
            self.keep(result)
        self.raise_telling_error()
        for spec in specs:
            self.strategy.took(spec, self.results[spec.number])

    def keep(self, result: ChunkResult) -> None:
        """Keep a result, replacing an earlier result of the same chunk."""
        before = {key: self.staged[result.number, key] for key in result.types if (result.number, key) in self.staged}
        self.results[result.number] = result
        for key, one in result.types.items():
            self.staged[result.number, key] = one
        remove_staged(self.job.targets, before)

    # --- what was read ----------------------------------------------------------------------------------------------

    @property
    def written(self) -> frozenset[str]:
        """The types that are written: types that were read, and types that are replaced by no rows."""
        return self.mentioned | {key for result in self.results.values() for key in result.types}

    def rows(self) -> dict[str, int]:
        """How many rows of each type will be written."""
        counts = dict.fromkeys(sorted(self.written), 0)
        for (_, key), result in self.staged.items():
            counts[key] += result.rows
        return counts

    def places(self) -> Places:
        """Turns a place in the input into a file and a line."""
        return Places.of(
            self.chunks, {number: (result.lines, result.begins) for number, result in self.results.items()}
        )

    def lines(self) -> tuple[int, int]:
        """How many lines were read, and how many of them were skipped."""
        return (
            sum(result.lines for result in self.results.values()),
            sum(result.skipped for result in self.results.values()),
        )

    def first_edges(self) -> dict[str, pa.Table]:
        """The ends of the first edges of each type, where ids are generated."""
        return {
            key: edges
            for _, result in sorted(self.results.items(), reverse=True)
            for key, edges in result.first_edges.items()
        }

    def ignored(self) -> Ignored:
        return sum((result.ignored for result in self.results.values()), Ignored())

    # --- checking ---------------------------------------------------------------------------------------------------

    def check(self, plan: Plan) -> Verdict:
        """Check what was read against what is stored; may be repeated when the stored rows have changed."""
        with timed(self.seconds, "check"):
            runner = self.strategy.check_runner(self.runner)
            exchange = self.job.exchange
            # In an overwrite, the problems of reading do not say which types would have been written.
            runner.run(put_stored_keys, needed_keys(plan, exchange, self.rows()), stage="look up stored keys")
            phases: list[tuple[str, ...]] = [("ids",), ("sets",)] if plan.replaces_rows else [("ids", "sets")]
            checked: list[Checked] = []
            for phase in phases:
                specs = [
                    CheckSpec(plan, exchange, partition, phase, self.dropped)
                    for partition in range(exchange.partitions)
                ]
                found = self._checked(runner, specs)
                checked += found
                if "ids" in phase and plan.mode == MERGE:
                    self.dropped = np.unique(np.concatenate([self.dropped, *(one.dropped for one in found)]))
            read = [result.problems for result in self.results.values()]
            of_sets = [one.problems for one in checked]
            meets = sorted((meet for one in checked for meet in one.meets), key=lambda meet: meet.order)
            return Verdict(
                Problems.together([*read, Problems.of(self._ambiguous), *of_sets]),
                tuple(meets),
                sum(one.meet_count for one in checked),
                _together(checked),
                _counted(checked),
            )

    def _checked(self, runner: Runner, specs: Sequence[CheckSpec]) -> list[Checked]:
        done = 0

        rows = sum(self.rows().values())

        def shown(_: None) -> None:
            nonlocal done
            done += 1
            self.note(Progress("check", done, len(specs), rows))

        checked = runner.run(check_partition, specs, display=Display(_nothing, shown), stage="check")
        self.raise_telling_error()
        return checked

    # --- what is committed ------------------------------------------------------------------------------------------

    def settle_rows(self, targets: Stored) -> None:
        """After all checks have passed: stage for `targets` the rows that are not staged yet in their final form."""
        with timed(self.seconds, "stage"):
            self.job = replace(self.job, targets=targets)
            self.strategy.settle(self)

    def forget_staged(self, types: frozenset[str]) -> None:
        """Drop what was staged of these types; it is staged again once the checks have passed."""
        for place, result in self.staged.items():
            if place[1] in types:
                self.staged[place] = TypeResult(result.rows, waits=True)

    def held_rows(self, type_key: str) -> list[pa.RecordBatch]:
        """The rows of a type that are held in memory, in the order of the input."""
        places = sorted(place for place in self.staged if place[1] == type_key)
        return [batch for place in places for held in self.staged[place].held for batch in held.table.to_batches()]

    def discard(self) -> None:
        """Remove everything that was staged; none of it will be committed."""
        for (_, key), result in self.staged.items():
            remove_staged(self.job.targets, {key: result})
        self.staged.clear()

    # --- whole or not at all ----------------------------------------------------------------------------------------

    def digests(self) -> list[ChunkDigest]:
        """The digests of all chunks, in the order of the input."""
        return [digest for _, result in sorted(self.results.items()) if (digest := result.digest) is not None]

    def require_whole(self, counted: int | None) -> None:
        """Raise unless every chunk has one result and every row of it is staged or held.

        `counted`: how many rows the input has, where the writer of the input has counted them.
        """
        if sorted(self.results) != list(range(len(self.chunks))):
            raise not_whole(f"{len(self.results)} of {len(self.chunks)} parts of the input were read")
        if counted is not None and self.lines()[0] != counted:
            raise not_whole(f"{self.lines()[0]} of {counted} rows were read")
        for (number, key), one in self.staged.items():
            present = self.strategy.present(one)
            if present != one.rows:
                raise not_whole(f"{present} of {one.rows} rows of {key} in part {number} are staged")

    # --- progress ---------------------------------------------------------------------------------------------------

    def note(self, progress: Progress) -> None:
        """Report progress to the caller; an error in the callback is kept until the running job has ended."""
        if self.progress is None or self._telling_error is not None:
            return
        try:
            self.progress(progress)
        except Exception as error:
            self._telling_error = error

    def tell(self, progress: Progress) -> None:
        """Report progress to the caller between jobs; an error in the callback is raised."""
        self.note(progress)
        self.raise_telling_error()

    def raise_telling_error(self) -> None:
        """Raise the error of the caller's `progress`, if any: it ends the load, and nothing is committed."""
        if self._telling_error is not None:
            raise self._telling_error


def _nothing(_: Checked) -> None:
    """The display of a checked partition, which has no measures."""


def _has_edges(result: ChunkResult) -> bool:
    return any(key.startswith("edge:") for key in result.types)


def _together(checked: Sequence[Checked]) -> dict[str, RowPlaces]:
    keys = dict.fromkeys(key for one in checked for key in one.replaced)
    return {key: RowPlaces.together(one.replaced[key] for one in checked if key in one.replaced) for key in keys}


def _counted(checked: Sequence[Checked]) -> dict[str, int]:
    names = sorted({name for one in checked for name in one.cleared})
    return {name: sum(one.cleared.get(name, 0) for one in checked) for name in names}


def refuse_rejected(work: Work, verdict: Verdict) -> None:
    """Raise if the load must be rejected: all problems of the input, or the conflicting ids of a strict insert."""
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


class timed:
    """Adds the seconds that a block takes to the total of its stage."""

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self._seconds, self._stage = seconds, stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + spent
