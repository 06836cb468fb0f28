"""Where the rows of a load are until its commit: held in memory, or staged as fragments while they are read.

Both strategies read the same chunks, check the same keys and commit the same rows. A small load holds its rows: nothing is
written before all checks have passed. A large load stages rows while it reads. Some rows are read again after the checks:
rows that could not be staged (vectors are missing, the table is still shared with another branch), and staged parts with rows
that a later line with the same id makes void.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from lance.fragment import FragmentMetadata

from omnigraph.errors import OmnigraphError
from omnigraph.load.batches import Batch, without
from omnigraph.load.exchange import Exchange, InMemory
from omnigraph.load.model import Progress
from omnigraph.load.tasks import (
    ChunkMeasure,
    ChunkResult,
    ChunkSpec,
    TypeResult,
    measure_chunk,
    put_keys,
    read_chunk,
    remove_staged,
    stage_chunk,
)
from omnigraph.load.vectors import embedded
from omnigraph.spark.runner import Display, Inline, Runner
from omnigraph.storage.tables.staged import staged_files, write_rows
from omnigraph.storage.tables.table import Table

if TYPE_CHECKING:
    from omnigraph.load.work import Work


class Strategy(ABC):
    """Base of the two strategies. `exchange`: carries keys to the checks."""

    exchange: Exchange
    #: The function that reads a chunk.
    task: Callable[[ChunkSpec], ChunkResult]
    #: Whether the reading tasks put their keys into the exchange themselves.
    puts_keys: bool
    #: Whether a shared table is forked before the commit, so that rows can be staged for the fork.
    forks_ahead: bool

    @abstractmethod
    def stages(self, types: frozenset[str], shared: frozenset[str]) -> frozenset[str] | None:
        """The types whose rows are staged while they are read; None means all. `shared`: types of shared tables."""

    @abstractmethod
    def took(self, spec: ChunkSpec, result: ChunkResult) -> None:
        """Take note that a chunk was read and its result is in this process."""

    @abstractmethod
    def check_runner(self, runner: Runner) -> Runner:
        """The runner of the checks. `runner`: the runner of the reading tasks."""

    @abstractmethod
    def settle(self, work: Work) -> None:
        """After all checks have passed: hold or stage every remaining row in its final form."""

    @abstractmethod
    def present(self, result: TypeResult) -> int:
        """How many rows of this chunk and type are ready to be committed."""

    @abstractmethod
    def fragments(self, work: Work, type_key: str, table: Table) -> tuple[Sequence[FragmentMetadata], list[str]]:
        """The fragments of a type for this table, in the order of the input, and the files that this call has written."""


@dataclass(frozen=True)
class Held(Strategy):
    """Keeps the rows in memory until the commit."""

    exchange: Exchange
    task = staticmethod(read_chunk)
    puts_keys = False
    forks_ahead = False

    def stages(self, types: frozenset[str], shared: frozenset[str]) -> frozenset[str] | None:
        return None

    def took(self, spec: ChunkSpec, result: ChunkResult) -> None:
        put_keys(spec, result.keys, [result.aliases], result.refused)

    def check_runner(self, runner: Runner) -> Runner:
        return Inline()

    def settle(self, work: Work) -> None:
        for place, result in work.staged.items():
            batches = tuple(_fit(work, batch) for batch in result.held)
            work.staged[place] = replace(result, rows=sum(len(batch.orders) for batch in batches), held=batches)

    def present(self, result: TypeResult) -> int:
        return sum(len(batch.orders) for batch in result.held)

    def fragments(self, work: Work, type_key: str, table: Table) -> tuple[Sequence[FragmentMetadata], list[str]]:
        written = write_rows(table, work.held_rows(type_key))
        return written, staged_files(table.location, written)


def held() -> Held:
    """The strategy of a small load."""
    return Held(InMemory())


def _fit(work: Work, batch: Batch) -> Batch:
    if len(work.dropped):
        batch = without(batch, work.dropped)
    return embedded(batch, work.job.embedder) if batch.waits_for_vectors else batch


@dataclass(frozen=True)
class Staged(Strategy):
    """Keeps the rows as fragments that belong to no version yet."""

    exchange: Exchange
    task = staticmethod(stage_chunk)
    puts_keys = True
    forks_ahead = True

    def stages(self, types: frozenset[str], shared: frozenset[str]) -> frozenset[str] | None:
        return types - shared if shared else None

    def took(self, spec: ChunkSpec, result: ChunkResult) -> None:
        """Does nothing: the reading task has put the keys itself."""

    def check_runner(self, runner: Runner) -> Runner:
        return runner

    def settle(self, work: Work) -> None:
        specs = [
            ChunkSpec(
                work.job,
                work.chunks[number],
                number,
                dropped=work.dropped,
                aliases=work.aliases,
                only=types,
                embeds=True,
                puts_keys=False,
            )
            for number, result in work.results.items()
            if (types := _unsettled(work, number, result))
        ]
        total, done, rows = len(specs), 0, sum(work.rows().values())

        def shown(_: ChunkMeasure) -> None:
            nonlocal done
            done += 1
            work.note(Progress("stage", done, total, rows))

        display = Display(measure_chunk, shown)
        results = work.runner.run(stage_chunk, specs, display=display, unused=work.keep, stage="stage")
        for result in in_order(specs, results):
            before = {key: work.staged[result.number, key] for key in result.types}
            for key, one in result.types.items():
                work.staged[result.number, key] = one
            remove_staged(work.job.targets, before)
        work.raise_telling_error()

    def present(self, result: TypeResult) -> int:
        return sum(fragment.physical_rows for fragment in result.fragments)

    def fragments(self, work: Work, type_key: str, table: Table) -> tuple[Sequence[FragmentMetadata], list[str]]:
        places = sorted(place for place in work.staged if place[1] == type_key)
        return [fragment for place in places for fragment in work.staged[place].fragments], []


def _unsettled(work: Work, number: int, result: ChunkResult) -> frozenset[str]:
    """The types of a chunk that have waiting rows, or rows that a check has voided."""
    base = work.chunks[number].base
    end = base + result.span
    here = work.dropped[(work.dropped >= base) & (work.dropped < end)]
    touched = len(np.setdiff1d(here, result.void)) > 0
    return frozenset(
        key for key in result.types if (waiting := work.staged[number, key]).waits or (touched and not waiting.settled)
    )


def in_order(specs: Sequence[ChunkSpec], results: Sequence[ChunkResult]) -> Sequence[ChunkResult]:
    """The results, after checking that each belongs to the spec at its position; raises if not."""
    if [spec.number for spec in specs] != [result.number for result in results]:
        raise not_whole(
            f"{len(results)} results came for {len(specs)} parts of the input, or others than were asked for"
        )
    return results


def not_whole(found: str) -> OmnigraphError:
    """The error of a load that lacks some of its parts or rows."""
    return OmnigraphError(f"the load is not whole: {found}; nothing was written, try again and report this")
