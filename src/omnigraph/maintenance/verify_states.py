"""Which versions of which tables the branches, tags and retained commits of a graph need, and which files they name.

Any read may fail: an unreadable manifest is reported as a damage, and what it would have named is unknown. Versions are
walked one at a time; of each file only its path and its expected size are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import unquote

from lance import LanceDataset

from omnigraph.commit.audit import AUDIT_PATH
from omnigraph.commit.branch_refs import MANIFEST_PATH, SCHEMA_APPLY_LOCK, BranchRef, read_ref
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import made_on, published_state
from omnigraph.commit.manifest import manifest_location
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.retired import RETIRED, read_line
from omnigraph.maintenance.verify_report import LISTED, Damage, DamageKind, attempted
from omnigraph.storage.digests import Recorded
from omnigraph.storage.objects import ObjectInfo
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.recording import ref_file
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.version_files import reclaimed_up_to, version_file, version_of, versions_path

RESTORE = "restore the file from a backup"
REFS = f"{MANIFEST_PATH}/_refs/branches/"

Version = tuple[Location, int]


@dataclass
class Users:
    """The branches, tags and commits whose state needs a version."""

    branches: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    commits: set[str] = field(default_factory=set)

    def add(self, other: Users) -> None:
        self.branches |= other.branches
        self.tags |= other.tags
        self.commits |= other.commits

    def on(self, damage: Damage) -> Damage:
        """The damage, with the branches, tags and commits it affects."""
        return replace(
            damage,
            branches=tuple(sorted(self.branches)),
            tags=tuple(sorted(self.tags)),
            commits=tuple(sorted(self.commits, reverse=True)[:LISTED]),
            commit_count=len(self.commits),
        )


@dataclass(frozen=True, slots=True)
class NeededFile:
    """A file that a version names, with its size in bytes if the version gives it, and the number of rows it holds."""

    path: str
    size: int | None
    rows: int | None = None
    #: Whether it is a folder of an index; then `size` is the total of its files.
    is_folder: bool = False


@dataclass(frozen=True)
class Inventory:
    """What exists: the digest log, which is read first, and the listing of all files."""

    recorded: Recorded
    files: dict[str, ObjectInfo]


@dataclass
class Needed:
    """What must exist. `states`: the current state of each branch and tag, under `branch x` or `tag y`."""

    versions: dict[Version, Users] = field(default_factory=dict)
    states: dict[str, ManifestState] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    commits: set[str] = field(default_factory=set)
    branches: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)

    def states_of_branches(self) -> list[ManifestState]:
        return [state for label, state in self.states.items() if label.startswith("branch ")]

    def need(self, state: ManifestState, users: Users) -> None:
        """Need a state's manifest version and its tables."""
        self.versions.setdefault((manifest_location(state.branch), state.version), Users()).add(users)
        self.need_tables(state, users)

    def need_tables(self, state: ManifestState, users: Users) -> None:
        """Need the tables of a state; a deleted branch has no manifest version any more."""
        for entry in state.tables.values():
            self.versions.setdefault((entry.location, entry.version), Users()).add(users)
            self.keys[entry.path] = entry.key


def find_needed(context: CommitContext, there: Inventory) -> Needed:
    """Collect the states of all branches, tags and retained commits."""
    needed = Needed()
    refs: dict[str, BranchRef | None] = {MAIN: None}
    for path in there.files:
        if path.startswith(REFS):
            name = unquote(path.removeprefix(REFS).removesuffix(".json"))
            if name != SCHEMA_APPLY_LOCK:
                _read_ref(context, needed, refs, name, path)
    commits: dict[str, Commit] = {}
    for name, ref in refs.items():
        needed.branches.append(name)
        commits |= _branch(context, there, needed, name, ref)
    for path in there.files:
        if path.startswith(f"{RETIRED}/"):
            _retired(context, needed, path)
    _tags(context, needed, commits)
    head = attempted(lambda: context.tables.head_version(Location(AUDIT_PATH)))
    if isinstance(head, int):
        needed.versions.setdefault((Location(AUDIT_PATH), head), Users())
    elif isinstance(head, str):
        needed.damages.append(
            Damage(AUDIT_PATH, DamageKind.UNREADABLE, f"the log of recoveries can not be read: {head}", RESTORE)
        )
    return needed


def _read_ref(context: CommitContext, needed: Needed, refs: dict[str, BranchRef | None], name: str, path: str) -> None:
    ref = attempted(lambda: read_ref(context.store, name))
    if isinstance(ref, BranchRef):
        refs[name] = ref
    elif isinstance(ref, str):
        damage = Damage(path, DamageKind.UNREADABLE, f"branch '{name}' can not be opened: {ref}", RESTORE)
        needed.damages.append(replace(damage, branches=(name,)))


def _branch(
    context: CommitContext, there: Inventory, needed: Needed, name: str, ref: BranchRef | None
) -> dict[str, Commit]:
    """Collect the head and the retained commits of a branch; returns all commits that its manifest knows."""
    location, users = manifest_location(name), Users(branches={name})
    state = attempted(lambda: context.manifest.load(name))
    if isinstance(state, str):
        path = _newest_file(there, location) or f"{location.dataset_path}/_versions"
        damage = Damage(path, DamageKind.UNREADABLE, f"the state of branch '{name}' can not be read: {state}", RESTORE)
        needed.damages.append(users.on(damage))
        return {}
    needed.need(state, users)
    needed.states[f"branch {name}"] = state
    if ref is not None:
        needed.versions.setdefault((location, ref.parent_version), Users()).add(users)
    commits = attempted(lambda: context.manifest.commits(name))
    if isinstance(commits, str):
        message = f"the history of branch '{name}' can not be read: {commits}"
        needed.damages.append(users.on(Damage(location.dataset_path, DamageKind.UNREADABLE, message, RESTORE)))
        return {}
    _check_history(needed, name, state, commits)
    for commit in made_on(commits, state, ref):
        _commit(context, there, needed, commit)
    return commits


def _check_history(needed: Needed, name: str, state: ManifestState, commits: dict[str, Commit]) -> None:
    """Check that the head and all parents of commits are known commits."""
    parents = {parent for commit in commits.values() for parent in (commit.parent, commit.merged_parent) if parent}
    lost = sorted(({state.head} | parents) - set(commits))
    if lost:
        message = f"the history of branch '{name}' lacks {len(lost)} commits that it refers to ({', '.join(lost[:3])})"
        damage = Damage(manifest_location(name).dataset_path, DamageKind.DISAGREES, message, RESTORE)
        needed.damages.append(replace(damage, branches=(name,)))


def _commit(context: CommitContext, there: Inventory, needed: Needed, commit: Commit) -> None:
    """Collect the state of a retained commit; a commit whose state cleanup removed is not retained."""
    location, version = manifest_location(commit.branch), commit.manifest_version
    path = version_file(location, version)
    if path not in there.files:
        reclaimed = reclaimed_up_to(context.root, location) if context.root.is_local else version
        if version > reclaimed and path not in there.recorded.digests:
            message = f"the state of commit {commit.id} is missing"
            needed.damages.append(Users(commits={commit.id}).on(Damage(path, DamageKind.MISSING, message, RESTORE)))
        return
    state = attempted(lambda: context.manifest.load_at(commit.branch, version))
    if isinstance(state, str):
        message = f"the state of commit {commit.id} can not be read: {state}"
        needed.damages.append(Users(commits={commit.id}).on(Damage(path, DamageKind.UNREADABLE, message, RESTORE)))
    elif state.head == commit.id:
        needed.commits.add(commit.id)
        needed.need(state, Users(commits={commit.id}))


def _retired(context: CommitContext, needed: Needed, path: str) -> None:
    """Collect the states that are kept of a deleted branch."""
    line = attempted(lambda: read_line(context.store, path))
    if isinstance(line, str):
        needed.damages.append(Damage(path, DamageKind.UNREADABLE, line, RESTORE))
    elif line is not None:
        for publish in line.publishes:
            needed.commits.update(publish.commits)
            needed.need_tables(publish.state, Users(commits=set(publish.commits)))


def _tags(context: CommitContext, needed: Needed, commits: dict[str, Commit]) -> None:
    """Collect the state of every tag, which cleanup always keeps."""
    main = needed.states.get(f"branch {MAIN}")
    for tag, commit_id in sorted((main.tags if main is not None else {}).items()):
        needed.tags[tag] = commit_id
        users, commit = Users(tags={tag}), commits.get(commit_id)
        state: ManifestState | str = "no branch knows it"
        if commit is not None:
            state = attempted(partial(_tagged_state, context, commit))
        if isinstance(state, ManifestState) and state.head in {commit_id, _last_of_group(commit, commits)}:
            (needed.need_tables if state.retired else needed.need)(state, users)
            needed.states[f"tag {tag}"] = state
        else:
            why = state if isinstance(state, str) else "its version is that of another commit"
            message = f"commit {commit_id}, which tag '{tag}' names, can not be read: {why}"
            needed.damages.append(users.on(Damage(MANIFEST_PATH, DamageKind.DISAGREES, message, RESTORE)))


def _tagged_state(context: CommitContext, commit: Commit) -> ManifestState:
    """The state that a tag needs: the state after the publish of its commit, alone or in a group."""
    state = published_state(context.manifest, commit)
    return context.manifest.load_at(commit.branch, commit.manifest_version) if state is None else state


def _last_of_group(commit: Commit | None, commits: dict[str, Commit]) -> str | None:
    """The id of the last commit in the group of a commit; None for a commit that was published alone."""
    if commit is None or commit.group is None:
        return None
    mates = (other for other in commits.values() if other.group is not None and other.group.id == commit.group.id)
    return max(mates, key=lambda other: other.group.place if other.group is not None else 0).id


def without_purged(there: Inventory, needed: Needed) -> list[Version]:
    """The needed versions, except those of old commits that a hard drop of a property or a type has removed.

    Such a version does not exist, its digest is cancelled, and all existing versions of its line are newer.
    """
    oldest: dict[str, int] = {}
    for path in there.files:
        version = version_of(path)
        if version is not None:
            folder = path.rpartition("/")[0]
            oldest[folder] = min(version, oldest.get(folder, version))
    kept = []
    for (location, version), users in needed.versions.items():
        path = version_file(location, version)
        purged = path not in there.files and path not in there.recorded.digests
        purged = purged and version < oldest.get(versions_path(location), version + 1)
        if not (purged and not users.branches and not users.tags):
            kept.append((location, version))
    return kept


def _newest_file(there: Inventory, location: Location) -> str | None:
    folder = f"{location.dataset_path}/_versions/"
    listed = [path for path in there.files if path.startswith(folder) and version_of(path) is not None]
    return min(listed, default=None)


# --- what versions name -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Walked:
    """One version with the files it names, or the reason why it can not be read."""

    location: Location
    version: int
    files: tuple[NeededFile, ...]
    dead_indexes: tuple[str, ...] = ()
    problem: str | None = None


def walk(context: CommitContext, version: Version) -> Walked:
    """Open a version and list the files it names; the files themselves are not read."""
    location, number = version
    own = [NeededFile(version_file(location, number), None)]
    if location.branch is not None:
        own.append(NeededFile(ref_file(location), None))

    def look() -> Walked:
        dataset = context.tables.open_dataset(location, number)
        named = tuple(_files_of(context, location, dataset))
        return Walked(location, number, (*own, *named), tuple(Table(location, dataset).dead_indexes()))

    found = attempted(look)
    return found if isinstance(found, Walked) else Walked(location, number, tuple(own), problem=found)


def _files_of(context: CommitContext, location: Location, dataset: LanceDataset) -> Iterator[NeededFile]:
    bases = {id_: base.path for id_, base in dataset.base_paths().items()}
    root = f"{context.root.uri.rstrip('/')}/"

    def folder(base_id: int | None) -> str:
        base = None if base_id is None else bases[base_id]
        return location.dataset_path if base is None else base.removeprefix(root).rstrip("/")

    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        marks = metadata.deletion_file
        rows = metadata.physical_rows - (marks.num_deleted_rows or 0 if marks is not None else 0)
        for file in metadata.files:
            yield NeededFile(f"{folder(file.base_id)}/data/{file.path}", file.file_size_bytes, rows)
        if marks is not None:
            yield NeededFile(f"{folder(marks.base_id)}/{marks.path(metadata.id)}", None, marks.num_deleted_rows)
    for index in dataset.describe_indices():
        for segment in index.segments:
            path = f"{folder(segment.base_id)}/_indices/{segment.uuid}"
            yield NeededFile(path, segment.size_bytes, is_folder=True)
