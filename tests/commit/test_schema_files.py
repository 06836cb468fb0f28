"""The schema files and their staged copies: a promotion that dies anywhere can be repeated, and the state file is pinned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.commit import schema_files
from omnigraph.commit.schema_files import COMPILED, FILES, SOURCE, STATE
from omnigraph.errors import StorageError
from omnigraph.graph.contract import accept
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root

GOLDEN = Path(__file__).parent / "golden"
OLD = {name: f"old {name}".encode() for name in FILES}
NEW = {name: f"new {name}".encode() for name in FILES}
TARGET = schema_files.target_hash(NEW[COMPILED])


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """A store with the old schema live and the new one staged."""
    opened = open_store(Root.parse(tmp_path))
    for name, data in OLD.items():
        opened.put(name, data)
    schema_files.stage(opened, NEW)
    return opened


def live(store: ObjectStore) -> dict[str, bytes]:
    return {name: store.get(name) for name in FILES}


def staged(store: ObjectStore) -> list[str]:
    return [name for name in FILES if store.exists(schema_files.staged_path(name))]


def test_staging_leaves_the_live_files_alone(store: ObjectStore) -> None:
    assert live(store) == OLD
    assert schema_files.staged_target(store) == TARGET
    assert schema_files.live_target(store) == schema_files.target_hash(OLD[COMPILED])


def test_promoting(store: ObjectStore, store_root: Root) -> None:
    schema_files.promote(store, store_root)
    assert live(store) == NEW
    assert staged(store) == []
    assert store.get(schema_files.archive_path(schema_files.target_hash(NEW[COMPILED]))) == NEW[COMPILED]


def test_dropping(store: ObjectStore) -> None:
    schema_files.drop_staged(store)
    assert live(store) == OLD
    assert staged(store) == []


@pytest.mark.parametrize("name", FILES)
def test_an_incomplete_staged_set_has_no_target(store: ObjectStore, name: str) -> None:
    store.delete(schema_files.staged_path(name))
    assert schema_files.staged_target(store) is None


@pytest.mark.parametrize("effect", [error_before, error_after])
@pytest.mark.parametrize(("verb", "nth"), [("put", n) for n in range(1, 5)] + [("delete", n) for n in range(1, 4)])
def test_a_promotion_that_dies_anywhere_can_be_finished(
    store: ObjectStore, store_root: Root, verb: str, nth: int, effect: Callable[..., Fault]
) -> None:
    faulty = FaultyStore(store, [effect(verb, nth=nth)])
    with pytest.raises(StorageError):
        schema_files.promote(faulty, store_root)
    if schema_files.staged_target(store) == TARGET:
        schema_files.promote(store, store_root)
    else:
        assert live(store) == NEW, "the staged copies went before the live files were new"
        schema_files.drop_staged(store)
    assert live(store) == NEW
    assert staged(store) == []
    assert store.exists(schema_files.archive_path(schema_files.target_hash(NEW[COMPILED])))


def test_the_state_file_is_pinned() -> None:
    source = "node Staff {\n  handle: String @key\n}\n"
    ir = accept_schema(compile_schema(source), None, incarnation=0xA1)
    files = accept(source, ir, schema_version=1, identity_domain="01J00000000000000000000001").files()
    assert files[STATE] == (GOLDEN / "schema_state.json").read_bytes().rstrip(b"\n")
    assert files[SOURCE] == source.encode()
