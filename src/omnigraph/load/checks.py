"""Checks across tasks, one partition of keys at a time: repeated and stored ids, ends of edges, unique rules, cardinality.

Two phases. `ids` finds ids that are given twice or stored already: conflicts in a strict insert, rows to replace in a merge
or an update; it hands the old values of replaced rows to the partitions that need them. `sets` judges the final image. Only
merge and update must finish `ids` before `sets`: there the last line of an id wins, and earlier lines with this id are void.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import Catalog, EdgeType
from omnigraph.load.batches import ORDER
from omnigraph.load.exchange import Exchange, Writer
from omnigraph.load.kept import NULLS, cleared_values
from omnigraph.load.keys import is_counted, split, unique_roles
from omnigraph.load.parsed import LISTED_PROBLEMS, Entity, Orders, Problem, Problems
from omnigraph.load.stored import Stored
from omnigraph.storage.tables.row_places import RowPlaces
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.validation.sets import cardinality_breaks, missing_end, probe_of, unique_clashes
from omnigraph.values.columns import whole

APPEND, MERGE, OVERWRITE, UPDATE = "append", "merge", "overwrite", "update"
MODES = (OVERWRITE, APPEND, MERGE, UPDATE)

#: The tables that a partition was handed, by role.
Handed = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class KeyMeets:
    """A conflict of a strict insert: the id is stored already, or is given twice by rows without a key."""

    type_key: str
    entity_id: str
    order: int


@dataclass(frozen=True)
class Plan:
    """The input of the checks: the mode, the types that are written, and the stored tables.

    `attempt`: the number of this check of the load, from 1 on. The stored rows may differ at each attempt, so keys of stored
    rows that an earlier attempt handed out are ignored.
    """

    catalog: Catalog
    mode: str
    written: frozenset[str]
    stored: Stored
    attempt: int

    @property
    def gone(self) -> str:
        """The prefix of the roles that hold keys of stored rows which the load replaces."""
        return f"gone{self.attempt}-"

    def kept(self, word: str, type_key: str) -> str:
        """The role of keys of all stored rows, by id, source or unique rule, where they are handed to the partitions."""
        return f"kept{self.attempt}-{word} {type_key}"

    def entity(self, type_key: str) -> Entity:
        kind, _, name = type_key.partition(":")
        return self.catalog.nodes[name] if kind == "node" else self.catalog.edges[name]

    @property
    def replaces_rows(self) -> bool:
        """Whether a line replaces the stored row with its id."""
        return self.mode in (MERGE, UPDATE)

    def replaces_all(self, type_key: str) -> bool:
        """Whether no stored row of this type remains."""
        return self.mode == OVERWRITE and type_key in self.written


@dataclass(frozen=True)
class CheckSpec:
    """One partition to check. `dropped`: places of rows that a later line with the same id makes void."""

    plan: Plan
    exchange: Exchange
    partition: int
    phases: tuple[str, ...]
    dropped: Orders


@dataclass(frozen=True)
class Checked:
    """The result of checking one partition."""

    problems: Problems = field(default_factory=Problems)
    meets: tuple[KeyMeets, ...] = ()
    meet_count: int = 0
    #: Addresses of the stored rows that a merge or an update replaces, by type.
    replaced: Mapping[str, RowPlaces] = field(default_factory=dict)
    dropped: Orders = field(default_factory=lambda: np.empty(0, np.int64))
    #: How many stored values a merge replaces by null, by `Type.property`.
    cleared: Mapping[str, int] = field(default_factory=dict)


def check_partition(spec: CheckSpec) -> Checked:
    """Check the keys of one partition: ids, the final image, or both."""
    tables = spec.exchange.get(spec.partition)
    if len(spec.dropped):
        void = pa.array(spec.dropped)
        tables = {
            role: table.filter(pc.invert(pc.is_in(table[ORDER], value_set=void)))
            if ORDER in table.column_names
            else table
            for role, table in tables.items()
        }
    checked = _check_ids(spec, tables) if "ids" in spec.phases else Checked()
    if "sets" not in spec.phases:
        return checked
    found = Problems.of(_check_sets(spec.plan, tables))
    return Checked(
        Problems.together([checked.problems, found]),
        checked.meets,
        checked.meet_count,
        checked.replaced,
        checked.dropped,
        checked.cleared,
    )


# --- ids --------------------------------------------------------------------------------------------------------------


def _check_ids(spec: CheckSpec, tables: Handed) -> Checked:
    plan = spec.plan
    problems: list[Problem] = []
    meets: list[KeyMeets] = []
    dropped: list[Orders] = []
    replaced: dict[str, RowPlaces] = {}
    cleared: dict[str, int] = {}
    for role, keys in tables.items():
        word, _, type_key = role.partition(" ")
        if word != "id":
            continue
        entity = plan.entity(type_key)
        again = _given_again(keys)
        if plan.mode == MERGE:
            dropped.append(_all_but_last(keys, again))
            problems += _collapsed(entity, keys, again, tables.get("alias"))
        else:
            for entity_id, order in again:
                if plan.mode == UPDATE:
                    told = (
                        f"the id {entity_id!r} of {entity.name} is given twice; an update takes one line for each row"
                    )
                    problems.append(Problem(order, told))
                elif entity.key is None:
                    meets.append(KeyMeets(type_key, entity_id, order))
                else:
                    problems.append(Problem(order, _twice(entity, entity_id)))
        if plan.replaces_all(type_key) or not plan.stored.pins[type_key].row_count:
            continue
        if not plan.replaces_rows:
            meets += _stored_already(plan, tables, type_key, keys)
            continue
        replaced[type_key] = _replaced(spec, tables, entity, keys)
        if NULLS in keys.column_names:
            void = pa.array(_all_but_last(keys, again), pa.int64())
            cleared |= cleared_values(
                entity, keys.filter(pc.invert(pc.is_in(keys[ORDER], value_set=void))), plan.stored
            )
    meets.sort(key=lambda meet: meet.order)
    return Checked(
        Problems.of(problems),
        tuple(meets[:LISTED_PROBLEMS]),
        len(meets),
        replaced,
        np.concatenate(dropped) if dropped else np.empty(0, np.int64),
        cleared,
    )


def _twice(entity: Entity, entity_id: str) -> str:
    assert entity.key is not None
    name = f"{entity.name}.{entity.key[0]}" if len(entity.key) == 1 else f"{entity.name}({', '.join(entity.key)})"
    return f"@unique violation on {name}: the key {entity_id!r} is given twice"


def _given_again(keys: pa.Table) -> list[tuple[str, int]]:
    """Every repetition of an id after its first row, as pairs of id and place, in the order of the input."""
    if pc.count_distinct(keys["id"]).as_py() == keys.num_rows:
        return []
    firsts = keys.group_by("id").aggregate([(ORDER, "min"), (ORDER, "count")])
    many = firsts.filter(pc.greater(firsts[f"{ORDER}_count"], 1))
    rows = keys.filter(pc.is_in(keys["id"], value_set=many["id"].combine_chunks()))
    later = rows.filter(pc.invert(pc.is_in(rows[ORDER], value_set=many[f"{ORDER}_min"].combine_chunks())))
    ordered = later.sort_by(ORDER)
    return list(zip(ordered["id"].to_pylist(), ordered[ORDER].to_pylist(), strict=True))


def _collapsed(
    entity: Entity, keys: pa.Table, again: list[tuple[str, int]], aliases: pa.Table | None
) -> Iterator[Problem]:
    """Problems of rows that claim different ids but turn out to have the same id: two rows, not a later line of one row."""
    if aliases is None or not again:
        return
    own = aliases.filter(pc.equal(aliases["type_key"], entity.type_key))
    twice = pa.array({entity_id for entity_id, _ in again}, pa.string())
    for row in (
        own.filter(pc.is_in(own["id"], value_set=twice))
        .group_by("id")
        .aggregate([("spelled", "count_distinct"), ("spelled", "count"), ("spelled", "min"), ("order", "max")])
        .to_pylist()
    ):
        plain = pc.sum(pc.equal(keys["id"], row["id"])).as_py() > row["spelled_count"]
        if plain or row["spelled_count_distinct"] > 1:
            message = (
                f"two nodes of {entity.name} have one id: {row['spelled_min']!r} and {row['id']!r} are spellings of it"
            )
            yield Problem(row["order_max"], message)


def _all_but_last(keys: pa.Table, again: list[tuple[str, int]]) -> Orders:
    if not again:
        return np.empty(0, np.int64)
    rows = keys.filter(pc.is_in(keys["id"], value_set=pa.array({entity_id for entity_id, _ in again}, pa.string())))
    last = rows.group_by("id").aggregate([(ORDER, "max")])[f"{ORDER}_max"].combine_chunks()
    void: Orders = rows.filter(pc.invert(pc.is_in(rows[ORDER], value_set=last)))[ORDER].to_numpy()
    return void


def _stored_rows(
    plan: Plan,
    tables: Handed,
    column: str,
    type_key: str,
    values: pa.Array,
    columns: Sequence[str],
    *,
    with_row_address: bool = False,
) -> pa.Table:
    """The stored rows whose `id` or `src` is among `values`, from the keys that were handed out, else by a look-up."""
    handed = tables.get(plan.kept(column, type_key))
    if handed is None:
        return plan.stored.rows_with(type_key, column, values, columns, with_row_address=with_row_address)
    names = [*columns, ROW_ADDRESS] if with_row_address else list(columns)
    return handed.filter(pc.is_in(handed[column], value_set=values)).select(names)


def _stored_already(plan: Plan, tables: Handed, type_key: str, keys: pa.Table) -> list[KeyMeets]:
    ids = keys["id"].combine_chunks()
    found = _stored_rows(plan, tables, "id", type_key, ids, ["id"])["id"].combine_chunks()
    if not len(found):
        return []
    rows = keys.filter(pc.is_in(keys["id"], value_set=found))
    pairs = zip(rows["id"].to_pylist(), rows[ORDER].to_pylist(), strict=True)
    return [KeyMeets(type_key, entity_id, order) for entity_id, order in pairs]


def replaced_columns(entity: Entity) -> tuple[str, ...]:
    """The columns of a stored row that other checks need before it is replaced: its id, counted source and unique values."""
    counted = ["src"] if isinstance(entity, EdgeType) and is_counted(entity) else []
    return tuple(dict.fromkeys(["id", *counted, *(name for columns in entity.uniques for name in columns)]))


def _replaced(spec: CheckSpec, tables: Handed, entity: Entity, keys: pa.Table) -> RowPlaces:
    """The addresses of the stored rows that the load replaces; hands their unique values and sources to the other checks."""
    counted = isinstance(entity, EdgeType) and is_counted(entity)
    columns = replaced_columns(entity)
    ids = keys["id"].combine_chunks()
    found = _stored_rows(spec.plan, tables, "id", entity.type_key, ids, columns, with_row_address=True)
    partitions = spec.exchange.partitions
    if found.num_rows and len(columns) > 1:
        gone = _with_orders(found.select(list(columns)), keys)
        handed: dict[int, dict[str, pa.Table]] = {}
        listed = list(unique_roles(entity, gone, [], prefix=spec.plan.gone))
        if counted:
            sources = gone["src"].combine_chunks()
            listed.append((f"{spec.plan.gone}src {entity.type_key}", gone.select(["id", "src", "by"]), sources))
        for role, table, texts in listed:
            for part, rows in split(table, texts, partitions):
                handed.setdefault(part, {})[role] = rows
        spec.exchange.put(Writer(f"{spec.plan.gone}{entity.id:x}-{spec.partition:05d}"), handed)
    # A row that an earlier write of the same group has made is in no table yet: it has no address.
    return RowPlaces.of(found[ROW_ADDRESS].drop_null())


def _with_orders(found: pa.Table, keys: pa.Table) -> pa.Table:
    """Stored rows with the place of the line that replaces each row, in the column `by`."""
    last = keys.group_by("id").aggregate([(ORDER, "max")])
    places = pc.index_in(found["id"], value_set=last["id"].combine_chunks()).combine_chunks()
    return found.append_column("by", last[f"{ORDER}_max"].combine_chunks().take(places))


# --- the final image --------------------------------------------------------------------------------------------------


def _check_sets(plan: Plan, tables: Handed) -> Iterator[Problem]:
    for role, rows in tables.items():
        word, _, type_key = role.partition(" ")
        if word in ("src", "dst"):
            yield from _ends(plan, tables, plan.catalog.edges[type_key.partition(":")[2]], word, rows)
        elif word.startswith("unique"):
            yield from _unique(plan, plan.entity(type_key), int(word.removeprefix("unique")), rows, tables)
    for edge in plan.catalog.edges.values():
        if edge.type_key in plan.written and is_counted(edge):
            yield from _cardinality(plan, edge, tables)


def _ends(plan: Plan, tables: Handed, edge: EdgeType, end: str, rows: pa.Table) -> Iterator[Problem]:
    node_key = f"node:{edge.from_type if end == 'src' else edge.to_type}"
    incoming = tables.get(f"id {node_key}")
    if incoming is not None:
        rows = rows.filter(pc.invert(pc.is_in(rows[end], value_set=incoming["id"].combine_chunks())))
    refused = tables.get(f"refused {node_key}")
    if refused is not None:
        # The refused line is reported already. Its missing node follows from that and would hide other problems.
        rows = rows.filter(pc.invert(pc.is_in(rows[end], value_set=refused["id"].combine_chunks())))
    if rows.num_rows and not plan.replaces_all(node_key):
        ids = pc.unique(rows[end])
        known = _stored_rows(plan, tables, "id", node_key, whole(ids), ["id"])["id"].combine_chunks()
        rows = rows.filter(pc.invert(pc.is_in(rows[end], value_set=known)))
    kept = edge.type_key not in plan.written
    for missing, order in zip(rows[end].to_pylist(), rows[ORDER].to_pylist(), strict=True):
        message = missing_end(edge, end, missing).message
        yield Problem(None, f"{message}; a stored edge still needs it") if kept else Problem(order, message)


def _unique(
    plan: Plan, entity: Entity, number: int, rows: pa.Table, tables: Mapping[str, pa.Table]
) -> Iterator[Problem]:
    columns = entity.uniques[number]
    names = list(dict.fromkeys(["id", *columns]))
    stored = rows.select(names).slice(0, 0)
    if not plan.replaces_all(entity.type_key):
        probe = probe_of(columns, rows.schema)
        handed = tables.get(plan.kept(f"unique{number}", entity.type_key))
        if handed is None:
            stored = plan.stored.rows_with(entity.type_key, probe, rows[probe].combine_chunks(), names)
        else:
            stored = handed.select(names)
        gone = tables.get(f"{plan.gone}unique{number} {entity.type_key}")
        if gone is not None:
            stored = stored.filter(pc.invert(pc.is_in(stored["id"], value_set=gone["id"].combine_chunks())))
    orders = rows[ORDER].to_pylist() if stored.num_rows or rows.num_rows else []
    for violation in unique_clashes(entity, columns, stored, rows):
        yield Problem(orders[violation.row] if violation.row is not None else None, violation.message)


def _cardinality(plan: Plan, edge: EdgeType, tables: Handed) -> Iterator[Problem]:
    """Breaks of cardinality at every source that the load touches, including sources whose edges it replaces or removes."""
    empty = pa.table({"id": pa.array([], pa.string()), "src": pa.array([], pa.string())})
    rows = tables.get(f"src {edge.type_key}", empty.append_column(ORDER, pa.array([], pa.int64())))
    if _only_lines_count(plan, edge) and not _has_too_many(edge, rows["src"]):
        return
    gone = tables.get(f"{plan.gone}src {edge.type_key}", empty.append_column("by", pa.array([], pa.int64())))
    sources = whole(pc.unique(pa.chunked_array([*rows["src"].chunks, *gone["src"].chunks], pa.string())))
    node_key = f"node:{edge.from_type}"
    if plan.replaces_all(node_key):
        # A source that is gone needs no edges. A source that is merely missing is reported elsewhere.
        nodes = tables.get(f"id {node_key}", empty)
        sources = sources.filter(pc.is_in(sources, value_set=nodes["id"].combine_chunks()))
    final = [*rows["src"].chunks]
    if not plan.replaces_all(edge.type_key):
        kept = _stored_rows(plan, tables, "src", edge.type_key, sources, ["id", "src"])
        kept = kept.filter(pc.invert(pc.is_in(kept["id"], value_set=gone["id"].combine_chunks())))
        final += kept["src"].chunks
    broken = list(cardinality_breaks(edge, sources, pa.chunked_array(final, pa.string())))
    if not broken:
        return
    places = dict(zip(gone["src"].to_pylist(), gone["by"].to_pylist(), strict=True))
    places |= dict(zip(rows["src"].to_pylist(), rows[ORDER].to_pylist(), strict=True))
    for violation in broken:
        place = places.get(sources[violation.row].as_py()) if violation.row is not None else None
        yield Problem(place, violation.message)


def _only_lines_count(plan: Plan, edge: EdgeType) -> bool:
    """Whether only rows of the load count for the cardinality of an edge type: nothing is stored, and no minimum is set."""
    stored = not plan.replaces_all(edge.type_key) and plan.stored.pins[edge.type_key].row_count > 0
    return not stored and edge.cardinality.minimum == 0


def _has_too_many(edge: EdgeType, sources: pa.ChunkedArray) -> bool:
    """Whether any source has more edges here than the edge type allows. A quick test that does not say which source."""
    high = edge.cardinality.maximum
    if high is None or not len(sources):
        return False
    most: int = pc.max(pc.value_counts(sources).field("counts")).as_py()
    return most > high
