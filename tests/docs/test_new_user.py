"""What a new user does with the README alone: own schema, own data with two mistakes, a typo, a branch, a conflict, an export.

Every step is the installed command in a process of its own, in an empty folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCHEMA = """
node Plant {
  name: String @key
  height: F64?
}
node Garden { name: String @key }
edge GrowsIn: Plant -> Garden
"""
DATA: list[dict[str, object]] = [
    {"type": "Plant", "data": {"name": "rose", "height": 1.2}},
    {"type": "Plant", "data": {"name": "oak", "heigth": 20}},
    {"type": "Garden", "data": {"name": "north"}},
    {"edge": "GrowsIn", "from": "rose", "to": "nort"},
]
TALLER = "query taller($h: F64) { match { $p: Plant  $p.%s > $h } return { $p.name } }"
GROW = 'query grow() { update Plant set { height: %s } where name = "rose" }'


class Person:
    """Somebody at a shell in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"OMNIGRAPH_HOME": str(folder / "home"), "NO_COLOR": "1"}
        self.environment.pop("OMNIGRAPH_PROFILE", None)

    def types(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("omnigraph")), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def writes(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


def lines(records: list[dict[str, object]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def test_from_the_readme_alone(tmp_path: Path) -> None:
    person = Person(tmp_path)
    person.writes("garden.pg", SCHEMA)
    person.writes("plants.jsonl", lines(DATA))
    person.types("init", "--schema", "garden.pg", "g.omni")

    load = ("load", "g.omni", "--data", "plants.jsonl", "--mode", "append")
    refused = person.types(*load, code=1).stderr
    assert "plants.jsonl:2: " in refused
    assert "heigth" in refused
    assert "plants.jsonl:4: " in refused
    assert "nort" in refused
    assert "entities=0" in person.types("snapshot", "g.omni").stdout, "nothing was written"

    data = list(DATA)
    data[1] = {"type": "Plant", "data": {"name": "oak", "height": 20}}
    data[3] = {"edge": "GrowsIn", "from": "rose", "to": "north"}
    person.writes("plants.jsonl", lines(data))
    assert "4 entities across 2 node types and 1 edge types" in person.types(*load).stdout

    query = ("query", "--store", "g.omni", "--params", '{"h": 2.5}', "--format", "csv", "-e")
    typo = person.types(*query, TALLER % "hight", code=1).stderr
    assert "did you mean `height`?" in typo
    assert "^" in typo, "the place is shown"
    assert person.types(*query, TALLER % "height").stdout == "p.name\noak\n"

    person.types("branch", "create", "spring", "--uri", "g.omni")
    person.types("mutate", "--store", "g.omni", "--branch", "spring", "-e", GROW % "1.5")
    person.types("mutate", "--store", "g.omni", "-e", GROW % "1.3")
    assert "height: 1.3 -> 1.5" in person.types("diff", "main", "spring", "--uri", "g.omni").stdout
    conflict = person.types("branch", "merge", "spring", "--uri", "g.omni", code=1).stderr
    assert "Plant 'rose' was updated differently on both sides" in conflict
    assert "nothing was written" in conflict
    decision = [{"type_key": "node:Plant", "id": "rose", "take": "value", "value": {"height": 1.4}}]
    person.writes("decisions.json", json.dumps(decision))
    merged = person.types("branch", "merge", "spring", "--uri", "g.omni", "--resolve", "decisions.json")
    assert merged.stdout.splitlines()[0] == "merged spring into main: merged"

    exported = person.types("export", "g.omni").stdout
    assert '{"type":"Plant","data":{"id":"rose","height":1.4,"name":"rose"}}' in exported.splitlines()
    person.writes("all.jsonl", exported)
    person.types("init", "--schema", "garden.pg", "copy.omni")
    person.types("load", "copy.omni", "--data", "all.jsonl", "--mode", "append")
    assert person.types("export", "copy.omni").stdout == exported
