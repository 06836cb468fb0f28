"""The reading tasks: a chunk of the input becomes batches, keys for the checks, and staged fragments.

Every task is a pure function of its spec and may be repeated: generated ids depend only on the job and the place of the row,
keys go to objects under the task's own name, and only staged fragments that the result names count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph import failpoints
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import OmnigraphError
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.load.batches import Batch, Judged, judge_rows, keys_of, without
from omnigraph.load.checks import MERGE, UPDATE
from omnigraph.load.chunks import Chunk
from omnigraph.load.digest import ChunkDigest, Digesting
from omnigraph.load.exact import Rules
from omnigraph.load.exchange import Exchange, Writer
from omnigraph.load.identify import ALIASES
from omnigraph.load.kept import nullable_names
from omnigraph.load.keys import roles, split
from omnigraph.load.parsed import Ignored, Orders, Problems, Rows
from omnigraph.load.refused import Refused, together
from omnigraph.load.rename_ends import rename_ends
from omnigraph.load.stored import Stored
from omnigraph.load.vectors import embedded
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.tables.staged import staged_files, write_rows

failpoints.declare("load.chunk_read", "load.chunk_staged")

_log = logging.getLogger(__name__)
#: How many first edges of a type are compared with stored edges, to detect a repeated load.
FIRST_EDGES = 20
_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class Job:
    """The parameters that all reading tasks of a load share. `targets`: the tables that fragments are staged for."""

    job_id: str
    rules: Rules
    mode: str
    targets: Stored
    exchange: Exchange
    embedder: Embedder


@dataclass(frozen=True)
class DigestWay:
    """How contents are digested. `ordered`: the order of the rows counts."""

    ordered: bool = True


@dataclass(frozen=True)
class ChunkSpec:
    """One chunk to read. The optional fields control a second reading, when more is known than at the first."""

    job: Job
    chunk: Chunk
    number: int
    #: Places of rows that are void because a later line has the same id.
    dropped: Orders = field(default_factory=lambda: _NOTHING)
    #: Alternative spellings of ids that edges of this load may use; None at the first reading.
    aliases: pa.Table | None = None
    #: Types whose rows can be staged; rows of other types wait. None means all types.
    stages: frozenset[str] | None = None
    #: The types to read; None means all.
    only: frozenset[str] | None = None
    #: Whether texts may be embedded: only once all checks have passed.
    embeds: bool = False
    #: Whether the task puts its keys into the exchange.
    puts_keys: bool = True
    #: How the contents are digested; None: no digest is made.
    digest: DigestWay | None = None


@dataclass(frozen=True)
class DigestSpec:
    """One chunk to digest, and the rules to read it by."""

    rules: Rules
    chunk: Chunk
    way: DigestWay


@dataclass(frozen=True)
class TypeResult:
    """The rows of one type in a chunk: how many there are, and the fragments they were staged in."""

    rows: int = 0
    fragments: tuple[FragmentMetadata, ...] = ()
    #: Whether rows wait for vectors, or for a fork of their table, so that nothing was staged.
    waits: bool = False
    #: Whether the rows were read after the checks, so that they need no further reading.
    settled: bool = False
    held: tuple[Batch, ...] = ()


@dataclass(frozen=True)
class ChunkResult:
    """The result of reading a chunk."""

    number: int
    types: Mapping[str, TypeResult]
    problems: Problems
    aliases: pa.Table
    lines: int
    skipped: int
    ignored: Ignored
    size: int
    begins: Orders | None
    #: How many places in the input the chunk uses up.
    span: int
    #: Places of rows that were dropped because a later line of the same piece has their id.
    void: Orders
    #: Ids of nodes whose lines were refused, by type.
    refused: Refused
    #: The keys by type, when the task does not put them into the exchange.
    keys: Mapping[str, Sequence[pa.Table]] = field(default_factory=dict)
    #: The digest of the chunk; None when it was not asked for.
    digest: ChunkDigest | None = None
    #: The ends of the first edges of each type whose ids are generated.
    first_edges: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True)
class ChunkMeasure:
    """What is reported of a chunk that was read: its number and its number of rows."""

    number: int
    rows: int


def measure_chunk(result: ChunkResult) -> ChunkMeasure:
    return ChunkMeasure(result.number, sum(one.rows for one in result.types.values()))


def digest_chunk(spec: DigestSpec) -> ChunkDigest:
    """The digest of a chunk that is read only for that."""
    digesting = Digesting(ordered=spec.way.ordered)
    for piece in spec.chunk.pieces(spec.rules):
        digesting.add(piece)
    return digesting.digest()


def read_chunk(spec: ChunkSpec) -> ChunkResult:
    """Read a chunk and keep its rows in memory, for small loads."""
    return _carry_out(spec, _hold)


def stage_chunk(spec: ChunkSpec) -> ChunkResult:
    """Read a chunk and stage its rows as fragments that belong to no version yet."""
    return _carry_out(spec, _stage)


def remove_staged(targets: Stored, types: Mapping[str, TypeResult]) -> None:
    """Remove fragments that will not be committed, best effort; cleanup removes the rest."""
    doomed = {key: result.fragments for key, result in types.items() if result.fragments}
    if not doomed:
        return
    paths = [path for key, parts in doomed.items() for path in staged_files(targets.pins[key].location, parts)]
    remove_files(open_store(targets.root), paths)


def remove_files(store: ObjectStore, paths: Sequence[str]) -> None:
    """Remove staged files and folders of large blobs, best effort; cleanup removes the rest."""
    for path in paths:
        try:
            (store.delete if path.rpartition("/")[2].count(".") else store.delete_prefix)(path)
        except OmnigraphError as error:
            _log.warning("staged file %s could not be removed: %s", path, error)


def _carry_out(spec: ChunkSpec, keep: Callable[[ChunkSpec, Batch, bool], TypeResult]) -> ChunkResult:
    types: dict[str, TypeResult] = {}
    problems: list[Problems] = []
    aliases: list[pa.Table] = []
    keys: dict[str, list[pa.Table]] = {}
    first_edges: dict[str, pa.Table] = {}
    void: list[Orders] = [_NOTHING]
    refused: list[Refused] = []
    lines = skipped = size = 0
    ignored = Ignored()
    begins: Orders | None = None
    digesting = None if spec.digest is None else Digesting(ordered=spec.digest.ordered)
    try:
        for piece in spec.chunk.pieces(spec.job.rules):
            if digesting is not None:
                digesting.add(piece)
            judged = [_judged(spec, rows) for rows in piece.reading.rows]
            found = [*piece.reading.problems, *(problem for one in judged for problem in one.problems)]
            problems.append(Problems.of(found))
            refused.append(piece.reading.refused)
            for one in judged:
                aliases.append(one.aliases)
                key = one.batch.entity.type_key
                keys.setdefault(key, []).append(keys_of(one.batch, counts_nulls=_counts_nulls(spec, one.batch)))
                if key not in first_edges and isinstance(one.batch.entity, EdgeType) and not one.batch.may_meet.any():
                    first_edges[key] = one.batch.table.select(["src", "dst"]).slice(0, FIRST_EDGES)
                fit = _last_of_each(one.batch, spec.job.mode)
                if fit is not one.batch:
                    void.append(np.setdiff1d(one.batch.orders, fit.orders, assume_unique=True))
                fit = without(fit, spec.dropped) if len(spec.dropped) else fit
                if spec.only is None or key in spec.only:
                    broken = any(part.total for part in problems)
                    types[key] = _together(types.get(key), keep(spec, fit, broken))
            lines, skipped, size = lines + piece.lines, skipped + piece.reading.skipped, size + piece.size
            ignored += piece.reading.ignored
            begins = piece.begins if piece.begins is not None else begins
            failpoints.hit("load.chunk_read")
        if spec.puts_keys:
            put_keys(spec, keys, aliases, together(refused))
        failpoints.hit("load.chunk_staged")
    except BaseException:
        remove_staged(spec.job.targets, types)
        raise
    return ChunkResult(
        number=spec.number,
        types=types,
        problems=Problems.together(problems),
        aliases=pa.concat_tables(aliases) if aliases else ALIASES.empty_table(),
        lines=lines,
        skipped=skipped,
        ignored=ignored,
        size=size,
        begins=begins,
        span=max(lines, size, 1),
        void=np.concatenate(void),
        refused=together(refused),
        keys={} if spec.puts_keys else keys,
        digest=None if digesting is None else digesting.digest(),
        first_edges=first_edges,
    )


def _judged(spec: ChunkSpec, rows: Rows) -> Judged:
    if spec.aliases is not None:
        rows = rename_ends(rows, spec.aliases)
    return judge_rows(rows, spec.job.job_id, spec.job.targets if spec.job.mode == UPDATE else None)


def _counts_nulls(spec: ChunkSpec, batch: Batch) -> bool:
    """Whether rows of a merge may replace stored rows whose values they lack, which must then be counted."""
    is_stored = spec.job.targets.pins[batch.entity.type_key].row_count > 0
    return spec.job.mode == MERGE and is_stored and bool(nullable_names(batch.entity))


def _last_of_each(batch: Batch, mode: str) -> Batch:
    """In a merge the last line of an id wins; rows that are void within one piece are never staged."""
    if mode != MERGE or not batch.may_meet.any():
        return batch
    ids = batch.table["id"].combine_chunks().dictionary_encode()
    if len(ids.dictionary) == len(ids):
        return batch
    last = np.zeros(len(ids.dictionary), np.int64)
    np.maximum.at(last, ids.indices.to_numpy(), np.arange(len(ids)))
    void = np.setdiff1d(np.arange(len(ids)), last)
    return without(batch, batch.orders[void])


# --- what becomes of the rows -----------------------------------------------------------------------------------------


def _hold(spec: ChunkSpec, batch: Batch, broken: bool) -> TypeResult:
    return TypeResult(len(batch.orders), held=(batch,))


def _stage(spec: ChunkSpec, batch: Batch, broken: bool) -> TypeResult:
    count = len(batch.orders)
    if broken or not count:
        return TypeResult(count, settled=spec.embeds)
    can_stage = spec.stages is None or batch.entity.type_key in spec.stages
    if not can_stage or (batch.waits_for_vectors and not spec.embeds):
        return TypeResult(count, waits=True)
    if batch.waits_for_vectors:
        batch = embedded(batch, spec.job.embedder)
    table = spec.job.targets.table(batch.entity.type_key)
    return TypeResult(count, tuple(write_rows(table, batch.table)), settled=spec.embeds)


def _together(before: TypeResult | None, now: TypeResult) -> TypeResult:
    if before is None:
        return now
    return TypeResult(
        before.rows + now.rows,
        before.fragments + now.fragments,
        before.waits or now.waits,
        before.settled or now.settled,
        before.held + now.held,
    )


# --- keys -------------------------------------------------------------------------------------------------------------


def put_keys(
    spec: ChunkSpec, keys: Mapping[str, Sequence[pa.Table]], aliases: Sequence[pa.Table], refused: Refused
) -> None:
    """Hand the keys of a chunk to the partitions that check them."""
    exchange = spec.job.exchange
    parts: dict[int, dict[str, pa.Table]] = {}
    for type_key, tables in keys.items():
        kind, _, name = type_key.partition(":")
        catalog = spec.job.rules.catalog
        entity = catalog.nodes[name] if kind == "node" else catalog.edges[name]
        for role, table, texts in roles(entity, pa.concat_tables(tables)):
            for part, rows in split(table, texts, exchange.partitions):
                parts.setdefault(part, {})[role] = rows
    spelled = pa.concat_tables([ALIASES.empty_table(), *aliases])
    for part, rows in split(spelled, spelled["id"].combine_chunks(), exchange.partitions):
        parts.setdefault(part, {})["alias"] = rows
    for type_key, ids in refused.items():
        for part, rows in split(pa.table({"id": ids}), ids, exchange.partitions):
            parts.setdefault(part, {})[f"refused {type_key}"] = rows
    # The second reading of a chunk has its own number, and replaces the keys of the first.
    exchange.put(Writer(f"chunk-{spec.number:06d}", int(spec.aliases is not None)), parts)
