"""The ledger (state) of a cluster: applied resources, their statuses, and observations. One file, replaced as a whole."""

from __future__ import annotations

import re
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
_MOST_REVISIONS = 2**62
_ID = r"[A-Za-z_][A-Za-z0-9_-]*"
#: The kinds that this version knows, and the form of their addresses, parts of which become paths. Other kinds are only kept.
_KINDS = frozenset({"graph", "schema", "query", "policy", "provider"})
_ADDRESS = re.compile(rf"(graph|schema|policy|provider\.embedding)\.{_ID}|query\.{_ID}\.[^./\\\s]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


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
    """The content of the ledger. `revision` 0: nothing was written yet."""

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
        """The bytes of the state's file."""
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
        """The state with a new entry of a resource; None removes the resource and its status."""
        resources, statuses = dict(self.resources), dict(self.statuses)
        if entry is None:
            resources.pop(address, None)
            statuses.pop(address, None)
        else:
            resources[address] = entry
        return replace(self, resources=resources, statuses=statuses)

    def with_status(self, address: str, status: StatusWord, message: str | None = None, *conditions: str) -> State:
        """The state with a new status of a resource."""
        told: dict[str, Any] = {"status": status}
        if conditions:
            told["conditions"] = list(conditions)
        if message is not None:
            told["message"] = message
        return replace(self, statuses={**self.statuses, address: told})

    def with_observation(self, address: str, told: Mapping[str, Any]) -> State:
        """The state with a new observation of a resource."""
        return replace(self, observations={**self.observations, address: dict(told)})


@dataclass(frozen=True)
class Read:
    """The ledger as it was read. `tag`: the version of its file for compare-and-swap, None when there is no file."""

    state: State
    tag: str | None = None
    cas: str | None = None

    @property
    def found(self) -> bool:
        return self.tag is not None


def read_state(place: Place, findings: Findings) -> Read:
    """Read the ledger; an empty state when there is no file. Raises Stop when it can not be read or understood."""
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
    """Replace the ledger that was read; raises Stop when it changed meanwhile or can not be written."""
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
    """The tag of the stored state if it equals `content`, so that only the answer to the write was lost; else None."""
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
        version = told.get("version")
        if version != 1 or not isinstance(version, int) or isinstance(version, bool):
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
    if not isinstance(revision, int) or isinstance(revision, bool) or not 0 <= revision <= _MOST_REVISIONS:
        raise ValueError("state_revision is no revision")
    observations = _object(told.get("observations", {}), "observations")
    for address, seen in observations.items():
        _object(seen, f"the observation of {address}")
    return State(
        revision,
        _text_or_none(applied.get("config_digest"), "config_digest"),
        {address: _entry(address, entry) for address, entry in _object(applied["resources"], "resources").items()},
        _statuses(told.get("resource_statuses", {})),
        _object(told.get("approval_records", {}), "approval_records"),
        _object(told.get("recovery_records", {}), "recovery_records"),
        observations,
    )


def _statuses(told: object) -> dict[str, Any]:
    statuses = _object(told, "resource_statuses")
    for address, status in statuses.items():
        about = _object(status, f"the status of {address}")
        _only(about, frozenset({"status", "conditions", "message"}), f"the status of {address}")
        if about.get("status") not in _STATUSES:
            raise ValueError(f"the status of {address} is unknown")
        _text_or_none(about.get("message"), f"the message of {address}")
        _texts(about.get("conditions", []), f"conditions of {address}")
    return statuses


def _entry(address: str, told: object) -> Entry:
    about = _object(told, address)
    _only(about, _ENTRY, address)
    digest = about.get("digest")
    if not isinstance(digest, str):
        raise ValueError(f"{address} has no digest")
    if address.partition(".")[0] in _KINDS:
        if not _ADDRESS.fullmatch(address):
            raise ValueError(f"'{address}' is no address")
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"the digest of {address} is none")
    profile = about.get("embedding_profile")
    if profile is not None:
        _texts(list(_object(profile, f"embedding_profile of {address}").values()), f"embedding_profile of {address}")
    return Entry(
        digest,
        _texts(about.get("applies_to", []), f"applies_to of {address}"),
        _text_or_none(about.get("embedding_provider"), f"embedding_provider of {address}"),
        profile,
        _blob_policy(about.get("external_blob_policy"), f"external_blob_policy of {address}"),
    )


def _blob_policy(told: object, what: str) -> Mapping[str, Any] | None:
    if told is None:
        return None
    allow = _object(told, what).get("allow")
    if not isinstance(allow, list):
        raise ValueError(f"{what} has no list `allow`")
    for item in allow:
        about = _object(item, what)
        _texts([about.get("base"), about.get("scope")], what)
    return _object(told, what)


def _texts(told: object, what: str) -> tuple[str, ...]:
    if not isinstance(told, list) or not all(isinstance(item, str) for item in told):
        raise ValueError(f"{what} is no list of texts")
    return tuple(told)


def _text_or_none(told: object, what: str) -> str | None:
    if told is not None and not isinstance(told, str):
        raise ValueError(f"{what} is no text")
    return told


def _object(told: object, what: str) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise ValueError(f"{what} is no object")
    return told


def _only(told: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    if unknown := sorted(told.keys() - known):
        raise ValueError(f"{what} has an unknown field '{unknown[0]}'")
