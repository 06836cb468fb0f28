"""The ledger of a cluster: what was applied, how each resource stands, and what was seen. One file, replaced as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import orjson

from omnigraph.cluster.desired import Resource
from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.cluster.digests import state_cas
from omnigraph.cluster.layout import STATE, Place
from omnigraph.errors import StorageError

StatusWord = Literal["pending", "planned", "applying", "applied", "drifted", "blocked", "error"]
_STATUSES: tuple[str, ...] = get_args(StatusWord)
_FIELDS = frozenset(
    {
        "version",
        "state_revision",
        "applied_revision",
        "resource_statuses",
        "approval_records",
        "recovery_records",
        "observations",
    }
)
_ENTRY = frozenset({"digest", "applies_to", "embedding_provider", "embedding_profile", "external_blob_policy"})


@dataclass(frozen=True)
class Entry:
    """One applied resource."""

    digest: str
    applies_to: tuple[str, ...] = ()
    embedding_provider: str | None = None
    embedding_profile: Mapping[str, str] | None = None
    external_blob_policy: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, resource: Resource) -> Entry:
        """The entry of a declared resource."""
        profile = resource.embedding_profile
        return cls(
            resource.digest,
            resource.applies_to,
            resource.embedding_provider,
            None if profile is None else dict(profile),
            resource.external_blob_policy,
        )

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"digest": self.digest}
        if self.applies_to:
            told["applies_to"] = list(self.applies_to)
        for name in ("embedding_provider", "embedding_profile", "external_blob_policy"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name)
        return told


@dataclass(frozen=True)
class State:
    """The content of the ledger. `revision` 0 is a cluster that nothing was written about yet."""

    revision: int = 0
    config_digest: str | None = None
    resources: Mapping[str, Entry] = field(default_factory=dict)
    statuses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    approvals: Mapping[str, Any] = field(default_factory=dict)
    recoveries: Mapping[str, Any] = field(default_factory=dict)
    observations: Mapping[str, Any] = field(default_factory=dict)

    def digests(self) -> dict[str, str]:
        """The applied digests by address, sorted."""
        return {address: self.resources[address].digest for address in sorted(self.resources)}

    def encoded(self) -> bytes:
        """The state as the bytes of its file."""
        applied: dict[str, Any] = {} if self.config_digest is None else {"config_digest": self.config_digest}
        applied["resources"] = {address: self.resources[address].to_dict() for address in sorted(self.resources)}
        told = {
            "version": 1,
            "state_revision": self.revision,
            "applied_revision": applied,
            "resource_statuses": {address: self.statuses[address] for address in sorted(self.statuses)},
            "approval_records": self.approvals,
            "recovery_records": self.recoveries,
            "observations": {address: self.observations[address] for address in sorted(self.observations)},
        }
        return orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def with_entry(self, address: str, entry: Entry | None) -> State:
        """This state with another entry of a resource; None removes it and its status."""
        resources, statuses = dict(self.resources), dict(self.statuses)
        if entry is None:
            resources.pop(address, None)
            statuses.pop(address, None)
        else:
            resources[address] = entry
        return replace(self, resources=resources, statuses=statuses)

    def with_status(self, address: str, status: StatusWord, message: str | None = None, *conditions: str) -> State:
        """This state with another status of a resource."""
        told: dict[str, Any] = {"status": status}
        if conditions:
            told["conditions"] = list(conditions)
        if message is not None:
            told["message"] = message
        return replace(self, statuses={**self.statuses, address: told})

    def with_observation(self, address: str, told: Mapping[str, Any]) -> State:
        """This state with what was seen of a resource."""
        return replace(self, observations={**self.observations, address: dict(told)})


@dataclass(frozen=True)
class Read:
    """The ledger as it was read: `tag` is what its replacement is compared with, None when there is no file."""

    state: State
    tag: str | None = None
    cas: str | None = None

    @property
    def found(self) -> bool:
        return self.tag is not None


def read_state(place: Place, findings: Findings) -> Read:
    """The ledger, an empty one when there is none. Stop when it can not be read or understood."""
    try:
        found = place.store.get_tagged_or_none(STATE)
    except StorageError as error:
        findings.error("state_read_error", STATE, error.message)
        raise Stop from None
    if found is None:
        return Read(State())
    content, tag = found
    return Read(_decoded(content, findings), tag, state_cas(content))


def write_state(place: Place, before: Read, state: State, findings: Findings) -> Read:
    """Replace the ledger that was read. Stop when another one is there now, or when it can not be written."""
    content = state.encoded()
    try:
        tag = place.store.create(STATE, content) if before.tag is None else place.store.swap(STATE, content, before.tag)
        place.store.sync(STATE)
    except StorageError as error:
        written = _written_after_all(place, content)
        if written is not None:
            return Read(state, written, state_cas(content))
        if error.kind == "precondition":
            findings.error(
                "state_cas_mismatch", STATE, "the state was changed by somebody else meanwhile; run it again"
            )
        else:
            findings.error("state_write_error", STATE, error.message)
        raise Stop from None
    return Read(state, tag, state_cas(content))


def _written_after_all(place: Place, content: bytes) -> str | None:
    """The tag of the state when it is the one that was to be written: only the answer to the write was lost."""
    try:
        found = place.store.get_tagged_or_none(STATE)
    except StorageError:
        return None
    return found[1] if found is not None and found[0] == content else None


# --- decoding ---------------------------------------------------------------------------------------------------------


def _decoded(content: bytes, findings: Findings) -> State:
    try:
        told = orjson.loads(content)
        if not isinstance(told, dict):
            raise ValueError("it is no object")
        if told.get("version") != 1:
            version = told.get("version")
            findings.error("unsupported_state_version", STATE, f"version {version!r} of the state is not supported")
            raise Stop
        return _state(told)
    except (ValueError, TypeError, KeyError) as error:
        findings.error(
            "invalid_state_json",
            STATE,
            f"the state can not be read: {str(error).splitlines()[0]}; restore it from a backup",
        )
        raise Stop from None


def _state(told: dict[str, Any]) -> State:
    _only(told, _FIELDS, "the state")
    applied = _object(told["applied_revision"], "applied_revision")
    _only(applied, frozenset({"config_digest", "resources"}), "applied_revision")
    revision = told["state_revision"]
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 0:
        raise ValueError("state_revision is no revision")
    statuses = _object(told.get("resource_statuses", {}), "resource_statuses")
    for address, status in statuses.items():
        about = _object(status, f"the status of {address}")
        _only(about, frozenset({"status", "conditions", "message"}), f"the status of {address}")
        if about.get("status") not in _STATUSES:
            raise ValueError(f"the status of {address} is unknown")
    return State(
        revision,
        applied.get("config_digest"),
        {address: _entry(address, entry) for address, entry in _object(applied["resources"], "resources").items()},
        statuses,
        _object(told.get("approval_records", {}), "approval_records"),
        _object(told.get("recovery_records", {}), "recovery_records"),
        _object(told.get("observations", {}), "observations"),
    )


def _entry(address: str, told: object) -> Entry:
    about = _object(told, address)
    _only(about, _ENTRY, address)
    if not isinstance(about.get("digest"), str):
        raise ValueError(f"{address} has no digest")
    applies_to = about.get("applies_to", [])
    if not isinstance(applies_to, list) or not all(isinstance(item, str) for item in applies_to):
        raise ValueError(f"applies_to of {address} is no list")
    return Entry(**{**about, "applies_to": tuple(applies_to)})


def _object(told: object, what: str) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise ValueError(f"{what} is no object")
    return told


def _only(told: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    if unknown := sorted(told.keys() - known):
        raise ValueError(f"{what} has an unknown field '{unknown[0]}'")
