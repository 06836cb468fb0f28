"""A process that runs one mutation and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

crash_child.py <uri> <mutation> <branch>
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og

#: Each touches several tables.
MUTATIONS = {
    "insert": 'query q() { insert Staff { handle: "eve", level: 22 } insert Mentors { from: "eve", to: "ada" } }',
    "update": """query q() {
      update Staff set { level: 99 } where level < 30 insert Team { code: "ops" } insert MemberOf { from: "dov", to: "ops" }
    }""",
    "delete": 'query q() { delete Staff where handle = "ada" }',
}


def main(uri: str, name: str, branch: str) -> None:
    og.open(uri).mutate(MUTATIONS[name], branch=branch, idempotency_key="once")


if __name__ == "__main__":
    main(*sys.argv[1:])
