"""Mutations: single rows at two sizes of the graph, many rows in one query, many threads; against bare Lance or one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import omnigraph
from bench.measure import Floor, Row, benchmark, in_turn, scratch_folder, seconds, summary
from bench.mutation_graphs import Sized, call, edge_rows, fresh_name, staff_rows
from omnigraph.ids import new_ulid
from tests.mutation.org_graph import SCHEMA

SIZES = (1_000, 1_000_000)
GROWTH = 1.5
THREADS = 8
ROWS_AT_ONCE = 10_000
_ROUNDS = 30
_REPEATS = 7

Action = Callable[[], object]


@benchmark("mutations.single")
def single_rows() -> Iterator[Row]:
    """Each kind of small mutation, on a small and on a large graph and with bare Lance on tables of the same size, in turn."""
    with scratch_folder() as folder:
        small, large = (Sized(size, folder) for size in SIZES)
        for what, ours, bare in (
            ("insert a node", _insert, _bare_insert),
            ("update a node", _update, _bare_update),
            ("delete a node with its edges", _delete, _bare_delete),
            ("insert a node and an edge", _insert_both, _bare_insert_both),
        ):
            actions = [ours(small), ours(large), bare(small), bare(large)]

            def upkeep(turn: int) -> None:
                small.bare_manifest.upkeep(turn)
                large.bare_manifest.upkeep(turn)

            at_small, at_large, bare_small, bare_large = in_turn(actions, _ROUNDS, upkeep)
            yield Row(f"{what}, {small.size:,} rows", at_small, Floor("bare Lance", bare_small))
            yield Row(f"{what}, {large.size:,} rows", at_large, Floor("bare Lance", bare_large))
            floor = Floor(f"at {small.size:,} rows", at_small)
            yield Row(f"{what}, {large.size:,} rows", at_large, floor, goal=GROWTH * at_small.median)


# --- ours -------------------------------------------------------------------------------------------------------------


def _insert(sized: Sized) -> Action:
    return lambda: call(sized.graph, "put", h=fresh_name(), n=1)


def _update(sized: Sized) -> Action:
    numbers = count()
    return lambda: _expect(call(sized.graph, "relevel", h=f"s{next(numbers):07}", n=2), nodes=1)


def _delete(sized: Sized) -> Action:
    # Every third, so that each still has both of its edges.
    numbers = count(100, 3)
    return lambda: _expect(call(sized.graph, "drop_staff", h=f"s{next(numbers):07}"), nodes=1, edges=2)


def _insert_both(sized: Sized) -> Action:
    return lambda: call(sized.graph, "put_link", h=fresh_name(), n=1, b="s0000000")


def _expect(result: omnigraph.MutationResult, nodes: int = 0, edges: int = 0) -> None:
    assert (result.affected_nodes, result.affected_edges) == (nodes, edges), (
        "the answer is wrong, its time means nothing"
    )


# --- the floor: the look-ups and writes that can not be left out ------------------------------------------------------


def _bare_insert(sized: Sized) -> Action:
    def insert() -> None:
        name = fresh_name()
        assert sized.bare_staff.count_rows(f"id = '{name}'") == 0
        sized.bare_staff.insert(staff_rows([name]))
        sized.bare_manifest.publish()

    return insert


def _bare_update(sized: Sized) -> Action:
    numbers = count()

    def update() -> None:
        row = staff_rows([f"s{next(numbers):07}"])
        sized.bare_staff.merge_insert("id").when_matched_update_all().execute(row)
        sized.bare_manifest.publish()

    return update


def _bare_delete(sized: Sized) -> Action:
    numbers = count(100, 3)

    def delete() -> None:
        name = f"s{next(numbers):07}"
        sized.bare_staff.delete(f"id = '{name}'")
        sized.bare_edges.delete(f"src = '{name}' or dst = '{name}'")
        sized.bare_manifest.publish()

    return delete


def _bare_insert_both(sized: Sized) -> Action:
    def insert() -> None:
        name = fresh_name()
        assert sized.bare_staff.count_rows(f"id in ('{name}', 's0000000')") == 1
        sized.bare_staff.insert(staff_rows([name]))
        sized.bare_edges.insert(edge_rows([new_ulid()], [name], ["s0000000"]))
        sized.bare_manifest.publish()

    return insert


# --- many -------------------------------------------------------------------------------------------------------------


@benchmark("mutations.many")
def many_rows_in_one_query() -> Iterator[Row]:
    """As many inserts as statements in one query: compiling included, and again with the query known."""
    with scratch_folder() as folder:
        sized = Sized(SIZES[0], folder)
        texts = iter([_inserts() for _ in range(_REPEATS + 3)])
        current: list[str] = []

        def first_time() -> None:
            current[:] = [next(texts)]
            _expect(sized.graph.mutate(current[0]), nodes=ROWS_AT_ONCE)

        def again() -> None:
            _expect(sized.graph.mutate(current[0]), nodes=ROWS_AT_ONCE)

        def bare() -> None:
            names = [fresh_name() for _ in range(ROWS_AT_ONCE)]
            sized.bare_staff.insert(staff_rows(names))
            sized.bare_manifest.publish()

        fresh, known, floor = in_turn([first_time, again, bare], _REPEATS)
        yield Row(f"{ROWS_AT_ONCE:,} inserts in one query", fresh, Floor("bare Lance", floor))
        yield Row(f"{ROWS_AT_ONCE:,} upserts in one query that is compiled already", known, Floor("bare Lance", floor))


def _inserts() -> str:
    statements = (f'insert Staff {{ handle: "{fresh_name()}", level: 1 }}' for _ in range(ROWS_AT_ONCE))
    return f"query q() {{ {' '.join(statements)} }}"


@benchmark("mutations.threads")
def threads_against_one_by_one() -> Iterator[Row]:
    """Single-row inserts of different keys: all at once from as many threads, and one after the other."""
    with scratch_folder() as folder, ThreadPoolExecutor(THREADS) as pool:
        graph = omnigraph.init(folder / "graph", SCHEMA)
        together, one_by_one = [], []

        def insert(_: int) -> None:
            call(graph, "put", h=fresh_name(), n=1)

        for turn in range(_ROUNDS):
            in_threads = seconds(partial(_all, pool.map, insert))
            in_sequence = seconds(partial(_all, map, insert))
            if turn:
                together.append(in_threads)
                one_by_one.append(in_sequence)
        assert graph.snapshot().entry("node:Staff").row_count == 2 * THREADS * _ROUNDS
        floor = Floor("one by one", summary(one_by_one))
        yield Row(
            f"{THREADS} threads insert one row each", summary(together), floor, goal=GROWTH * floor.measure.median
        )


def _all(mapping: Callable[..., Iterator[None]], action: Callable[[int], None]) -> None:
    list(mapping(action, range(THREADS)))


# --- contention -------------------------------------------------------------------------------------------------------

UPDATES = 30


@benchmark("mutations.contention")
def conflicts_of_updates() -> Iterator[Row]:
    """Updates from as many threads at once: how many of them report a conflict, of rows of their own and of one row."""
    with scratch_folder() as folder, ThreadPoolExecutor(THREADS) as pool:
        graph = omnigraph.init(folder / "graph", SCHEMA)
        for number in range(THREADS):
            call(graph, "put", h=f"own{number}", n=0)

        def own(number: int) -> int:
            return sum(_conflicts(partial(call, graph, "relevel", h=f"own{number}", n=turn)) for turn in _turns())

        def same(number: int) -> int:
            return sum(
                _conflicts(partial(call, graph, "relevel", h="own0", n=1000 * number + turn)) for turn in _turns()
            )

        def add_one(handle: omnigraph.Graph) -> None:
            found = handle.entity("node", "Staff", "own0")
            assert found is not None
            call(handle, "relevel", h="own0", n=found["level"] + 1)

        def counted(_: int) -> int:
            return sum(_conflicts(lambda: graph.retrying(add_one, attempts=100)) for _ in _turns())

        for what, work in (
            ("a row of its own", own),
            ("one row", same),
            ("one row, read before, with retrying", counted),
        ):
            found = sum(pool.map(work, range(THREADS)))
            goal = None if work is same else 0.0
            measure = summary([float(found)], unit="conflicts")
            yield Row(
                f"{THREADS} threads, {UPDATES} updates of {what} each: of {THREADS * UPDATES}", measure, goal=goal
            )


def _turns() -> range:
    return range(1, UPDATES + 1)


def _conflicts(action: Action) -> int:
    try:
        action()
    except omnigraph.errors.Conflict:
        return 1
    return 0
