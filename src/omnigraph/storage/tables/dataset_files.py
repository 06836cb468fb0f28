"""The files of a dataset with all its lines: the role of each file by its path, and the names that a version refers to.

A line is the main line or a branch below `tree/`. File names are never reused, and a branch refers to files of the line
it was made from; so files are identified by name, on whatever line they lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.storage.objects import ObjectInfo, ObjectStore
from omnigraph.storage.tables.handles import Tables, transaction_of
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import version_of

_PARTS = re.compile(
    r"(?:tree/(?P<branch>.+?)/)?(?P<folder>_versions|data|_deletions|_indices|_transactions)/(?P<rest>[^#]+)"
)
_REFS = "_refs/branches/"
_TRANSACTION = re.compile(r"(?P<read_version>[0-9]+)-[0-9a-f-]+\.txn")


@dataclass
class LineFiles:
    """The files of one line: its versions, its transactions by the version they led to, and all others by name."""

    versions: dict[int, ObjectInfo] = field(default_factory=dict)
    transactions: dict[int, list[ObjectInfo]] = field(default_factory=dict)
    named: dict[str, list[ObjectInfo]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(info.size for info in self.all())

    def all(self) -> Iterable[ObjectInfo]:
        yield from self.versions.values()
        for group in (*self.transactions.values(), *self.named.values()):
            yield from group


@dataclass
class DatasetFiles:
    """All files below the path of a dataset. `refs`: its branches; a line without a ref is left over from a crash."""

    path: str
    lines: dict[str | None, LineFiles] = field(default_factory=dict)
    refs: set[str] = field(default_factory=set)

    @property
    def size(self) -> int:
        return sum(line.size for line in self.lines.values())

    def locations(self) -> list[Location]:
        return [Location(self.path, branch) for branch in self.lines]


def list_dataset(store: ObjectStore, path: str) -> DatasetFiles:
    """List the files of a dataset once. Unknown files are left out, so that nothing touches them."""
    found = DatasetFiles(path)
    for info in store.list(path):
        inside = info.path.removeprefix(f"{path}/")
        if inside.startswith(_REFS):
            found.refs.add(unquote(inside.removeprefix(_REFS).removesuffix(".json")))
            continue
        parts = _PARTS.fullmatch(inside)
        if parts is not None:
            _place(found.lines.setdefault(parts["branch"], LineFiles()), parts["folder"], parts["rest"], info)
    return found


def _place(line: LineFiles, folder: str, rest: str, info: ObjectInfo) -> None:
    first = rest.partition("/")[0]
    if folder == "_versions":
        version = version_of(info.path)
        if version is not None:
            line.versions[version] = info
    elif folder == "_transactions":
        parts = _TRANSACTION.fullmatch(rest)
        if parts is not None:
            line.transactions.setdefault(int(parts["read_version"]) + 1, []).append(info)
    else:
        # Large blob values lie in a folder named like their data file; an index is a folder.
        name = f"{first}.lance" if folder == "data" and "/" in rest else first
        if folder != "data" or name.endswith(".lance"):
            line.named.setdefault(name, []).append(info)


def names_of(tables: Tables, location: Location, version: int) -> set[str]:
    """The names of all files that a version refers to, on any line."""
    dataset = tables.open_dataset(location, version)
    names: set[str] = set()
    with translated(str(location), f"read version {version} of"):
        for fragment in dataset.get_fragments():
            names |= _names_in(fragment.metadata)
        names |= {segment.uuid for index in dataset.describe_indices() for segment in index.segments}
    return names


def names_added_by(tables: Tables, location: Location, version: int) -> set[str] | None:
    """The names of files that a version refers to and its predecessor does not; None when that is not known."""
    dataset = tables.open_dataset(location, version)
    with translated(str(location), f"read the transaction of version {version} of"):
        try:
            transaction = transaction_of(dataset, version)
        except TypeError:
            # Lance can not rebuild the transaction of a compaction that remapped an index.
            return None
    match transaction and transaction.operation:
        case LanceOperation.Append(fragments):
            added = list(fragments)
        case LanceOperation.Update() as update:
            added = [*update.new_fragments, *update.updated_fragments]
        case LanceOperation.Delete() as delete:
            added = list(delete.updated_fragments)
        case LanceOperation.CreateIndex() as create:
            return {index.uuid for index in create.new_indices}
        case _:
            return None
    return {name for fragment in added for name in _names_in(fragment)}


def _names_in(fragment: FragmentMetadata) -> set[str]:
    names = {_base_name(data_file_name(file)) for file in fragment.files}
    marks = fragment.deletion_file
    if marks is not None:
        stem = f"{fragment.id}-{marks.read_version}-{marks.id}"
        names |= {f"{stem}.arrow", f"{stem}.bin"}
    return names


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]
