"""The three schema files of a graph and their staged copies, as bytes. The graph layer interprets them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from omnigraph import failpoints
from omnigraph.storage.digests import digest_of, note
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root

SOURCE = "_schema.pg"
COMPILED = "_schema.ir.json"
STATE = "__schema_state.json"
#: The compiled schema is promoted last: as long as its staged copy exists, a promotion can be repeated.
FILES = (SOURCE, STATE, COMPILED)

ARCHIVE = "_schemas"
SOURCES = "_schema_sources"

failpoints.declare("schema_apply.mid_promote")

SchemaFiles = Mapping[str, bytes]


def target_hash(compiled: bytes) -> str:
    """The hash of a compiled schema, as in a sidecar's `schema_target`."""
    return hashlib.sha256(compiled).hexdigest()


def archive_path(target: str) -> str:
    """The path where the accepted schema with this hash is kept for good, to read old snapshots with their schema."""
    return f"{ARCHIVE}/{target}.ir.json"


def archived_source_path(target: str) -> str:
    """The path of the source text of an accepted schema. Some have no stored text; then the compiled schema is printed."""
    return f"{SOURCES}/{target}.pg"


def staged_path(name: str) -> str:
    return f"{name}.staged"


def stage(store: ObjectStore, files: SchemaFiles) -> None:
    """Write the staged copies of the three files."""
    for name in FILES:
        store.put(staged_path(name), files[name])


def staged_target(store: ObjectStore) -> str | None:
    """The target hash of the staged files; None when one of the three is missing."""
    staged = {name: store.get_or_none(staged_path(name)) for name in FILES}
    compiled = staged[COMPILED]
    if compiled is None or any(data is None for data in staged.values()):
        return None
    return target_hash(compiled)


def archive(store: ObjectStore, root: Root, files: SchemaFiles) -> None:
    """Keep a schema for good under its hash, with its text. Repeatable; a path always gets the same content."""
    target = target_hash(files[COMPILED])
    kept = {archive_path(target): files[COMPILED], archived_source_path(target): files[SOURCE]}
    note(root, {path: digest_of(data) for path, data in kept.items()})
    for path, data in kept.items():
        store.put(path, data)


def is_archived(store: ObjectStore, target: str | None) -> bool:
    """Whether the compiled schema with this hash is archived and undamaged."""
    data = None if target is None else store.get_or_none(archive_path(target))
    return data is not None and target_hash(data) == target


def live_target(store: ObjectStore) -> str | None:
    """The target hash of the live compiled schema; None when there is none."""
    compiled = store.get_or_none(COMPILED)
    return None if compiled is None else target_hash(compiled)


def note_digests(root: Root, files: SchemaFiles) -> None:
    """Record the digests that the schema files and the archived schema will have; called before they are replaced."""
    archived = {archive_path(target_hash(files[COMPILED])): files[COMPILED]} if COMPILED in files else {}
    note(root, {path: digest_of(data) for path, data in {**files, **archived}.items()})


def promote(store: ObjectStore, root: Root) -> None:
    """Make the staged files the live files. Repeatable after a crash at any point."""
    for name in FILES:
        data = store.get_or_none(staged_path(name))
        if data is not None:
            note_digests(root, {name: data})
            if name == COMPILED:
                store.put(archive_path(target_hash(data)), data)
            store.put(name, data)
            failpoints.hit("schema_apply.mid_promote")
    drop_staged(store)


def drop_staged(store: ObjectStore) -> None:
    """Remove the staged copies."""
    for name in FILES:
        store.delete(staged_path(name))
