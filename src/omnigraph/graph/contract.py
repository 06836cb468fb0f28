"""The schema contract of a graph: three files that must agree with each other and with the manifest.

`_schema.pg` is the source, `_schema.ir.json` the compiled schema with stable ids, and `__schema_state.json` names the accepted
compiled schema and the graph to which it belongs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from omnigraph.commit.model import Identity, ManifestState, identity_text
from omnigraph.commit.schema_files import (
    ARCHIVE,
    COMPILED,
    SOURCE,
    STATE,
    SchemaFiles,
    archive_path,
    archived_source_path,
    staged_path,
)
from omnigraph.errors import LanguageError, SchemaContractError
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.schema.ir import SchemaIR, catalog_of, fingerprint
from omnigraph.language.schema.printer import print_schema
from omnigraph.shown import Shown
from omnigraph.storage.objects import ObjectStore

CONTRACT_FORMAT = 1
#: How many differing types a message names.
_NAMED_TYPES = 5
_STATE_FIELDS = {"format": int, "schema_version": int, "ir_hash": str, "fingerprint": str, "identity_domain": str}


@dataclass(frozen=True)
class Contract(Shown):
    """An accepted schema: the source, its compiled form, and the identity domain of the graph it belongs to."""

    source: str
    ir: SchemaIR
    catalog: Catalog
    schema_version: int
    identity_domain: str
    ir_hash: str

    def files(self) -> SchemaFiles:
        """The contents of the three files by name."""
        state = {
            "format": CONTRACT_FORMAT,
            "schema_version": self.schema_version,
            "ir_hash": self.ir_hash,
            "fingerprint": fingerprint(self.catalog),
            "identity_domain": self.identity_domain,
        }
        return {
            SOURCE: self.source.encode(),
            COMPILED: self.ir.to_json().encode(),
            STATE: orjson.dumps(state, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS),
        }

    def types(self) -> list[NodeType | EdgeType]:
        """Every type of the schema, nodes first."""
        return [*self.catalog.nodes.values(), *self.catalog.edges.values()]

    def identities(self) -> set[Identity]:
        """The identities (stable id, incarnation) of the tables of this schema."""
        return set(self.names().values())

    def names(self) -> Mapping[str, Identity]:
        """The identities of the tables of this schema by type key."""
        return self._names

    @cached_property
    def _names(self) -> Mapping[str, Identity]:
        return _names(self.catalog)


def _names(catalog: Catalog) -> dict[str, Identity]:
    """The identities of the types of a catalog by type key, nodes first."""
    entities: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {entity.type_key: (entity.id, entity.incarnation) for entity in entities}


def accept(source: str, ir: SchemaIR, *, schema_version: int, identity_domain: str) -> Contract:
    """The contract of a schema that a graph is about to accept."""
    compiled = ir.to_json().encode()
    return Contract(
        source=source,
        ir=ir,
        catalog=catalog_of(ir),
        schema_version=schema_version,
        identity_domain=identity_domain,
        ir_hash=hashlib.sha256(compiled).hexdigest(),
    )


def read_contract(store: ObjectStore, published: Callable[[], ManifestState] | None = None) -> Contract:
    """The contract of a graph, with its three files checked against each other.

    `published`: reads the manifest's state; called only when the files disagree, to name the types that differ.
    """
    source_bytes = _file(store, SOURCE)
    compiled = _file(store, COMPILED)
    state = _state(_file(store, STATE))
    ir = _compiled(compiled)
    catalog = catalog_of(ir)
    if hashlib.sha256(compiled).hexdigest() != state["ir_hash"]:
        _refuse_foreign_compiled(catalog, state, published)
    source = _source(source_bytes, catalog)
    return Contract(
        source=source,
        ir=ir,
        catalog=catalog,
        schema_version=state["schema_version"],
        identity_domain=state["identity_domain"],
        ir_hash=state["ir_hash"],
    )


def read_archived(store: ObjectStore, ir_hash: str, identity_domain: str) -> Contract:
    """A schema that was accepted once, by the hash of its compiled form; a source that was not kept is printed from it."""
    compiled = store.get_or_none(archive_path(ir_hash)) or _staged(store, ir_hash)
    if compiled is None:
        raise SchemaContractError(
            f"the schema {archive_path(ir_hash)} is missing; restore it, snapshots of its time can not be read without it",
            reason="file_missing",
            path=archive_path(ir_hash),
        )
    ir = _compiled(compiled, archive_path(ir_hash))
    kept = store.get_or_none(archived_source_path(ir_hash))
    source = None if kept is None else _same_meaning(kept, ir.catalog)
    return accept(source or print_schema(ir), ir, schema_version=0, identity_domain=identity_domain)


def read_first(store: ObjectStore, state: ManifestState, identity_domain: str) -> Contract:
    """The schema of a state that does not name its schema: the first accepted schema with the tables of the state."""
    wanted = {entry.key: entry.identity for entry in state.tables.values()}
    hashes = [info.path.removeprefix(f"{ARCHIVE}/").removesuffix(".ir.json") for info in store.list(ARCHIVE)]
    archived = (read_archived(store, ir_hash, identity_domain) for ir_hash in hashes)
    fitting = [contract for contract in archived if contract.names() == wanted]
    if not fitting:
        raise SchemaContractError(
            f"{ARCHIVE} has no schema with the tables of {state.snapshot_id}; restore it, or read with the schema of now",
            reason="file_missing",
            path=ARCHIVE,
        )
    return min(fitting, key=lambda contract: (contract.ir.next_type_id, sum(contract.ir.next_property_ids.values())))


def _staged(store: ObjectStore, ir_hash: str) -> bytes | None:
    """The compiled schema of a published change whose files are not yet in place: it is staged until it is archived."""
    staged = store.get_or_none(staged_path(COMPILED))
    if staged is not None and hashlib.sha256(staged).hexdigest() == ir_hash:
        return staged
    return store.get_or_none(archive_path(ir_hash))


def check_identities(contract: Contract, state: ManifestState) -> None:
    """Raise SchemaContractError unless the compiled schema names exactly the tables that the manifest publishes."""
    if contract.identities() != set(state.tables):
        types, told = _differing(contract.names(), state)
        raise SchemaContractError(
            f"identity mismatch: {COMPILED} names other tables than the manifest ({told}); restore the file that "
            "belongs to this graph",
            reason="identity_mismatch",
            path=COMPILED,
            types=types,
        )


def _differing(names: Mapping[str, Identity], state: ManifestState) -> tuple[list[str], str]:
    """The types whose tables differ between a compiled schema and the manifest, as type keys and as text."""
    published = {entry.key: entry.identity for entry in state.tables.values()}
    types, told = [], []
    for key in sorted(names.keys() | published.keys(), key=lambda key: (key.startswith("edge:"), key)):
        here, there = names.get(key), published.get(key)
        if here == there:
            continue
        types.append(key)
        if here is not None and there is not None:
            told.append(f"{key} is {identity_text(here)} in the schema and {identity_text(there)} in the manifest")
        else:
            told.append(f"{key} is only in the {'schema' if there is None else 'manifest'}")
    shown = told[:_NAMED_TYPES] + ([f"and {len(told) - _NAMED_TYPES} more"] if len(told) > _NAMED_TYPES else [])
    return types, "; ".join(shown)


def check_domain(contract: Contract, known: Contract) -> None:
    """Raise SchemaContractError when a contract belongs to another graph than `known`."""
    if contract.identity_domain != known.identity_domain:
        raise SchemaContractError(
            f"the identity domain in {STATE} changed from {known.identity_domain} to {contract.identity_domain}: "
            "these schema files belong to another graph",
            reason="identity_domain_changed",
            path=STATE,
        )


def _file(store: ObjectStore, name: str) -> bytes:
    data = store.get_or_none(name)
    if data is None:
        raise SchemaContractError(
            f"the schema file {name} is missing; restore it, a graph can not be read without it",
            reason="file_missing",
            path=name,
        )
    return data


def _state(data: bytes) -> dict[str, Any]:
    try:
        state = orjson.loads(data)
    except orjson.JSONDecodeError:
        state = None
    found: dict[str, Any] = state if isinstance(state, dict) else {}
    # The exact type is compared, because True is an int in Python. Versions and formats count from 1.
    wrong = [
        name
        for name, kind in _STATE_FIELDS.items()
        if type(found.get(name)) is not kind or (kind is int and found[name] < 1)
    ]
    if "format" not in wrong and found["format"] > CONTRACT_FORMAT:
        raise SchemaContractError(
            f"{STATE} has contract format {found['format']}, this OmniGraph knows {CONTRACT_FORMAT}; upgrade omnigraph",
            reason="format",
            path=STATE,
        )
    if wrong:
        raise SchemaContractError(
            f"{STATE} is damaged (no usable {', '.join(wrong)}); restore it", reason="state_corrupt", path=STATE
        )
    return found


def _compiled(data: bytes, path: str = COMPILED) -> SchemaIR:
    try:
        return SchemaIR.from_json(data.decode())
    except (SchemaContractError, UnicodeDecodeError) as error:
        raise SchemaContractError(
            f"the compiled schema {path} is corrupt ({error}); restore it", reason="compiled_corrupt", path=path
        ) from None


def _refuse_foreign_compiled(
    catalog: Catalog, state: dict[str, Any], published: Callable[[], ManifestState] | None
) -> None:
    """Raise the error for a compiled schema that is not the accepted one: equal except for ids, or another schema."""
    if fingerprint(catalog) == state["fingerprint"]:
        types, told = ([], "") if published is None else _differing(_names(catalog), published())
        raise SchemaContractError(
            f"identity mismatch: {COMPILED} has the accepted meaning but other type ids than {STATE} says"
            f"{f' ({told})' if told else ''}; restore it",
            reason="identity_mismatch",
            path=COMPILED,
            types=types,
        )
    raise SchemaContractError(
        f"the schema files were changed without {STATE}; restore them and use `omnigraph schema apply`",
        reason="changed_without_state",
        path=COMPILED,
    )


def _same_meaning(data: bytes, accepted: Catalog) -> str | None:
    """The text of a schema file if it has the meaning of the accepted schema, else None."""
    try:
        source = data.decode()
        unchanged = fingerprint(compile_schema(source, SOURCE, accepted=True)) == fingerprint(accepted)
    except (LanguageError, UnicodeDecodeError):
        return None
    return source if unchanged else None


def _source(data: bytes, accepted: Catalog) -> str:
    source = _same_meaning(data, accepted)
    if source is None:
        raise SchemaContractError(
            f"{SOURCE} no longer matches the accepted compiled schema; restore it and use `omnigraph schema apply` to "
            "change the schema",
            reason="source_changed",
            path=SOURCE,
        )
    return source
