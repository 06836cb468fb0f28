"""A process that does one thing to a graph, for the tests that kill it or let it race.

changing_child.py <uri> apply <schema file> [hard] [on <branch>]
changing_child.py <uri> insert <first> <count>        people, one commit each; names what it was told
changing_child.py <uri> branch <name>
changing_child.py <uri> open
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson

import omnigraph as og
from omnigraph.errors import OmnigraphError


def main(uri: str, action: str, *arguments: str) -> None:
    told: object = None
    try:
        graph = og.open(uri)
        match action:
            case "apply":
                branch = arguments[arguments.index("on") + 1] if "on" in arguments else None
                wanted, hard = Path(arguments[0]).read_text(), "hard" in arguments
                told = graph.apply_schema(wanted, branch=branch, allow_data_loss=hard).applied
            case "insert":
                told = insert(graph, int(arguments[0]), int(arguments[1]))
            case "branch":
                told = graph.create_branch(arguments[0]).id
    except OmnigraphError as error:
        told = type(error).__name__
    sys.stdout.buffer.write(orjson.dumps(told))


def insert(graph: og.Graph, first: int, count: int) -> list[str]:
    """Insert people, each by the name the type has at the time; returns the names that were acknowledged."""
    done = []
    for number in range(first, first + count):
        for type_name in ("Person", "Human"):
            try:
                graph.mutate(f'query w() {{ insert {type_name} {{ name: "p{number}", code: {number} }} }}')
            except og.errors.TypecheckError:
                continue
            done.append(f"p{number}")
            break
    return done


if __name__ == "__main__":
    main(*sys.argv[1:])
