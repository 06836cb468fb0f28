"""Keys of stored rows that are handed to the checks: the same answers as by look-ups, from one pass over each column."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.commit.context import HELD_BYTES_VARIABLE
from omnigraph.load import stored_keys
from omnigraph.load.exchange import Exchange, InFiles, InObjects, Writer
from omnigraph.load.stored import Stored
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.table import Table
from tests.load.test_engines import outcomes

SCHEMA = "node P { name: String @key mail: String? @unique(mail) }\nedge K: P -> P @card(0..9)"


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every key is handed out, in several partitions; counts the tasks by role, and what was looked up all the same."""
    seen: Counter[str] = Counter()
    put, looked_up = stored_keys.put_stored_keys, Stored.rows_with

    def counted_put(spec: stored_keys.StoredKeys) -> None:
        seen[spec.role] += 1
        put(spec)

    def counted(self: Stored, type_key: str, column: str, *rest: Any, **options: Any) -> pa.Table:
        seen[f"look-up {column} {type_key}"] += 1
        return looked_up(self, type_key, column, *rest, **options)

    monkeypatch.setattr("omnigraph.load.work.put_stored_keys", counted_put)
    monkeypatch.setattr(Stored, "rows_with", counted)
    monkeypatch.setenv(HELD_BYTES_VARIABLE, "0")
    monkeypatch.setattr("omnigraph.load.execute._PARTITION_BYTES", 300)
    monkeypatch.setattr(stored_keys, "FEWEST_PARTITIONS", 1)
    monkeypatch.setattr(Table, "is_read_through", lambda *_: True)
    return seen


def test_the_same_answers(tmp_path: Path, handed: Counter[str]) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(stored_keys, "FEWEST_PARTITIONS", 10_000)
        looked_up = outcomes(tmp_path / "looked-up", range(60), engine="local")
    handed.clear()
    assert outcomes(tmp_path / "handed", range(60), engine="local") == looked_up
    assert {role.partition(" ")[0] for role in handed} >= {"kept1-id", "kept1-src", "kept1-unique0"}


@pytest.mark.parametrize("mode", ["append", "merge", "update"])
def test_each_column_is_read_once(tmp_path: Path, handed: Counter[str], mode: Any, monkeypatch: Any) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    for part in range(3):
        graph.load(pa.table({"name": [f"p{part}-{number}" for number in range(50)]}), type="P")
    monkeypatch.setattr(stored_keys, "ROWS_PER_TASK", 50)
    handed.clear()
    new = [f"n{number}" for number in range(200)]
    known = [f"p1-{number}" for number in range(50)]
    lines = [{"type": "P", "data": {"name": name}} for name in (new if mode == "append" else known)]
    lines += [{"edge": "K", "from": known[0], "to": name} for name in known[:5]] if mode != "update" else []
    graph.load(lines, mode)
    # One task for each fragment, and no check looks by itself, but where a partition was handed nothing of a type.
    assert handed["kept1-id node:P"] == 3
    assert graph.query("query q() { match { $p: P } return { count($p) as n } }").rows[0]["n"] == 350 - 200 * (
        mode != "append"
    )


@pytest.mark.parametrize("kind", ["files", "objects", "s3"])
def test_one_file_for_each_writer(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    """A writer puts one file, whatever the number of partitions; a later reading of it counts instead, also where it is empty."""
    exchange: Exchange = InFiles(tmp_path / "keys", 64)
    job = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    if kind != "files":
        root = Root(str(tmp_path)) if kind == "objects" else request.getfixturevalue("s3_root")
        exchange = InObjects(root, job, 64)
        # What is put for a job that has no record is taken back.
        open_store(root).put(f"__staging/{job}.json", b"{}")
    rows = {part: {"id P": pa.table({"id": [f"{part}"]})} for part in range(0, 64, 2)}
    exchange.put(Writer("chunk-0"), rows)
    exchange.put(Writer("chunk-1"), {3: {"id P": pa.table({"id": ["three"]}), "src K": pa.table({"src": ["x"]})}})
    exchange.put(Writer("chunk-2"), {})
    put = [path.name for path in tmp_path.rglob("chunk-*") if path.is_file()]
    if kind == "s3":
        put = [info.path for info in open_store(root).list(f"__staging/{job}/keys")]
    assert len(put) == 3
    assert exchange.get(2)["id P"].to_pydict() == {"id": ["2"]}
    assert {role: table.num_rows for role, table in exchange.get(3).items()} == {"id P": 1, "src K": 1}
    assert exchange.get(5) == {}
    exchange.put(Writer("chunk-0", 1), {2: {"id P": pa.table({"id": ["again"]})}})
    assert exchange.get(2)["id P"].to_pydict() == {"id": ["again"]}
    assert exchange.get(4) == {}
