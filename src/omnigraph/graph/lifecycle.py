"""Creating and opening a graph.

Creation is one publish: tables and schema files first, then `__manifest`, whose first version holds the genesis commit. Before
that the folder is not a graph; a claim file records what the creator has made, in case it dies.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import orjson

from omnigraph import failpoints
from omnigraph.commit import rows, schema_files
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.context import DURABILITY_MODES, PROCESS, CommitContext, limits_from_environment
from omnigraph.commit.format import CURRENT
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.migrations import migrated
from omnigraph.commit.model import MAIN, Lineage, TableEntry
from omnigraph.commit.place import ROOT_RECORD, PlaceRecord
from omnigraph.commit.recovery import fresh_state, heal
from omnigraph.commit.sidecar import Sidecar, UnreadableSidecar, list_sidecars, read_sidecar
from omnigraph.errors import (
    AlreadyExists,
    AlreadyInitialized,
    BadRequest,
    GraphNotFound,
    ManifestContention,
    RecoveryRequired,
    SchemaContractError,
    StorageError,
)
from omnigraph.graph.contract import Contract, accept, check_identities, read_contract
from omnigraph.ids import new_incarnation, new_ulid, now_micros
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.storage.digests import LOG
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.outputs import refuse_inside_graph
from omnigraph.storage.root import Root
from omnigraph.storage.tables.commit import commit_staged, create_dataset
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_create
from omnigraph.values.columns import table_path, table_schema

CLAIM = "__init_claim.json"
TABLE_FOLDERS = ("nodes", "edges")

failpoints.declare("init.after_claim", "init.after_tables", "init.after_schema_files", "init.after_manifest")
failpoints.declare("discard.after_claim", "discard.after_manifest")


def connect(
    uri: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    durability: str = PROCESS,
    store: ObjectStore | None = None,
) -> CommitContext:
    """The stores, manifest reader and locks of a graph; accesses no storage yet."""
    if durability not in DURABILITY_MODES:
        raise BadRequest(f"durability is {' or '.join(DURABILITY_MODES)}, not '{durability}'")
    root = Root.parse(uri, storage_options)
    objects = store if store is not None else open_store(root)
    tables = Tables(root)
    manifest = Manifest(objects, tables)
    limits = limits_from_environment()
    return CommitContext(root, objects, tables, manifest, BranchLocks(objects, root), durability, limits)


# --- creating ---------------------------------------------------------------------------------------------------------


def create(
    context: CommitContext, source: str, *, file: str | None = None, force: bool = False, actor: str | None = None
) -> Contract:
    """Create a graph at a place without a graph. `force` replaces orphaned schema files, never a graph. `file`: where the schema
    text was read, for errors.
    """
    catalog = compile_schema(source, file)
    incarnation = new_incarnation()
    ir = accept_schema(catalog, None, incarnation)
    contract = accept(source, ir, schema_version=1, identity_domain=new_ulid())
    refuse_inside_graph(context.root)
    # A living creator holds the lock; a claim found under the lock belongs to a dead creator.
    with context.locks.hold(MAIN) as lock:
        _refuse_existing(context, force)
        context.store.probe_create_if_absent()
        _remove_leftovers(context.store)
        _put_new(context, CLAIM, orjson.dumps({"incarnation": f"{incarnation:016x}", "created_at": now_micros()}))
        failpoints.hit("init.after_claim")
        entries = _create_tables(context, contract)
        failpoints.hit("init.after_tables")
        schema_files.note_digests(context.root, contract.files())
        for name, data in contract.files().items():
            _put_new(context, name, data)
        context.store.put(schema_files.archive_path(contract.ir_hash), contract.files()[schema_files.COMPILED])
        context.place.write(PlaceRecord(context.root.uri))
        failpoints.hit("init.after_schema_files")
        context.make_durable("")
        if not lock.still_held():
            raise ManifestContention(f"the lock of {context.root.uri} was lost while it was being created; try again")
        _create_manifest(context, entries, actor, contract.ir_hash)
        context.make_durable(MANIFEST_PATH)
        failpoints.hit("init.after_manifest")
        context.store.delete(CLAIM)
    return contract


def discard(context: CommitContext) -> None:
    """Remove a graph that the caller has just created and nobody has written to, as if its creator had died.

    The claim is written first, so that after a crash in here the next creator removes the rest. A graph with further commits
    stays as it is.
    """
    with context.locks.hold(MAIN):
        context.manifest.forget(MAIN)
        state = context.manifest.load(MAIN)
        if state.version != 1:
            return
        incarnations = {f"{entry.identity[1]:016x}" for entry in state.tables.values()}
        claim = {"incarnation": next(iter(incarnations), None), "created_at": now_micros()}
        context.store.put(CLAIM, orjson.dumps(claim))
        failpoints.hit("discard.after_claim")
        context.store.delete_prefix(MANIFEST_PATH)
        failpoints.hit("discard.after_manifest")
        _remove_leftovers(context.store)
        context.store.delete_prefix(schema_files.ARCHIVE)
        context.store.delete(ROOT_RECORD)
        context.manifest.forget(MAIN)
    if context.root.is_local:
        _remove_empty_folders(Path(context.root.uri))


def _remove_empty_folders(root: Path) -> None:
    """Remove the folder of a removed graph if only locks and empty folders are left in it."""
    left = [path for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] != "__locks"]
    if not left:
        shutil.rmtree(root, ignore_errors=True)


def _put_new(context: CommitContext, name: str, data: bytes) -> None:
    """Create a file of the new graph. If it exists, another creator ignored the lock; this raises an error."""
    try:
        context.store.create(name, data)
    except StorageError as error:
        if error.kind != "precondition":
            raise
        raise _overtaken(context) from error


def _overtaken(context: CommitContext) -> AlreadyInitialized:
    uri = context.root.uri
    return AlreadyInitialized(f"{uri} is being initialized by another process; open it", name=uri)


def _has_manifest(store: ObjectStore) -> bool:
    """Whether there is a graph: a manifest with a version. Data files without a version were left by a dead creator."""
    return store.exists(f"{MANIFEST_PATH}/_versions")


def _refuse_existing(context: CommitContext, force: bool) -> None:
    store, uri = context.store, context.root.uri
    if _has_manifest(store):
        raise AlreadyInitialized(f"{uri} is already initialized; open it, or choose another place", name=uri)
    if store.exists(CLAIM):
        return
    tables = [name for name in (MANIFEST_PATH, *TABLE_FOLDERS) if store.exists(name)]
    orphans = [name for name in schema_files.FILES if store.exists(name)]
    if tables:
        raise AlreadyInitialized(
            f"{uri} is already initialized, or was: it holds {', '.join([*orphans, *tables])} but no readable graph; "
            "restore it from a backup, or choose another place",
            name=uri,
        )
    if orphans and not force:
        raise AlreadyInitialized(
            f"{uri} is already initialized in part: it holds {', '.join(orphans)} but no graph; "
            "remove them, or replace them with force",
            name=uri,
        )


def _remove_leftovers(store: ObjectStore) -> None:
    """Remove what a dead creator made, according to its claim, and schema files without a graph."""
    claim = store.get_or_none(CLAIM)
    if claim is not None:
        for path in (MANIFEST_PATH, *_tables_of(store, _claimed_incarnation(claim))):
            store.delete_prefix(path)
    for name in schema_files.FILES:
        store.delete(name)
    store.delete(LOG)
    store.delete(CLAIM)


def _claimed_incarnation(claim: bytes) -> str | None:
    try:
        return str(orjson.loads(claim)["incarnation"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        # Its tables stay as garbage, which is harmless: incarnations are unique.
        return None


def _tables_of(store: ObjectStore, incarnation: str | None) -> set[str]:
    """The table folders of one incarnation."""
    if not incarnation:
        return set()
    paths = ("/".join(info.path.split("/")[:2]) for folder in TABLE_FOLDERS for info in store.list(folder))
    return {path for path in paths if path.endswith(f"-{incarnation}")}


def _create_tables(context: CommitContext, contract: Contract) -> list[TableEntry]:
    entries = []
    for entity in contract.types():
        path = table_path(entity)
        staged = stage_create(context.tables, Location(path), table_schema(entity))
        version = commit_staged(context.tables, staged, expected_version=None, transaction_id=new_ulid())
        entries.append(
            TableEntry(
                key=entity.type_key,
                path=path,
                identity=(entity.id, entity.incarnation),
                version=version,
                branch=None,
                row_count=0,
            )
        )
    return entries


def _create_manifest(context: CommitContext, entries: list[TableEntry], actor: str | None, schema_hash: str) -> None:
    """Create the first manifest version: all tables, and the genesis commit, which has no parent."""
    genesis = Lineage(id=new_ulid(), created_at=now_micros(), kind="init", actor=actor)
    first = [row for entry in entries for row in (rows.table_row(entry), rows.version_row(entry))]
    first.append(rows.commit_row(genesis, branch=MAIN, parent=None))
    first.append(rows.head_row(MAIN, genesis.id))
    first.append(rows.fence_row(0, genesis.id, schema_hash))
    schema = rows.manifest_schema(CURRENT)
    try:
        create_dataset(context.root, MANIFEST_PATH, schema, rows.to_arrow(first, schema))
    except AlreadyExists as error:
        raise _overtaken(context) from error


# --- opening ----------------------------------------------------------------------------------------------------------


def open_for_writing(context: CommitContext) -> Contract:
    """Open read-write: check the format, migrate main, heal sidecars and schema files, then read the contract."""
    refuse_missing(context)
    stamp = _stamp(context)
    context.store.probe_create_if_absent()
    if stamp != CURRENT:
        with context.locks.hold(MAIN):
            migrated(context, MAIN)
    if context.store.exists(CLAIM):
        _refuse_restoring(context)
        # The creator died directly after writing the manifest: the graph is complete.
        context.store.delete(CLAIM)
    heal(context)
    try:
        return checked_contract(context)
    except SchemaContractError:
        if not list_sidecars(context.store):
            raise
    # A live writer that is putting schema files in place holds the lock until it is done.
    with context.locks.hold(MAIN):
        heal(context, holding={MAIN})
        return checked_contract(context)


def _refuse_restoring(context: CommitContext) -> None:
    """Raise GraphNotFound for a graph whose restore is not complete."""
    if b'"restore"' in (context.store.get_or_none(CLAIM) or b""):
        raise GraphNotFound(
            f"{context.root.uri} holds a graph whose restore is not finished or was interrupted; run `omnigraph restore` again",
            uri=context.root.uri,
        )


def _stamp(context: CommitContext) -> int:
    """The format of main. A manifest that can not be read may have been torn by a power failure; it is read under the lock."""
    try:
        return context.manifest.load().stamp
    except StorageError:
        # Under the lock, since another process may be replacing the torn version.
        with context.locks.hold(MAIN):
            return fresh_state(context, MAIN).stamp


def open_for_reading(context: CommitContext) -> Contract:
    """Open read-only: check the format and read the contract; nothing is written, deleted or recovered."""
    refuse_missing(context)
    context.manifest.load()
    for sidecar in readable_sidecars(context.store):
        _refuse_unpromoted_schema(context, sidecar)
    return checked_contract(context)


def checked_contract(context: CommitContext) -> Contract:
    """The contract on disk, checked against the manifest."""
    contract = read_contract(context.store, context.manifest.load)
    check_identities(contract, context.manifest.load())
    return contract


def refuse_missing(context: CommitContext) -> None:
    """Raise GraphNotFound for a place without a complete graph; the message says what is there."""
    store, uri = context.store, context.root.uri
    if _has_manifest(store):
        return
    if store.exists(CLAIM):
        _refuse_restoring(context)
        raise GraphNotFound(
            f"{uri} holds a graph whose creation is not finished or was interrupted; run `omnigraph init` there again",
            uri=uri,
        )
    parts = [name for name in (*schema_files.FILES, MANIFEST_PATH, *TABLE_FOLDERS) if store.exists(name)]
    if parts:
        raise GraphNotFound(
            f"{uri} holds parts of a graph ({', '.join(parts)}) but no whole {MANIFEST_PATH}; restore it from a backup",
            uri=uri,
        )
    raise GraphNotFound(f"there is no graph at {uri}; create one with `omnigraph init`", uri=uri)


def readable_sidecars(store: ObjectStore) -> list[Sidecar]:
    """The sidecars that can be read. Unreadable ones do not stop a reader, which neither heals nor deletes them."""
    found = []
    for operation_id in list_sidecars(store):
        try:
            sidecar = read_sidecar(store, operation_id)
        except UnreadableSidecar:
            continue
        if sidecar is not None:
            found.append(sidecar)
    return found


def _refuse_unpromoted_schema(context: CommitContext, sidecar: Sidecar) -> None:
    """Raise RecoveryRequired for a pending schema change, unless it is published and its schema files are in place."""
    if not sidecar.moves_schema_files:
        return
    published = sidecar.published or context.manifest.find_commit(sidecar.branch, sidecar.commit.id) is not None
    if published and schema_files.live_target(context.store) == sidecar.schema_target:
        return
    raise RecoveryRequired(
        f"a schema change (operation {sidecar.operation_id}) is half done; open the graph read-write once to settle it",
        operation_id=sidecar.operation_id,
    )
