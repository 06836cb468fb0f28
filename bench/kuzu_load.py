"""The peer: Kuzu's COPY of the same data. `python -m bench.kuzu_load PEOPLE KNOWS FOLDER`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import kuzu


def load(people: Path, knows: Path, folder: Path) -> tuple[int, float]:
    """Copy two CSV files into a new database; returns how many entities there are and how long the copies took."""
    connection = kuzu.Connection(kuzu.Database(str(folder / "kuzu")))
    connection.execute(
        "CREATE NODE TABLE Person(key STRING, name STRING, age INT32, grp STRING, born DATE, PRIMARY KEY (key))"
    )
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, since DATE, weight INT32)")
    start = time.perf_counter()
    connection.execute(f"COPY Person FROM '{people}' (header=false)")
    connection.execute(f"COPY Knows FROM '{knows}' (header=false)")
    taken = time.perf_counter() - start
    count = 0
    for question in ("MATCH (p:Person) RETURN count(*)", "MATCH ()-[k:Knows]->() RETURN count(*)"):
        answer = connection.execute(question)
        assert isinstance(answer, kuzu.QueryResult)
        count += int(answer.get_next()[0])
    return count, taken


if __name__ == "__main__":
    print(*load(*map(Path, sys.argv[1:4])))
