"""A process with an executor of 2 GB that loads many edges and asks three questions: folder, number of edges, memory limit.

The answers go to standard output as JSON, beside the exact ones, which come from the arrays that the edges were made of, and what
the local engine says to the same questions within the memory limit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from omnigraph.errors import ResourceLimit
from omnigraph.spark.session import spark_session

SCHEMA = "node Person { key: String @key age: I32 }\nedge Follows: Person -> Person { weight: I32 }"
QUERIES = {
    "two-hop count": "query q() { match { $a: Person $a follows $b $b follows $c } return { count($c) as n } }",
    "degree top-k": """query q() { match { $f: Person $f follows $p } return { $p.key as key, count($f) as n }
        order { n desc, key asc } limit 10 }""",
    "filtered aggregation": """query q() { match { $f: Person $f follows $p $f.age < 30 $p.age > 60 }
        return { $p.age as age, count($f) as n } order { age asc } }""",
}
EDGES_PER_NODE = 20
_PER_FILE = 5_000_000

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


def made(folder: Path, edges: int) -> tuple[Numbers, Numbers, Numbers]:
    """Write nodes and edges as an export would; returns the ages, and the ends of all edges as numbers of nodes."""
    nodes = max(edges // EDGES_PER_NODE, 10)
    drawn = np.random.default_rng(11)
    ages = drawn.integers(0, 90, nodes)
    keys = pa.array([f"p{number:08d}" for number in range(nodes)])
    (folder / "nodes/Person").mkdir(parents=True)
    (folder / "edges/Follows").mkdir(parents=True)
    people = pa.table({"key": keys, "age": pa.array(ages, pa.int32())})
    pq.write_table(people, folder / "nodes/Person/a.parquet", row_group_size=1_000_000)
    ends = []
    for start in range(0, edges, _PER_FILE):
        count = min(_PER_FILE, edges - start)
        # The edges of a file leave nodes of its own, and some nodes are followed much more than others.
        low, high = nodes * start // edges, nodes * (start + count) // edges
        source, target = drawn.integers(low, high, count), (nodes * drawn.random(count) ** 2).astype(np.int64)
        # A pair of nodes that has two edges is one match.
        source, target = np.divmod(np.unique(source * nodes + target), nodes)
        count = len(source)
        columns = {"from": keys.take(pa.array(source)), "to": keys.take(pa.array(target))}
        table = pa.table({**columns, "weight": pa.array(np.arange(count), pa.int32())})
        pq.write_table(table, folder / f"edges/Follows/{start:012d}.parquet", row_group_size=500_000)
        ends.append((source, target))
    return ages, np.concatenate([one for one, _ in ends]), np.concatenate([other for _, other in ends])


def exact(ages: Numbers, source: Numbers, target: Numbers) -> dict[str, Any]:
    """The answers by arithmetic."""
    leaving, arriving = (np.bincount(end, minlength=len(ages)) for end in (source, target))
    best = np.lexsort((np.arange(len(ages)), -arriving))[:10]
    chosen = (ages[source] < 30) & (ages[target] > 60)
    by_age = np.bincount(ages[target[chosen]], minlength=90)
    return {
        "two-hop count": [{"n": int((leaving * arriving).sum())}],
        "degree top-k": [{"key": f"p{number:08d}", "n": int(arriving[number])} for number in best],
        "filtered aggregation": [{"age": age, "n": int(count)} for age, count in enumerate(by_age) if count],
    }


def answers(place: Path, edges: int, memory: int) -> dict[str, dict[str, Any]]:
    """What Spark answers, what the local engine answers or why it does not, and what is right."""
    expected = exact(*made(place / "in", edges))
    graph = og.init(place / "g.omni", SCHEMA)
    graph.load(str(place / "in"), "append", format="parquet", engine="spark")
    found = {name: graph.query(text, engine="spark", timeout=None).rows for name, text in QUERIES.items()}
    refused, here = {}, {}
    for name, text in QUERIES.items():
        try:
            here[name] = graph.query(text, engine="local", memory_limit=memory, timeout=None).rows
        except ResourceLimit as error:
            refused[name] = str(error)
    return {"expected": expected, "found": found, "here": here, "refused": refused}


def main(folder: str, edges: str, memory: str) -> None:
    spark_session(master="local[2]", conf={"spark.driver.memory": "2g"})
    sys.stdout.buffer.write(orjson.dumps(answers(Path(folder), int(edges), int(memory))))


if __name__ == "__main__":
    main(*sys.argv[1:])
