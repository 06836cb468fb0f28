"""Both engines are one: the same rows and the same errors on generated inputs, however they are read and wherever."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import KeyConflict, LoadRejected
from omnigraph.graph.loading import Mode as LoadMode
from tests.load.loading import rows

SCHEMA = """
node P {
  name: String @key
  age: I32?
  big: U64?
  w: F32?
  born: Date?
  seen: DateTime?
  kind: enum(a, b)?
  mail: String? @unique(mail)
  tags: [I32]?
  emb: Vector(2)?
  note: String @default("none")
}
node Q { v: String? }
edge K: P -> P @card(0..2) { since: Date? }
edge L: Q -> P { w: F64? }
"""

#: Values of each property: mostly right, some unusual, some wrong.
VALUES: dict[str, list[Any]] = {
    "age": [1, 0, -5, None, 2**31, "x", 1.5, True],
    "big": [0, 2**64 - 1, 2**63, None, -1, 2**64],
    "w": [0.1, 1, 16777217, None, -0.0, 1e300, "1"],
    "born": ["2024-02-29", 19723, None, "9999-12-31", "0000-01-01", "2023-02-29", 5.5],
    "seen": ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00+02:00", 5, None, "2024-01-01T00:00:00.0001Z", "later"],
    "kind": ["a", "b", None, "a", "c", 1],
    "mail": ["m1", "m2", "m3", "m4", None],
    "tags": [[1, 2], [], None, [1, None], [1, "x"], 5],
    "emb": [[0.5, 1], None, [1], [1, "x"], [1, None]],
    "note": ["n", "ünïcode \u2028", None, 'quote " and \\ back', 5],
}


def _dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


IDS = [f"p{n}" for n in range(8)]


def an_input(seed: int, *, clean: bool) -> bytes:
    """Some lines; unless they are to be clean, with mistakes of every kind among them."""
    chance = random.Random(seed)

    def value(name: str) -> Any:
        known = VALUES[name]
        return chance.choice(known[:4] if clean or chance.random() < 0.9 else known)

    written: list[bytes] = []
    names = IDS if not clean else chance.sample(IDS, 6)
    for name in [*names, *(chance.choice(names) for _ in range(0 if clean else chance.choice([0, 0, 1])))]:
        picked = {key: value(key) for key in chance.sample(list(VALUES), chance.randint(0, 6)) if key != "mail"}
        if clean:
            picked = {key: found for key, found in picked.items() if key not in ("note", "tags", "emb")}
        if chance.random() < 0.3 and not clean:
            picked["mail"] = value("mail")
        if chance.random() < 0.1:
            picked["id"] = name if clean or chance.random() < 0.8 else "other"
        written.append(_dumps({"type": "P", "data": {"name": name, **picked}}))
    for number in range(chance.randint(0, 4)):
        data = {"id": f"q{number if clean or chance.random() < 0.9 else 0}", "v": chance.choice(["x", None])}
        written.append(_dumps({"type": "Q", "data": data}))
        written.append(_dumps({"edge": "L", "from": data["id"], "to": chance.choice(names)}))
    for _ in range(chance.randint(0, 5) if not clean else 2):
        target = chance.choice(names) if clean or chance.random() < 0.9 else "nobody"
        line: dict[str, Any] = {"edge": "K", "from": chance.choice(names), "to": target}
        if chance.random() < 0.5:
            line["data"] = {"since": value("born")}
        written.append(_dumps(line))
    if not clean:
        junk = [
            b"",
            b"// note",
            b"nonsense",
            b'{"type":"P"}',
            b'{"type":"Z","data":{}}',
            b'{"type":"P","data":{"nam":1}}',
        ]
        written += chance.sample(junk, chance.choice([0, 0, 1, 2]))
    chance.shuffle(written)
    spaced = [line.replace(b":", b": ").replace(b",", b" ,") if chance.random() < 0.2 else line for line in written]
    return b"\n".join(spaced)


MODES: tuple[LoadMode, ...] = ("append", "merge", "overwrite")
INPUTS = [(an_input(seed, clean=seed % 2 == 0), MODES[seed % 3]) for seed in range(100)]


def outcome(graph: og.Graph, data: bytes | Path, mode: LoadMode, **options: Any) -> Any:
    """The rows that a load leaves, with ids that are made anew masked, or the errors it ends with."""
    try:
        graph.load(data, mode, **options)
    except LoadRejected as error:
        return error.total, error.errors
    except KeyConflict as error:
        return error.type_key, error.entity_id
    found = {}
    for key in ("node:P", "node:Q", "edge:K", "edge:L"):
        listed = rows(graph, key)
        for row in listed:
            row["id"] = "made" if len(row["id"]) == 26 else row["id"]
        found[key] = sorted(listed, key=repr)
    return found


def outcomes(folder: Path, numbers: range, **options: Any) -> list[Any]:
    made = []
    for number in numbers:
        graph = og.init(folder / str(number), SCHEMA)
        graph.load(b'{"type":"P","data":{"name":"p0","mail":"m1"}}\n{"edge":"K","from":"p0","to":"p0"}', engine="local")
        made.append(outcome(graph, *INPUTS[number], **options))
    return made


def test_a_hundred_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held and staged, in one partition and in several, read fast and exactly: one answer. A part of them on Spark, too."""
    held = outcomes(tmp_path / "held", range(100), engine="local")
    assert 20 < sum(isinstance(found, dict) for found in held) < 80
    assert any("@card" in str(found) for found in held)
    assert any("@unique" in str(found) for found in held)
    with monkeypatch.context() as exactly:
        exactly.setattr("omnigraph.load.fast._MOST_BEGINNINGS", 0)
        assert outcomes(tmp_path / "exact", range(100), engine="local") == held
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    monkeypatch.setattr("omnigraph.load.execute._PARTITION_BYTES", 300)
    assert outcomes(tmp_path / "staged", range(100), engine="local") == held
    assert outcomes(tmp_path / "spark", range(0, 100, 10), engine="spark") == held[::10]


@pytest.mark.long
def test_a_hundred_inputs_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = outcomes(tmp_path / "held", range(100), engine="local")
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    assert outcomes(tmp_path / "spark", range(100), engine="spark") == held


def test_lines_of_many_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in many ranges gives the same rows and the same line numbers as in one."""
    lines = b"\n".join(INPUTS[1][0] for _ in range(1)) + b"\n"
    text = b"".join(lines.replace(b'"p', b'"x%d-' % number) for number in range(30))
    (tmp_path / "in.jsonl").write_bytes(text)
    whole = outcome(og.init(tmp_path / "whole", SCHEMA), tmp_path / "in.jsonl", "merge", engine="local")
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 500)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 1)
    monkeypatch.setattr("omnigraph.load.execute._PARTITION_BYTES", 2000)
    parts = outcome(og.init(tmp_path / "parts", SCHEMA), tmp_path / "in.jsonl", "merge", engine="local")
    assert parts == whole


def test_keys_through_the_storage_of_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a disk that all tasks share, keys go through the graph's own storage, and nothing of them stays there."""
    from omnigraph.load import engine as engines
    from omnigraph.spark.runner import Inline

    held = outcomes(tmp_path / "held", range(20), engine="local")
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    monkeypatch.setattr("omnigraph.load.execute._PARTITION_BYTES", 300)
    monkeypatch.setattr("omnigraph.load.engine.choose", lambda *_: engines.Engine("local", Inline(), shared_disk=False))
    assert outcomes(tmp_path / "there", range(20), engine="local") == held
    assert not [path for path in (tmp_path / "there").rglob("__staging/*") if path.name != "x"]
