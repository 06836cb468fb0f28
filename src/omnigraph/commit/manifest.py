"""Reads `__manifest`: the state of a branch through one warm handle, older states, history, and receipts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import lance
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit import rows
from omnigraph.commit.branch_refs import MANIFEST_PATH, list_names, read_ref
from omnigraph.commit.format import HISTORY_IN_MANIFEST, refuse_if_unsupported
from omnigraph.commit.legacy import legacy_commits, legacy_head
from omnigraph.commit.model import MAIN, Commit, ManifestState, Touched
from omnigraph.errors import BranchNotFound, CommitNotFound, HistoricalVersionReclaimed, StorageError
from omnigraph.storage.objects import ObjectStore, at_once
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import Missing, translated
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Filter
from omnigraph.storage.tables.version_files import is_newest_on_disk

#: Up to this many rows, reading all their columns costs less than finding the rows of the state first.
_FEW_ROWS = 256
_PUBLISHED_COLUMNS = [field.name for field in rows.COLUMNS if field.name != "base_objects"]
_STATE_COLUMNS = [*(field.name for field in rows.COLUMNS if field.name != "base_objects"), "_row_created_at_version"]


@dataclass(frozen=True, slots=True)
class Warm:
    """A branch as it was last read: the Lance handle at that version, and the decoded state."""

    dataset: lance.LanceDataset
    state: ManifestState


class Manifest:
    """The manifest of one graph, usable by any number of threads. This class never writes."""

    def __init__(self, store: ObjectStore, tables: Tables) -> None:
        self.store = store
        self.tables = tables
        self._warm: dict[str, Warm] = {}
        self._lock = threading.Lock()
        #: How many full scans of the manifest were made; tests assert the number.
        self.scans = 0

    # --- the state of a branch --------------------------------------------------------------------------------------

    def load(self, branch: str = MAIN) -> ManifestState:
        """The current state of a branch: a cheap probe when nothing was published since, else one scan."""
        return self.warm(branch).state

    def warm(self, branch: str = MAIN) -> Warm:
        """The handle and state of a branch, brought up to date."""
        with self._lock:
            known = self._warm.get(branch)
        moved, incarnation = self._probe(known, branch)
        try:
            if known is not None and known.state.incarnation == incarnation and not moved():
                return known
            return self._remember(self._open(branch), branch, incarnation)
        except StorageError:
            # If the branch was deleted while it was read, say so; if it was created again, read the new branch.
            if self._incarnation(branch) == incarnation:
                raise
        return self.warm(branch)

    def inherit(self, base: Warm, branch: str) -> ManifestState:
        """The state of a branch that was just made from `base`: the same content, so it is not read again."""
        if base.state.stamp < HISTORY_IN_MANIFEST:
            return self.load(branch)
        state = replace(base.state, branch=branch, incarnation=self._incarnation(branch))
        self.adopt(Warm(self._open(branch), state))
        return state

    def last_seen(self, branch: str = MAIN) -> Warm:
        """A branch as this process last read or published it, possibly outdated; read now if it never was."""
        with self._lock:
            known = self._warm.get(branch)
        return known if known is not None else self.warm(branch)

    def forget(self, branch: str) -> None:
        """Drop the warm handle of a branch."""
        with self._lock:
            self._warm.pop(branch, None)

    def adopt(self, warm: Warm) -> None:
        """Keep the state that a publish of this process led to, so that it need not be read back."""
        with self._lock:
            self._warm[warm.state.branch] = warm

    def _probe(self, known: Warm | None, branch: str) -> tuple[Callable[[], bool], str]:
        """Whether a branch has moved, as a function to be called, and its current incarnation; two concurrent requests."""
        if branch == MAIN:  # main has only one incarnation
            return lambda: self._moved(known, branch), self._incarnation(branch)
        with at_once(self.tables.root) as requests:
            return requests.submit(self._moved, known, branch).result, self._incarnation(branch)

    def _moved(self, known: Warm | None, branch: str) -> bool:
        if known is None:
            return True
        if is_newest_on_disk(self.tables.root, manifest_location(branch), known.state.version):
            return False
        with translated(MANIFEST_PATH, "read"):
            return bool(known.dataset.latest_version != known.state.version)

    def _remember(self, dataset: lance.LanceDataset, branch: str, incarnation: str) -> Warm:
        warm = Warm(dataset, self._decode(dataset, branch, incarnation))
        self.adopt(warm)
        return warm

    def _incarnation(self, branch: str) -> str:
        """Lance's identity of a branch; empty for main. Raises for a name that has no ref."""
        if branch == MAIN:
            return ""
        ref = read_ref(self.store, branch)
        if ref is None:
            self.forget(branch)
            raise branch_not_found(branch)
        return ref.incarnation

    def _open(self, branch: str, version: int | None = None) -> lance.LanceDataset:
        """A fresh handle at a version, or at the newest version."""
        return self.tables.open_dataset(manifest_location(branch), version)

    def _decode(self, dataset: lance.LanceDataset, branch: str, incarnation: str) -> ManifestState:
        stamp = rows.stamp_of(dataset.schema)
        refuse_if_unsupported(stamp)
        self.scans += 1
        with translated(MANIFEST_PATH, "read"):
            fragments = dataset.get_fragments()
            table = scan_state(dataset, fragments, [*_STATE_COLUMNS])
        old_head = legacy_head(self._legacy(branch), dataset.version) if stamp < HISTORY_IN_MANIFEST else None
        return rows.decode_state(
            table,
            branch=branch,
            version=dataset.version,
            incarnation=incarnation,
            stamp=stamp,
            fragment_count=len(fragments),
            old_head=old_head,
        )

    def _legacy(self, branch: str) -> list[Commit]:
        return legacy_commits(self.store, self.tables, branch)

    # --- older states -----------------------------------------------------------------------------------------------

    def load_at(self, branch: str, version: int) -> ManifestState:
        """The state of a branch at one of its manifest versions."""
        incarnation = self._incarnation(branch)
        current = self.load(branch)
        if version == current.version:
            return current
        if version < 1 or version > current.version:
            raise no_such_version(branch, version)
        # Versions before the fork point are versions of the parent branch.
        ref = read_ref(self.store, branch) if branch != MAIN else None
        if ref is not None and version < ref.parent_version:
            return self.load_at(ref.parent, version)
        try:
            return self._decode(self._open(branch, version), branch, incarnation)
        except StorageError as error:
            if self._incarnation(branch) != incarnation:
                return self.load_at(branch, version)
            if not isinstance(error, Missing):
                raise
            raise HistoricalVersionReclaimed(
                f"version {version} of branch '{branch}' has been cleaned up; ask for a newer one",
                version=f"manifest:{branch}:v{version}",
            ) from None

    def load_run(self, before: ManifestState, commits: Sequence[Commit]) -> list[ManifestState]:
        """The states after consecutive publishes on top of the state `before`, in order; for reading only.

        `commits` follow each other and have consecutive versions, so no compaction lies between them: each publish added one
        fragment, and the last version still has all of them. One scan reads all rows they wrote, including rows that a later
        publish has replaced. The result ends before the first commit that is not exactly one publish on top of its predecessor.
        """
        branch = before.branch
        if before.stamp < HISTORY_IN_MANIFEST or before.incarnation != self._incarnation(branch):
            return []
        try:
            dataset = self._open(branch, commits[-1].manifest_version)
            with translated(MANIFEST_PATH, "read"):
                written = sorted(dataset.get_fragments(), key=lambda fragment: int(fragment.fragment_id))[
                    -len(commits) :
                ]
                table = dataset.scanner(
                    columns=_PUBLISHED_COLUMNS,
                    fragments=written,
                    with_row_id=True,
                    include_deleted_rows=True,
                ).to_table()
        except Missing:
            return []
        sizes = [fragment.physical_rows for fragment in written]
        states: list[ManifestState] = []
        if sum(sizes) != table.num_rows or len(sizes) != len(commits):
            return states
        # A scan returns the fragments in the order they were given. Replaced rows have no address that tells their fragment.
        left = iter(table.to_pylist())
        for size, commit in zip(sizes, commits, strict=True):
            state = rows.apply_publish(list(islice(left, size)), states[-1] if states else before, commit)
            if state is None:
                break
            states.append(state)
        return states

    def inherited(self, branch: str) -> frozenset[Location]:
        """The locations of the tables a branch was made with. It forks a table before writing it, so none is its own."""
        if branch == MAIN:
            return frozenset()
        ref = read_ref(self.store, branch)
        if ref is None:
            raise branch_not_found(branch)
        return frozenset(entry.location for entry in self.load_at(branch, ref.parent_version).tables.values())

    # --- history ----------------------------------------------------------------------------------------------------

    def commits(self, branch: str = MAIN, newer_than: int | None = None) -> dict[str, Commit]:
        """All commits that this branch's manifest knows, by id; `newer_than`: only commits added after this version."""
        return {commit.id: commit for commit in self._read_commits(branch, None, newer_than)}

    def commits_in(self, warm: Warm, newer_than: int | None = None) -> dict[str, Commit]:
        """The same as `commits`, for a branch as it was last read; an older format keeps its history elsewhere."""
        if warm.state.stamp < HISTORY_IN_MANIFEST:
            return self.commits(warm.state.branch, newer_than)
        return {commit.id: commit for commit in _scanned_commits(warm, None, newer_than)}

    def commit_near(self, commit_id: str, branch: str = MAIN) -> Commit:
        """A commit by id, looked up on one branch first and then on all others."""
        for name in self._all_names(branch):
            try:
                found = self.find_commit(name, commit_id)
            except BranchNotFound:
                if name == branch:
                    raise
                continue
            if found is not None:
                return found
        raise _no_such_commit(commit_id)

    def _all_names(self, first: str) -> Iterator[str]:
        """One branch, then main, then the others, which are listed only when the caller gets that far."""
        yield first
        if first != MAIN:
            yield MAIN
        yield from (name for name in list_names(self.store) if name != first)

    def parent_of(self, commit: Commit) -> Commit:
        """The first parent of a commit that has a parent; the branch it was made on may be gone."""
        assert commit.parent is not None, "only the first commit of a graph has no parent"
        known = commit.branch == MAIN or read_ref(self.store, commit.branch) is not None
        return self.commit_near(commit.parent, commit.branch if known else MAIN)

    def find_commit(self, branch: str, commit_id: str) -> Commit | None:
        """A commit by id in one branch's manifest; None when it is not there, as for any text that is no id."""
        if not isinstance(commit_id, str) or not commit_id.isprintable():
            return None
        found = self._read_commits(branch, commit_id)
        return found[0] if found else None

    def _read_commits(self, branch: str, only: str | None, newer_than: int | None = None) -> list[Commit]:
        warm = self.warm(branch)
        if warm.state.stamp < HISTORY_IN_MANIFEST:
            # The history of an old format is always read as a whole.
            return [commit for commit in self._legacy(branch) if only is None or commit.id == only]
        try:
            return _scanned_commits(warm, only, newer_than)
        except StorageError:
            if self._incarnation(branch) == warm.state.incarnation:
                raise
        return self._read_commits(branch, only, newer_than)

    def members_of(self, commit: Commit, group_id: str) -> list[dict[str, Touched]]:
        """What each commit of a group did to the tables, in order. `commit`: any member, read on the branch that made it."""
        warm = self.warm(commit.branch)
        wanted = f"object_type = '{rows.GRAPH_COMMIT}' and _row_created_at_version = {commit.manifest_version}"
        with translated(MANIFEST_PATH, "read"):
            return rows.decode_members(warm.dataset.to_table(columns=["metadata"], filter=wanted), group_id)

    # --- idempotency ------------------------------------------------------------------------------------------------

    def receipt(self, branch: str, key: str) -> rows.Receipt | None:
        """The receipt stored under an idempotency key on a branch, else None."""
        return receipt_in(self.warm(branch), key)


def _scanned_commits(warm: Warm, only: str | None, newer_than: int | None) -> list[Commit]:
    wanted: Filter = pc.field("object_type") == rows.GRAPH_COMMIT
    if only is not None:
        wanted &= pc.field("object_id") == only
    if newer_than is not None:
        # As SQL text: Arrow expressions in Lance do not support unsigned integers here.
        wanted = f"object_type = '{rows.GRAPH_COMMIT}' and _row_created_at_version > {newer_than}"
    with translated(MANIFEST_PATH, "read"):
        columns = ["object_id", "metadata", "_row_created_at_version"]
        return rows.decode_commits(warm.dataset.to_table(columns=columns, filter=wanted))


def receipt_in(warm: Warm, key: str) -> rows.Receipt | None:
    """The receipt stored under an idempotency key at one version of a branch, else None."""
    return receipts_in(warm, [key]).get(key)


def receipts_in(warm: Warm, keys: Collection[str]) -> dict[str, rows.Receipt]:
    """The receipts stored under some idempotency keys at one version of a branch, by key; needs one scan."""
    if not keys:
        return {}
    named = {rows.idempotency_object_id(key): key for key in keys}
    wanted = pc.field("object_id").isin(list(named)) if len(named) > 1 else pc.field("object_id") == next(iter(named))
    with translated(MANIFEST_PATH, "read"):
        table: pa.Table = warm.dataset.to_table(columns=["object_id", "metadata"], filter=wanted)
    found = zip(table["object_id"].to_pylist(), table["metadata"].to_pylist(), strict=True)
    return {named[object_id]: rows.decode_receipt(metadata) for object_id, metadata in found}


def scan_state(
    dataset: lance.LanceDataset, fragments: Sequence[lance.LanceFragment], columns: Sequence[str]
) -> pa.Table:
    """The rows of the state, with their addresses. Fragments that are listed as pure history are skipped."""
    history = rows.history_fragments(dataset.schema)
    looked_at = [fragment for fragment in fragments if fragment.fragment_id not in history]
    few = len(looked_at) <= _FEW_ROWS and sum(fragment.physical_rows for fragment in looked_at) <= _FEW_ROWS
    scanner = dataset.scanner(
        columns=list(columns),
        filter=pc.field("object_type").isin(list(rows.STATE_TYPES)),
        with_row_address=True,
        fragments=looked_at if history else None,
        late_materialization=False if few else None,
    )
    return scanner.to_table()


def manifest_location(branch: str) -> Location:
    """The location of a branch's manifest."""
    return Location(MANIFEST_PATH, None if branch == MAIN else branch)


def branch_not_found(branch: str) -> BranchNotFound:
    return BranchNotFound(f"branch '{branch}' not found", branch=branch)


def _no_such_commit(commit_id: str) -> CommitNotFound:
    return CommitNotFound(f"commit '{commit_id}' not found", commit=commit_id)


def no_such_version(branch: str, version: int) -> CommitNotFound:
    return CommitNotFound(
        f"branch '{branch}' has no manifest version {version}", commit=f"manifest:{branch}:v{version}"
    )
