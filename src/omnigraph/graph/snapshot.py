"""A snapshot: one manifest version, a fixed set of table versions. Every read uses one from start to end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import dropwhile, islice
from typing import Any

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.history import first_parents, state_of
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, Identity, ManifestState, TableEntry, sorted_entries
from omnigraph.errors import BadRequest, BranchNotFound, CommitNotFound, HistoricalVersionReclaimed, NotFound
from omnigraph.ids import is_ulid, now_micros
from omnigraph.shown import Shown
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import Missing
from omnigraph.storage.tables.table import Table

_PARTS = re.compile(r"(?P<name>[^~@{}]*)(?:@\{(?P<when>[^{}]*)\})?(?P<steps>~(?P<back>[0-9]{0,9}))?")
_AGO = re.compile(r"(?P<count>[0-9]{1,9})\s*(?P<unit>second|minute|hour|day|week)s?\s+ago")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.,]+\s*([Zz]|[+-][0-9:]+)?)?")
_BEFORE_ZONE = re.compile(r"\s+(?=[Z+-])")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WAYS = "write 2026-11-16T13:10:00Z, or `2 days ago` with seconds, minutes, hours, days or weeks"


@dataclass(frozen=True, slots=True)
class Past:
    """A reference by time or ancestor: a start, a moment (microseconds since 1970), and the number of first parents back.
    `name`: a branch, a tag or a commit; empty for the branch that is being read.
    """

    name: str
    moment: int | None
    back: int


def read_past(text: str, now: datetime | None = None) -> Past | None:
    """The time or ancestor that a text names; None when it names neither. A time without a zone is in UTC."""
    if _TIME.fullmatch(text) is not None:
        return Past("", _moment(text, text), 0)
    parts = _PARTS.fullmatch(text)
    if parts is None or (parts["when"] is None and parts["steps"] is None):
        return None
    moment = None if parts["when"] is None else _when(parts["when"].strip(), text, now)
    back = 0 if parts["steps"] is None else int(parts["back"] or 1)
    return Past(parts["name"], moment, back)


def micros_of_datetime(moment: datetime) -> int:
    """A point in time in microseconds since 1970; a datetime without a zone is in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _when(when: str, text: str, now: datetime | None) -> int:
    here = now or datetime.now(UTC)
    if when == "now":
        return micros_of_datetime(here)
    ago = _AGO.fullmatch(when)
    if ago is None:
        return _moment(when, text)
    try:
        return micros_of_datetime(here - timedelta(**{f"{ago['unit']}s": int(ago["count"])}))
    except OverflowError:
        raise BadRequest(f"'{text}' lies before the calendar begins") from None


def _moment(when: str, text: str) -> int:
    try:
        # Python reads neither small letters nor blanks before the zone.
        return micros_of_datetime(datetime.fromisoformat(_BEFORE_ZONE.sub("", when.upper())))
    except (ValueError, OverflowError):
        raise BadRequest(f"'{text}' names no snapshot: '{when}' is not a time; {_WAYS}") from None


# Bounded digits: no version has more, and Python refuses to convert very many.
_VERSION = re.compile(r"(?P<version>-?[0-9]{1,20})")
_SNAPSHOT_ID = re.compile(r"manifest:(?P<branch>.+):v(?P<version>[0-9]{1,20})")


@dataclass(frozen=True)
class Snapshot(Shown):
    """The graph as of one commit. Later writes do not change what it shows."""

    state: ManifestState
    tables: Tables
    #: The tables by what their types are called now: a rename does not hide what an old snapshot holds.
    names: Mapping[str, Identity]
    #: Whether it is read with the schema of its own time.
    then: bool = False

    @property
    def id(self) -> str:
        """The id of the snapshot, which `snapshot=` of the reading verbs takes."""
        return self.state.snapshot_id

    @property
    def branch(self) -> str:
        """The branch that the commit was read on."""
        return self.state.branch

    @property
    def version(self) -> int:
        """The manifest version of its newest commit."""
        return self.state.commit_version

    @property
    def commit(self) -> str:
        """The id of the newest commit it shows."""
        return self.state.head

    @property
    def stamp(self) -> int:
        """The version of the on-disk format."""
        return self.state.stamp

    def entries(self) -> list[TableEntry]:
        """Its tables under the names they had then: nodes before edges, then by name."""
        return sorted_entries(self.state.tables.values())

    def entry(self, type_key: str) -> TableEntry:
        """The table of a type, as `node:Type` or `edge:Type`."""
        identity = self.names.get(type_key)
        entry = None if identity is None else self.state.tables.get(identity)
        if entry is None:
            raise NotFound(f"{type_key} does not exist at this snapshot ({self.id})")
        return entry

    def open(self, type_key: str) -> Table:
        """The table of a type at its published version."""
        entry = self.entry(type_key)
        try:
            return self.tables.open(entry.location, entry.version)
        except Missing as error:
            raise HistoricalVersionReclaimed(
                f"the {type_key} of {self.id} ({entry.location}) is gone: its branch was deleted, the version was "
                "cleaned up, or a schema change dropped it for good; take a newer snapshot, or restore it from a backup",
                version=self.id,
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {
            "id": self.id,
            "branch": self.branch,
            "version": self.version,
            "commit": self.commit,
            "tables": [
                {"key": entry.key, "version": entry.version, "branch": entry.branch, "rows": entry.row_count}
                for entry in self.entries()
            ],
        }


Reference = Snapshot | str | int | datetime | None


def resolve(manifest: Manifest, branch: str, reference: str | int | datetime | None) -> ManifestState:
    """The state of a reference: None (the branch now), a commit id, a tag, a branch, a manifest version, a snapshot id, a
    time, or an ancestor of one of them.
    """
    found = named_state(manifest, branch, reference)
    if found is None:
        raise BadRequest(
            f"'{reference}' names no snapshot: give a commit id, a tag, a manifest version, a snapshot id such as "
            "manifest:main:v7, a time such as 2026-11-16T13:10:00Z, main@{2 days ago} or main~3"
        )
    return found


def named_state(manifest: Manifest, branch: str, reference: str | int | datetime | None) -> ManifestState | None:
    """The state of a reference; None for a text that names no state.
    Tried in this order: a manifest version, a snapshot id, a commit id, a tag or branch, a time or ancestor. A name that is
    both a
    tag and a branch is refused.
    """
    if reference is None:
        return manifest.load(branch)
    if isinstance(reference, datetime):
        return _state_in(manifest, branch, Past("", micros_of_datetime(reference), 0), reference.isoformat())
    text = str(reference)
    named = _VERSION.fullmatch(text) or _SNAPSHOT_ID.fullmatch(text)
    if named is not None:
        return manifest.load_at(named.groupdict().get("branch", branch), int(named["version"]))
    if is_ulid(text):
        return state_of(manifest, manifest.commit_near(text, branch))
    start = _named(manifest, text)
    if start is not None:
        return manifest.load(text) if start.branch is not None else state_of(manifest, _commit(manifest, start, branch))
    past = read_past(text)
    return None if past is None else _state_in(manifest, branch, past, text)


@dataclass(frozen=True, slots=True)
class _Start:
    """The meaning of a name: a branch or a commit."""

    branch: str | None = None
    commit: str | None = None


def _named(manifest: Manifest, name: str) -> _Start | None:
    """The branch of this name, or the commit of the tag of this name; None when there is neither."""
    tagged = manifest.load(MAIN).tags.get(name)
    is_branch = name == MAIN or read_ref(manifest.store, name) is not None
    if tagged is not None and is_branch:
        raise BadRequest(
            f"'{name}' is a tag and a branch; give the commit id {tagged} for the tag, or branch= for the branch"
        )
    return _Start(commit=tagged) if tagged is not None else _Start(branch=name) if is_branch else None


def _commit(manifest: Manifest, start: _Start, branch: str) -> Commit:
    assert start.commit is not None, "a start is a branch or a commit"
    return manifest.commit_near(start.commit, branch)


def _state_in(manifest: Manifest, branch: str, past: Past, text: str) -> ManifestState:
    """The state of a time, an ancestor or both. First parents are followed, so commits merged into a branch are skipped."""
    start = _Start(branch=branch) if not past.name else _named(manifest, past.name)
    if start is None and is_ulid(past.name):
        start = _Start(commit=past.name)
    if start is None:
        raise BranchNotFound(f"'{past.name}' in '{text}' is neither a branch nor a tag nor a commit", branch=past.name)
    if past.moment is not None and start.branch is None:
        raise BadRequest(
            f"'{text}' names no snapshot: only a branch has been something at a time, '{past.name}' is a commit"
        )
    if past.moment is not None and past.moment > now_micros():
        raise BadRequest(f"'{text}' lies in the future; a snapshot is of the past")
    if start.branch is not None:
        head = manifest.load(start.branch).head
        known: Mapping[str, Commit] = manifest.commits(start.branch)
    else:
        commit = _commit(manifest, start, branch)
        head, known = commit.id, _known_with(manifest, commit, branch)
    chain = first_parents(known, head)
    if past.moment is not None:
        chain = dropwhile(lambda commit: commit.created_at > (past.moment or 0), chain)
    found = next(islice(chain, past.back, None), None)
    if found is None:
        raise CommitNotFound(f"'{text}' lies before the first commit that '{past.name or branch}' has", commit=text)
    return state_of(manifest, found)


def _known_with(manifest: Manifest, commit: Commit, branch: str) -> Mapping[str, Commit]:
    """The commits of the first manifest that contains this commit."""
    for name in (branch, MAIN, commit.branch):
        with suppress(BranchNotFound):
            known = manifest.commits(name)
            if commit.id in known:
                return known
    return {commit.id: commit}
