"""The merge benchmark in DoltLite: `doltlite_merge.py SIZE` prints the seconds of each merge and the rows at the end, as JSON."""

from __future__ import annotations

import doltlite  # isort: skip  # before sqlite3, whose place it takes

import json
import sqlite3
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.measure import scratch_folder
from bench.merge_data import ROUNDS, changed_names, new_names, text_of


def main(size: int) -> None:
    assert doltlite, "it works by being imported"
    with scratch_folder() as folder:
        base = sqlite3.connect(folder / "repo.db")
        base.execute("CREATE TABLE p(name TEXT PRIMARY KEY, a INT, b TEXT)")
        insert(base, [f"p{number:07}" for number in range(size)], 0)
        ask(base, "dolt_commit('-A', '-m', 'rows')")
        taken = []
        for turn in range(ROUNDS + 1):
            ask(base, f"dolt_branch('feature{turn}')")
            change(base, size, "m", turn)
            ask(base, f"dolt_checkout('feature{turn}')")
            change(base, size, "f", turn)
            ask(base, "dolt_checkout('main')")
            start = time.perf_counter()
            ask(base, f"dolt_merge('feature{turn}')")
            taken.append(time.perf_counter() - start)
        ((count,),) = base.execute("SELECT count(*) FROM p").fetchall()
        print(json.dumps({"seconds": taken, "rows": count}))


def change(base: sqlite3.Connection, size: int, side: str, turn: int) -> None:
    changed = [(turn + 1, name) for name in changed_names(size, side)]
    base.executemany("UPDATE p SET a = ? WHERE name = ?", changed)
    insert(base, new_names(side, turn), turn + 1)
    ask(base, "dolt_commit('-A', '-m', 'change')")


def insert(base: sqlite3.Connection, names: list[str], number: int) -> None:
    base.executemany("INSERT INTO p VALUES (?, ?, ?)", ((name, number, text_of(name)) for name in names))
    base.commit()


def ask(base: sqlite3.Connection, call: str) -> None:
    base.execute(f"SELECT {call}").fetchall()


if __name__ == "__main__":
    main(int(sys.argv[1]))
