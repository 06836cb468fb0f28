"""Queries over a social graph, against Kuzu and DuckDB in the same run; answers are compared before times."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, in_turn
from bench.query_forms import form_rows
from bench.query_texts import QUESTIONS, Question
from bench.social import Social, load_social, make_social

#: Engines are asked in turn, so that all meet the same load, and each has been asked as often before it is timed.
WARM_UP, REPEAT = 3, 7
#: Neighbourhoods and look-ups are short, and asked of handles that are long in use.
WARM = 50
#: Warm is a query that its own engine has just answered; right after the other one it finds the caches of the machine cold.
IN_A_ROW = 10
#: Goals: the nine together no slower than Kuzu, none slower than twice the better peer, neighbourhoods five times faster.
SLOWER = 2.0
FASTER = 5.0
LOOKUP_FACTOR = 2.5

Ask = Callable[[str], list[tuple[Any, ...]]]


@benchmark("query.social")
def social_queries() -> Iterator[Row]:
    """The nine questions, neighbourhoods and point look-ups."""
    with _engines("query.social") as found:
        if found is not None:
            graph, kuzu, duck = found[0], _rows_of_kuzu(found[1]), _rows_of_duckdb(found[2])
            yield from _nine(graph, kuzu, duck)
            yield from _neighbourhoods(graph, kuzu)
            yield _lookup(graph)


@benchmark("forms.social")
def forms() -> Iterator[Row]:
    """Ten questions more, one for each form of the language that the nine do without."""
    with _engines("forms.social") as found:
        if found is not None:
            yield from form_rows(*found)


@contextmanager
def _engines(name: str) -> Iterator[tuple[omnigraph.Graph, Any, Any] | None]:
    """The social graph here, in Kuzu and in DuckDB, as open connections; None when a peer is not installed."""
    missing = [peer for peer in ("duckdb", "kuzu") if find_spec(peer) is None]
    if missing:
        print(f"{name} needs its peers: pip install {' '.join(missing)}", file=sys.stderr)
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-query-"))
    try:
        social = make_social()
        yield load_social(social, folder / "graph"), _kuzu(social, folder), _duckdb(social)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _nine(graph: omnigraph.Graph, kuzu: Ask, duck: Ask) -> Iterator[Row]:
    totals = {"ours": 0.0, "kuzu": 0.0}
    for question in QUESTIONS:
        _compare(question, graph, kuzu, duck)
        ours, theirs, other = in_turn(
            [
                partial(graph.query, question.gq),
                partial(kuzu, question.cypher),
                partial(duck, question.sql),
            ],
            REPEAT,
            warm_up=WARM_UP,
        )
        totals["ours"] += ours.median
        totals["kuzu"] += theirs.median
        better = min(theirs.median, other.median)
        yield Row(question.name, ours, Floor("Kuzu", theirs), goal=SLOWER * better)
        yield Row(question.name, ours, Floor("DuckDB", other), goal=SLOWER * better)
    sums = {name: Measure(total, total, total) for name, total in totals.items()}
    yield Row(
        f"sum of the nine, each after {WARM_UP + 1} runs to warm up",
        sums["ours"],
        Floor("Kuzu", sums["kuzu"]),
        goal=sums["kuzu"].median,
    )


def _compare(question: Question, graph: omnigraph.Graph, kuzu: Ask, duck: Ask) -> None:
    ours = _rounded([tuple(row.values()) for row in graph.query(question.gq).rows])
    for name, ask, text in (("Kuzu", kuzu, question.cypher), ("DuckDB", duck, question.sql)):
        theirs = _rounded(ask(text))
        if ours != theirs:
            raise AssertionError(f"{question.name}: ours {ours}, {name} {theirs}")


def _rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(round(value, 6) if isinstance(value, float) else value for value in row) for row in rows]


def _neighbourhoods(graph: omnigraph.Graph, kuzu: Ask) -> Iterator[Row]:
    for hops in (1, 2, 3, 4):
        gq = f"""query q() {{ match {{ $p: Person {{ key: "p11" }} $p follows{{1,{hops}}} $x }}
                 return {{ count($x) as n }} }}"""
        cypher = f"""match (p:Person)-[:Follows* SHORTEST 1..{hops}]->(x:Person) where p.key = 'p11'
                     return count(distinct x)"""
        found, expected = graph.query(gq).rows[0]["n"], kuzu(cypher)[0][0]
        if found not in (expected, expected - 1):  # Kuzu may count the start itself
            raise AssertionError(f"{hops} hops: ours {found}, Kuzu {expected}")
        actions = [lambda text=gq: graph.query(text), lambda text=cypher: kuzu(text)]
        ours, theirs = in_turn(actions, WARM, warm_up=WARM)
        yield Row(f"neighbourhood of {hops} hops, each after the other engine", ours, Floor("Kuzu", theirs))
        ours, theirs = in_turn(actions, WARM // IN_A_ROW, in_a_row=IN_A_ROW)
        goal = theirs.median / FASTER if hops > 1 else None
        yield Row(f"neighbourhood of {hops} hops, warm", ours, Floor("Kuzu", theirs), goal=goal)


def _lookup(graph: omnigraph.Graph) -> Row:
    gq = "query q($k: String) { match { $p: Person { key: $k } } return { $p.age } }"
    dataset = graph.snapshot().open("node:Person").dataset
    ours, bare = in_turn(
        [
            lambda: graph.query(gq, params={"k": "p4711"}),
            lambda: dataset.to_table(columns=["age"], filter=pc.field("id") == "p4711"),
        ],
        WARM,
        warm_up=WARM,
    )
    return Row("point look-up by key", ours, Floor("bare Lance", bare), goal=LOOKUP_FACTOR * bare.median)


# --- peers ------------------------------------------------------------------------------------------------------------


def _rows_of_duckdb(connection: Any) -> Ask:
    return lambda text: connection.execute(text).fetchall()


def _rows_of_kuzu(connection: Any) -> Ask:
    return lambda text: [tuple(row) for row in connection.execute(text).get_all()]


def _duckdb(social: Social) -> Any:
    """An open connection with the tables, and as many threads as there are cores."""
    import duckdb

    connection = duckdb.connect(config={"threads": os.cpu_count() or 1})
    for name, table in {**social.nodes, **social.edges}.items():
        connection.register("arrow_table", table)
        connection.execute(f"create table {name} as select * from arrow_table")
    return connection


_ENDS = {
    "Follows": ("Person", "Person"),
    "WorksWith": ("Person", "Person"),
    "LivesIn": ("Person", "City"),
    "HasInterest": ("Person", "Interest"),
    "CityIn": ("City", "State"),
    "StateIn": ("State", "Country"),
}


def _kuzu(social: Social, folder: Path) -> Any:
    """The same in Kuzu."""
    import kuzu
    import pyarrow.parquet as parquet

    connection = kuzu.Connection(kuzu.Database(str(folder / "kuzu")), num_threads=os.cpu_count() or 1)
    for name, table in social.nodes.items():
        more = ", gender STRING, age INT32" if name == "Person" else ""
        connection.execute(f"create node table {name} (key STRING primary key{more})")
        _copy(connection, parquet, name, table, folder)
    for name, table in social.edges.items():
        source, target = _ENDS[name]
        connection.execute(f"create rel table {name} (from {source} to {target})")
        _copy(connection, parquet, name, table, folder)
    return connection


def _copy(connection: Any, parquet: Any, name: str, table: pa.Table, folder: Path) -> None:
    path = folder / f"{name}.parquet"
    parquet.write_table(table, path)
    connection.execute(f'copy {name} from "{path}"')
