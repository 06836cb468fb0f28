"""Ten more questions, one for each form of the language that the nine do without, against Kuzu and DuckDB.

All engines run in one process with as many threads as the machine has cores, and hand over Arrow tables. They are asked in turn,
a few times in a row, and the fastest of a row counts: what else the machine does only ever adds. The ratio is the median, over
the rounds, of ours to theirs in the same round. `BENCH_CLOCK=cpu` counts processor time instead of the time that passes.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import omnigraph
from bench.measure import Floor, Row, summary

CLOCK = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
#: Rounds, and repetitions in a row of which the fastest counts; as many rounds warm up as make every cache: the ids of a table
#: are kept in memory after some two dozen look-ups by key.
ROUNDS, IN_A_ROW, WARM_UP = 7, 3, 10

#: So many keys are given to `in`; one in three of them is nobody's.
KEYS = tuple(f"p{number}" for number in range(33_000, 150_000, 12))[:10_000]
#: Two persons of `make_social()` who are four steps apart.
FROM, TO = "p11", "p1"


@dataclass(frozen=True)
class Form:
    """A form of the language as a question in three languages. `params` are the same for all; rows come in any order."""

    name: str
    gq: str
    cypher: str
    sql: str
    params: Mapping[str, Any] = field(default_factory=dict)
    #: How many times faster than Kuzu it must be.
    times_kuzu: float = 1.0
    #: Whether the items of lists come in an order of each engine's own.
    lists_as_sets: bool = False


FORMS = (
    Form(
        "optional with a filter",
        """match { $p: Person optional { $p follows $f $f.age > 70 } }
           return { $p.gender as gender, count(*) as lines, count($f) as old }""",
        """match (p:Person) optional match (p)-[:Follows]->(f:Person) where f.age > 70
           return p.gender, count(*), count(f.key)""",
        """select p.gender, count(*), count(f.dst) from Person p left join
           (select x.src, x.dst from Follows x join Person o on o.key = x.dst where o.age > 70) f on f.src = p.key
           group by p.gender""",
    ),
    Form(
        "exists",
        """match { $p: Person exists { $p follows $f $f livesIn $c $c.key = "c10" } }
           return { $p.gender as gender, count($p) as n }""",
        """match (p:Person) where exists { match (p)-[:Follows]->(f:Person)-[:LivesIn]->(c:City) where c.key = 'c10' }
           return p.gender, count(p)""",
        """select p.gender, count(*) from Person p where exists
           (select 1 from Follows x join LivesIn l on l.src = x.dst where x.src = p.key and l.dst = 'c10')
           group by p.gender""",
    ),
    Form(
        "count block > n",
        """match { $p: Person count { $f follows $p } > 1000 } return { $p.age as age, count($p) as n }""",
        """match (p:Person) where count { match (f:Person)-[:Follows]->(p) } > 1000 return p.age, count(p)""",
        """select p.age, count(*) from Person p
           where (select count(*) from Follows x where x.dst = p.key) > 1000 group by p.age""",
    ),
    Form(
        "or over an index",
        """match { $p: Person $p.age = 18 or $p.age > 73 } return { $p.key as who, $p.age as age }""",
        """match (p:Person) where p.age = 18 or p.age > 73 return p.key, p.age""",
        """select key, age from Person where age = 18 or age > 73""",
    ),
    Form(
        "in with 10,000 values",
        """query q($keys: [String]) { match { $p: Person $p.key in $keys } return { $p.gender as gender, count($p) as n } }""",
        """unwind $keys as wanted match (p:Person) where p.key = wanted return p.gender, count(p)""",
        """select gender, count(*) from Person where key in (select unnest($keys)) group by gender""",
        {"keys": list(KEYS)},
    ),
    Form(
        "edge alternation, two hops",
        """match { $p: Person $p.age = 30 $p follows|worksWith $b $b follows|worksWith $c }
           return { $c.gender as gender, count(*) as n }""",
        """match (p:Person)-[:Follows|WorksWith]->(b:Person)-[:Follows|WorksWith]->(c:Person) where p.age = 30
           return c.gender, count(*)""",
        """with e as (select src, dst from Follows union all select src, dst from WorksWith)
           select c.gender, count(*) from Person p join e x on x.src = p.key join e y on y.src = x.dst
           join Person c on c.key = y.dst where p.age = 30 group by c.gender""",
    ),
    Form(
        "shortest path, four steps",
        """query q($a: String, $b: String) {
             match { $x: Person { key: $a } $y: Person { key: $b } $way = shortest($x follows{1,6} $y) }
             return { length($way) as steps } }""",
        """match (x:Person)-[e:Follows* SHORTEST 1..6]->(y:Person) where x.key = $a and y.key = $b return length(e)""",
        """with recursive reached(key, steps) using key (key) as (
             select $a::varchar, 0 union
             select x.dst, min(r.steps) + 1 from reached r join Follows x on x.src = r.key
             left join recurring.reached known on known.key = x.dst where known.key is null and r.steps < 6
             group by x.dst)
           select steps from reached where key = $b""",
        {"a": FROM, "b": TO},
        times_kuzu=5.0,
    ),
    Form(
        "distinct",
        """match { $p: Person $p livesIn $c $c cityIn $s } return distinct { $s.key as state, $p.age as age }""",
        """match (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State) return distinct s.key, p.age""",
        """select distinct ci.dst, p.age from Person p join LivesIn l on l.src = p.key join CityIn ci on ci.src = l.dst""",
    ),
    Form(
        "top 3 of each group by `with`",
        """match { $f: Person $f follows $p $p livesIn $c $c cityIn $s }
           with { $s.key as state, $p.key as who, count($f) as n } order { n desc, who }
           with { $state as state, collect($who) as names } return { $state as state, slice($names, 0, 3) as top }""",
        """match (f:Person)-[:Follows]->(p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)
           with s.key as state, p.key as who, count(f) as n order by n desc, who limit 1000000
           with state, collect(who) as names return state, names[1:3]""",
        """select state, list(who order by n desc, who) from (
             select ci.dst as state, x.dst as who, count(*) as n from Follows x join LivesIn l on l.src = x.dst
             join CityIn ci on ci.src = l.dst group by ci.dst, x.dst
             qualify row_number() over (partition by ci.dst order by count(*) desc, x.dst) <= 3) group by state""",
    ),
    Form(
        "collect",
        """match { $p: Person $p livesIn $c } return { $c.key as city, collect($p.key) as people }""",
        """match (p:Person)-[:LivesIn]->(c:City) return c.key, collect(p.key)""",
        """select l.dst, list(l.src) from LivesIn l group by l.dst""",
        lists_as_sets=True,
    ),
)

Answer = Callable[[Form], pa.Table]


def form_rows(graph: omnigraph.Graph, kuzu: Any, duckdb: Any) -> Iterator[Row]:
    """Each form against both peers, which are open connections. The better peer is the goal; answers are compared first."""
    engines: dict[str, Answer] = {
        "ours": lambda form: graph.query(form.gq, params=dict(form.params)).to_arrow(),
        "Kuzu": lambda form: kuzu.execute(form.cypher, dict(form.params)).get_as_arrow(),
        "DuckDB": lambda form: duckdb.sql(form.sql, params=dict(form.params)).to_arrow_table(),
    }
    for form in FORMS:
        check_equal(form, engines)
    for form in FORMS:
        yield from _rows(form, _fastest(form, list(engines.values())))


def _rows(form: Form, taken: Sequence[Sequence[float]]) -> Iterator[Row]:
    """One row for each peer; a goal where the peer is the better one, or where a factor is asked for."""
    ours, *peers = taken
    better = min(map(statistics.median, peers))
    for name, theirs in zip(("Kuzu", "DuckDB"), peers, strict=True):
        measure = summary(theirs)
        factor = form.times_kuzu if name == "Kuzu" else 1.0
        goal = measure.median / factor if factor > 1 or measure.median == better else None
        paired = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
        what = f"{form.name}, {os.cpu_count()} threads each"
        yield Row(what, summary(ours), Floor(name, measure), goal=goal, paired=paired)


def _fastest(form: Form, engines: Sequence[Answer]) -> list[list[float]]:
    """For each engine the fastest repetition of each round; who is first changes every round."""
    taken: list[list[float]] = [[] for _ in engines]
    for number in range(-WARM_UP, ROUNDS):
        turns = range(len(engines)) if number % 2 else reversed(range(len(engines)))
        for turn in turns:
            row = [_seconds(engines[turn], form) for _ in range(IN_A_ROW)]
            if number >= 0:
                taken[turn].append(min(row))
    return taken


def _seconds(answer: Answer, form: Form) -> float:
    start = CLOCK()
    answer(form)
    return CLOCK() - start


def check_equal(form: Form, engines: Mapping[str, Answer]) -> None:
    """Raise unless the engines give the same rows, of which there is one at least."""
    ours, *others = ((name, _plain(form, answer(form))) for name, answer in engines.items())
    for name, theirs in others:
        if ours[1] != theirs:
            raise AssertionError(f"{form.name}: ours {ours[1][:5]}, {name} {theirs[:5]}")
    if not ours[1]:
        raise AssertionError(f"{form.name}: nobody finds anything")


def _plain(form: Form, table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in an order of their own."""
    columns = [column.to_pylist() for column in table.columns]
    if form.lists_as_sets:
        columns = [[sorted(v) if isinstance(v, list) else v for v in values] for values in columns]
    return sorted(zip(*columns, strict=True))
