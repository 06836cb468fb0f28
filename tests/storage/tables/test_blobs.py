"""Blob columns: bytes, empty, null and external references survive every way a row can be copied."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceScanner

from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.commit import undo
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import Corrupt
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    Stats,
    stage_append,
    stage_compaction,
    stage_create,
    stage_overwrite,
    stage_replace,
)
from omnigraph.storage.tables.table import Blobs, Table
from tests.storage.tables.people import addresses_of, commit, head
from tests.storage.tables.upserts import stage_upsert

FILES = Location("nodes/files")
SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), lance.blob_field("body"), pa.field("size", pa.int32())]
)
LARGE = bytes(range(256)) * 1000  # packed into a file of its own kind by Lance, unlike the short ones


def files(bodies: dict[str, object]) -> pa.Table:
    columns = [list(bodies), lance.blob_array(list(bodies.values())), pa.array([len(bodies)] * len(bodies), pa.int32())]
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture
def outside(tmp_path: Path) -> str:
    """A file that does not belong to the table."""
    path = tmp_path / "outside.bin"
    path.write_bytes(b"0123456789")
    return path.as_uri()


def seed(tables: Tables, outside: str) -> Table:
    whole, part = lance.Blob.from_uri(outside), lance.Blob.from_uri(outside, 2, 3)
    data = files({"bytes": b"hello", "null": None, "empty": b"", "large": LARGE, "whole": whole, "part": part})
    commit(tables, stage_create(tables, FILES, SCHEMA, data))
    return head(tables, FILES)


SEEDED = {"bytes": b"hello", "null": None, "empty": b"", "large": LARGE, "whole": b"0123456789", "part": b"234"}


def bodies(table: Table) -> dict[str, bytes | None]:
    return {row["id"]: row["body"] for row in table.read(blobs="bytes").to_pylist()}


def references(table: Table) -> dict[str, tuple[str, int, int]]:
    """The external references that the table stores."""
    found = {row["id"]: row["body"] for row in table.read(blobs="descriptors").to_pylist()}
    return {
        id_: (body["blob_uri"], body["position"], body["size"])
        for id_, body in found.items()
        if body is not None and body["blob_uri"]
    }


def test_blobs_are_read_as_bytes(backend: Tables, outside: str) -> None:
    table = seed(backend, outside)
    assert blob_columns(table.schema) == ("body",)
    assert bodies(table) == SEEDED
    assert references(table) == {"whole": (outside, 0, 0), "part": (outside, 2, 3)}


COPIES: dict[str, Callable[[Table], Staged | None]] = {
    "append of what was deleted": lambda table: stage_replace(
        table, table.scan(blobs="values"), addresses_of(table, *SEEDED)
    ),
    "upsert": lambda table: stage_upsert(table, table.scan(blobs="values")),
    "overwrite": lambda table: stage_overwrite(table, table.scan(blobs="values")),
    "compaction": lambda table: stage_compaction(table, target_rows_per_fragment=100),
}


@pytest.mark.parametrize("copy", COPIES)
def test_values_survive_a_copy(backend: Tables, outside: str, copy: str) -> None:
    table = commit(backend, stage_append(seed(backend, outside), files({"more": b"more"})))
    after = commit(backend, COPIES[copy](table))
    assert bodies(after) == {**SEEDED, "more": b"more"}
    assert references(after) == references(table)


def test_an_external_value_need_not_be_there_to_be_copied(tables: Tables, outside: str, tmp_path: Path) -> None:
    table = seed(tables, outside)
    (tmp_path / "outside.bin").unlink()
    after = commit(tables, stage_overwrite(table, table.scan(blobs="values")))
    assert references(after) == references(table)


def test_plain_bytes_are_taken_as_blobs(tables: Tables, outside: str) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        data = pa.table(
            {"id": ["a", "b", "c"], "body": pa.array([b"x", None, b""], kind), "size": pa.array([1, 2, 3], pa.int32())}
        )
        table = commit(tables, stage_upsert(tables.open_head(FILES) or seed(tables, outside), data))
        assert {id_: bodies(table)[id_] for id_ in "abc"} == {"a": b"x", "b": None, "c": b""}


def test_descriptors_are_refused(tables: Tables, outside: str) -> None:
    table = seed(tables, outside)
    with pytest.raises(BadRequest, match="blobs='values'"):
        stage_append(table, table.read())


def test_an_upsert_replaces_and_inserts(tables: Tables, outside: str) -> None:
    table = seed(tables, outside)
    staged = stage_upsert(table, files({"bytes": b"changed", "new": lance.Blob.from_uri(outside)}))
    assert staged.stats == Stats(inserted=1, updated=1)
    after = commit(tables, staged)
    assert bodies(after) == {**SEEDED, "bytes": b"changed", "new": b"0123456789"}
    undo(tables, FILES, pin=table.version)
    assert bodies(head(tables, FILES)) == SEEDED


def test_values_of_some_columns_and_rows(tables: Tables, outside: str) -> None:
    table = seed(tables, outside)
    read = table.read(["body"], "id = 'bytes'", blobs="values", with_row_address=True)
    assert read.schema.names == ["body", "_rowaddr"]
    assert table.read(["id"], blobs="values").schema.names == ["id"]
    assert (
        table.read(["id", "body"], "id = 'nobody'", blobs="values").schema.field("body").type
        == SCHEMA.field("body").type
    )
    assert table.take_ids(pa.array(["empty"]), ["id", "body"], blobs="bytes").to_pylist() == [
        {"id": "empty", "body": b""}
    ]


def damaged(tables: Tables, size: int, outside: str) -> Table:
    """A table in which one bit of the descriptor of a blob of this size is flipped: it claims 2^47 bytes more."""
    seed(tables, outside)
    table = commit(tables, stage_append(head(tables, FILES), files({"big": b"z" * size})))
    (file,) = table.dataset.get_fragments()[-1].metadata.files
    place = tables.root.local_path(f"{FILES.path}/data/{file.path}")
    data = bytearray(place.read_bytes())
    at = data.index(size.to_bytes(8, "little"))
    data[at + 5] ^= 0x80
    place.write_bytes(data)
    fresh = Tables(tables.root)
    return head(fresh, FILES)


@pytest.mark.parametrize("size", [4321, 123_457, 5_000_001], ids=["inline", "packed", "in a file of its own"])
@pytest.mark.parametrize("blobs", ["bytes", "values"])
def test_a_descriptor_that_can_not_be_true_is_reported(tables: Tables, outside: str, size: int, blobs: Blobs) -> None:
    """Lance would ask for every block of 2^47 bytes, and not come back."""
    table = damaged(tables, size, outside)
    with pytest.raises(Corrupt, match="is a blob .*damaged"):
        table.read(["id", "body"], blobs=blobs)
    with pytest.raises(Corrupt, match="is a blob .*damaged"):
        list(table.scan(["id", "body"], blobs=blobs))


def test_a_read_that_hangs_ends(tables: Tables, outside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = seed(tables, outside)
    over = threading.Event()

    class Hanging:
        def __iter__(self) -> Hanging:
            return self

        def __next__(self) -> pa.RecordBatch:
            over.wait()
            raise StopIteration

    monkeypatch.setattr("omnigraph.storage.tables.blobs.READ_SECONDS", 0.05)
    with monkeypatch.context() as patched, pytest.raises(StorageError, match="has not ended after.*try again") as slow:
        patched.setattr(lance.LanceDataset, "read_blobs", lambda *args, **kwargs: over.wait())
        table.read(["id", "body"], blobs="values")
    assert slow.value.kind == "transient"
    with monkeypatch.context() as patched, pytest.raises(StorageError, match="has not ended after.*try again"):
        patched.setattr(LanceScanner, "to_batches", lambda *args: Hanging())
        list(table.scan(["id"], watched=True))
    over.set()
    monkeypatch.undo()
    assert len([row for batch in table.scan(["id"], watched=True) for row in batch.to_pylist()]) == len(SEEDED)
