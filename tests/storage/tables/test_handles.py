"""Handles: what is there, at which version, made by whom; absent and unreadable are never mixed up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.root import Root
from omnigraph.storage.tables import handles
from omnigraph.storage.tables.commit import commit_staged, create_lance_branch, fork
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import Corrupt, Missing
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append, stage_create, stage_index
from omnigraph.storage.tables.version_files import version_file
from tests.s3 import S3Server
from tests.storage.tables.people import HOME, SCHEMA, SEEDED, commit, foreign_append, head, people, rows, seed


@pytest.mark.parametrize("location", [HOME, Location(HOME.path, "no-such-branch")], ids=str)
def test_what_does_not_exist_is_none(backend: Tables, location: Location) -> None:
    if location.branch is not None:
        seed(backend)
    assert backend.open_head(location) is None
    assert backend.head_version(location) is None
    assert backend.created_by(location, 1) is None


def test_exists(backend: Tables) -> None:
    assert not backend.exists(HOME.path)
    seed(backend)
    assert backend.exists(HOME.path)


def test_the_head_is_read_afresh(backend: Tables) -> None:
    table = seed(backend)
    foreign_append(backend)
    assert backend.head_version(HOME) == table.version + 1
    assert head(backend).count_rows() == len(SEEDED) + 1


def test_a_version_does_not_move(backend: Tables) -> None:
    table = seed(backend)
    foreign_append(backend)
    assert rows(backend.open(HOME, table.version)) == SEEDED
    assert backend.open(HOME, table.version).version == table.version


def test_a_handle_is_kept(tables: Tables) -> None:
    table = seed(tables)
    assert tables.open(HOME, table.version) is tables.open(HOME, table.version)
    tables.forget(HOME)
    assert tables.open(HOME, table.version) is not tables.open(HOME, 1)


def test_a_handle_stays_usable_while_another_thread_reads_its_transaction(tables: Tables) -> None:
    table = seed(tables)
    is_over = Event()

    def ask() -> None:
        while not is_over.is_set():
            tables.created_by(HOME, table.version)

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        try:
            for _ in range(20_000):
                assert tables.open(HOME, table.version).dataset.lance_schema.fields()
        finally:
            is_over.set()
        asking.result()


def test_only_so_many_handles_are_kept(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "CACHED_HANDLES", 2)
    seed(tables)
    first = tables.open(HOME, 1)
    tables.open(HOME, 2)
    assert tables.open(HOME, 1) is first
    tables.open(HOME, 3)
    assert tables.open(HOME, 1) is first, "the one used last stays"
    tables.open(HOME, 2)
    tables.open(HOME, 3)
    assert tables.open(HOME, 1) is not first


def test_manifests_of_many_versions_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "METADATA_CACHE_BYTES", 50_000)
    tables = Tables(Root.parse(tmp_path / "graph"))
    seed(tables)
    for number in range(40):
        commit(tables, stage_append(head(tables), people([1000 + number])))
        assert len(rows(head(tables))) == len(SEEDED) + number + 1
    assert tables.session.size_bytes() < 100_000


def test_forgetting_a_table_forgets_its_forks(tables: Tables) -> None:
    table = seed(tables)
    location = fork(tables, HOME, table.version, "01FORK")
    kept = tables.open(location, table.version)
    tables.forget(Location("nodes/another"))
    assert tables.open(location, table.version) is kept
    tables.forget(HOME)
    assert tables.open(location, table.version) is not kept


def test_a_missing_version(backend: Tables) -> None:
    seed(backend)
    with pytest.raises(Missing, match="version 99") as caught:
        backend.open(HOME, 99)
    assert caught.value.kind == "not_found"


def test_who_made_a_version(backend: Tables) -> None:
    table = commit(backend, stage_append(seed(backend), people([20])), "tx-20")
    foreign_append(backend)
    assert backend.created_by(HOME, table.version) == "tx-20"
    assert backend.created_by(HOME, table.version + 1) is None
    assert backend.created_by(HOME, table.version + 2) is None


def test_threads_share_the_tables(tables: Tables) -> None:
    table = seed(tables)

    def look(number: int) -> list[str]:
        found = tables.open(HOME, table.version - number % 2).take_ids(pa.array([f"p{number}"]), ["id"])
        listed: list[str] = found["id"].to_pylist()
        return listed

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(look, [2, 3, 4, 5] * 10))
    assert answers == [[f"p{number}"] for number in (2, 3, 4, 5)] * 10


# --- unreadable is an error, never None -------------------------------------------------------------------------------


def newest_manifest(root: Root) -> Path:
    versions = Path(root.lance_uri(HOME.path)) / "_versions"
    return min(versions.glob("*.manifest"), key=lambda path: path.name)


@pytest.mark.parametrize("content", [b"", b"junk", b"\x00" * 500], ids=["empty", "junk", "zeros"])
def test_a_corrupt_head_is_an_error(tables: Tables, content: bytes) -> None:
    table = seed(tables)
    newest_manifest(tables.root).write_bytes(content)
    fresh = Tables(tables.root)
    for probe in (fresh.open_head, fresh.head_version):
        with pytest.raises(Corrupt) as caught:
            probe(HOME)
        assert caught.value.kind == "permanent"
    with pytest.raises(Corrupt):
        fresh.exists(HOME.path)
    with pytest.raises(Corrupt):
        fresh.open(HOME, table.version)
    assert fresh.created_by(HOME, table.version) is None


def test_a_file_in_the_place_of_a_table_is_an_error(tables: Tables) -> None:
    place = Path(tables.root.lance_uri(HOME.path))
    place.parent.mkdir(parents=True)
    place.write_text("a file")
    with pytest.raises(StorageError) as caught:
        tables.open_head(HOME)
    assert caught.value.kind == "configuration"


def test_a_lost_data_file_is_an_error_when_read(tables: Tables) -> None:
    table = seed(tables)
    for data in (Path(tables.root.lance_uri(HOME.path)) / "data").glob("*.lance"):
        data.unlink()
    with pytest.raises(Corrupt):
        Tables(tables.root).open(HOME, table.version).read()


def test_a_missing_bucket_is_an_error(s3_server: S3Server) -> None:
    tables = Tables(Root.parse("s3://there-is-no-such-bucket/graph", {**s3_server.options, "client_max_retries": "0"}))
    with pytest.raises(StorageError) as caught:
        tables.open_head(HOME)
    assert caught.value.kind == "configuration"


def test_a_store_that_does_not_answer_is_an_error(s3_server: S3Server) -> None:
    options = {**s3_server.options, "aws_endpoint": "http://127.0.0.1:9", "client_max_retries": "0"}
    with pytest.raises(StorageError) as caught:
        Tables(Root.parse("s3://bucket/graph", options)).open_head(HOME)
    assert caught.value.kind == "transient"


def test_a_panic_inside_lance_is_a_typed_error(tables: Tables) -> None:
    """One flipped bit in the length of a manifest's section: Lance slices beyond the end and panics."""
    table = seed(tables)
    place = tables.root.local_path(version_file(HOME, table.version))
    data = bytearray(place.read_bytes())
    data[3] ^= 1
    place.write_bytes(data)
    with pytest.raises(Corrupt, match="out of range.*omnigraph verify"):
        head(Tables(tables.root)).indices()


def test_a_shared_handle_can_be_used_while_an_index_is_built(tables: Tables) -> None:
    """Lance gives a handle to one thread only while it builds an index, or makes a branch or a clone."""
    created = stage_create(tables, HOME, SCHEMA, people(range(200_000)))
    version = commit_staged(tables, created, expected_version=None, transaction_id="large")
    table = tables.open(HOME, version)
    over = Event()
    failures: list[str] = []

    def use() -> None:
        while not over.is_set():
            try:
                assert table.schema.names == ["id", "name"]
                table.count_rows()
            except Exception as error:
                failures.append(str(error))

    users = [Thread(target=use) for _ in range(2)]
    for user in users:
        user.start()
    try:
        for number in range(5):
            stage_index(table, "id", "INVERTED", f"words{number}")
            create_lance_branch(table.dataset, f"b{number}", version)
    finally:
        over.set()
        for user in users:
            user.join()
    assert failures == []
