"""What a Lance commit has added to a dataset, written into the digest log of the graph (`storage/digests.py`).

Called by `tables/commit.py` after every call that makes a version, so no commit is without it. Only local graphs: the files
are read back from the page cache, which takes about 0.1 ms for a commit of one row. Nothing here can fail a commit.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata

from omnigraph.storage.digests import Digest, digest_of, digest_written, forget, note
from omnigraph.storage.root import Root
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS
from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import version_file
from omnigraph.storage.tables.written import VersionBytes

#: A handle of Lance knows its URI alone: what lies below the root of a graph is told by the names that datasets have there.
_BELOW_ROOT = re.compile(
    r"(?P<root>/.*?)/(?P<path>__manifest|(?:nodes|edges)/[0-9a-f]{16}-[0-9a-f]{16}|_graph_commit\w+\.lance)"
    r"(?:/tree/(?P<branch>.+))?"
)

_log = logging.getLogger(__name__)


def record_commit(
    before: LanceDataset | None, committed: LanceDataset, transaction: Transaction, version: VersionBytes, *, undo: bool
) -> None:
    """Record the files of one transaction that made the version of `committed`, in one append to the log.

    `version`: what was read back of the version itself, which need not be read again. `undo`: the transaction brings back
    files that were there before; what they are now may not be what they were.
    """
    place = _place(committed.uri)
    if place is None:
        return
    root, location = place
    with _harmless(committed.uri):
        folder = location.dataset_path
        found: dict[str, Digest] = {}
        if not undo:
            found = _digests(root, [f"{folder}/{file}" for file in set(_added_by(before, committed, transaction))])
        if version.transaction is not None:
            found[f"{folder}/_transactions/{transaction_file(committed, transaction)}"] = digest_of(version.transaction)
        found[version_file(location, committed.version)] = digest_of(version.manifest)
        note(root, found)


def transaction_file(committed: LanceDataset, transaction: Transaction) -> str:
    """The name of the file of a transaction: by the version it was committed on, which is another one after a rebase."""
    return f"{committed.version - 1}-{transaction.uuid}.txn"


@contextmanager
def recording_versions(dataset: LanceDataset) -> Iterator[None]:
    """Record the versions that Lance makes by itself inside the block, moving this handle: a compaction, an index fold."""
    if _place(dataset.uri) is None:
        yield
        return
    before = dataset.checkout_version(dataset.version)
    try:
        yield
    finally:
        _record_versions(before, dataset)


def _record_versions(before: LanceDataset, after: LanceDataset) -> None:
    place = _place(after.uri)
    if place is None or after.version == before.version:
        return
    root, location = place
    with _harmless(after.uri):
        files = set(_difference(before, after))
        versions = range(before.version + 1, after.version + 1)
        made_on = {str(version - 1) for version in versions}
        for entry in os.scandir(root.local_path(f"{location.dataset_path}/_transactions")):
            if entry.name.partition("-")[0] in made_on:
                files.add(f"_transactions/{entry.name}")
        _note(root, location, files, versions)


def record_branch(dataset: LanceDataset, name: str, version: int) -> None:
    """Record the first version of a Lance branch and its ref. Earlier lines of that name are those of a branch that is gone."""
    place = _place(dataset.uri)
    if place is None:
        return
    root, location = place
    made = Location(location.path, name)
    with _harmless(dataset.uri):
        folder = root.local_path(f"{made.dataset_path}/_transactions")
        files = [f"{made.dataset_path}/_transactions/{entry.name}" for entry in os.scandir(folder)]
        files += [version_file(made, version), ref_file(made)]
        note(root, _digests(root, files), forgetting=_prefixes(made))


def forget_branch(dataset: LanceDataset, name: str) -> None:
    """Say that the files of a Lance branch go."""
    place = _place(dataset.uri)
    if place is not None:
        forget_line(place[0], Location(place[1].path, name))


def forget_line(root: Root, branch: Location) -> None:
    """Say that the files of a Lance branch go, and its ref."""
    forget(root, *_prefixes(branch))


def forget_versions(uri: str, versions: Iterable[int]) -> None:
    """Say that versions of a line are taken back at once: their files are not whole."""
    place = _place(uri)
    if place is not None:
        forget(place[0], *(version_file(place[1], version) for version in versions))


def ref_file(branch: Location) -> str:
    """The file in which Lance says that a branch of a dataset exists."""
    assert branch.branch is not None, "the main line has no ref"
    return f"{branch.path}/_refs/branches/{quote(branch.branch, safe='')}.json"


def _prefixes(branch: Location) -> list[str]:
    return [f"{branch.dataset_path}/", ref_file(branch)]


def _place(uri: str) -> tuple[Root, Location] | None:
    """The graph and the line of a dataset on local disk; None for any other."""
    found = _BELOW_ROOT.fullmatch(uri)
    return None if found is None else (Root(found["root"]), Location(found["path"], found["branch"]))


@contextmanager
def _harmless(uri: str) -> Iterator[None]:
    """A failure to record is logged and nothing more: the commit has happened."""
    try:
        yield
    except LANCE_ERRORS as error:
        _log.warning("digests of a commit to %s were not recorded: %s", uri, error)


def _note(root: Root, location: Location, files: Iterable[str], versions: Iterable[int]) -> None:
    folder = location.dataset_path
    paths = [f"{folder}/{file}" for file in sorted(files)]
    paths += [version_file(location, version) for version in versions]
    note(root, _digests(root, paths))


def _digests(root: Root, paths: Iterable[str]) -> dict[str, Digest]:
    found = {}
    for path in paths:
        for file in _below(root, path):
            # A file that is not there is not recorded; the size check of the commit says what is missing.
            with suppress(FileNotFoundError):
                found[file] = digest_written(f"{root.uri}/{file}")
    return found


def _below(root: Root, path: str) -> Iterator[str]:
    """The file, and for a data file the large values that lie in a folder of its name; of a folder (an index) all files."""
    if "/_indices/" in path:
        yield from _files_in(root, path)
        return
    if "/data/" in path:
        yield from _files_in(root, path.removesuffix(".lance"))
    yield path


def _files_in(root: Root, folder: str) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(f"{root.uri}/{folder}") as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files_in(root, f"{folder}/{entry.name}")
            else:
                yield f"{folder}/{entry.name}"


# --- what a commit adds -----------------------------------------------------------------------------------------------


def _added_by(before: LanceDataset | None, after: LanceDataset, transaction: Transaction) -> Iterator[str]:
    """The files that a transaction brings, below its line; what it took over from earlier versions is recorded already."""
    match transaction.operation:
        case LanceOperation.Append(fragments):
            yield from _data_files(fragments)
        case LanceOperation.Update() as update if not update.fields_modified:
            yield from _data_files(update.new_fragments or ())
            yield from _marks(update.updated_fragments or ())
        case LanceOperation.Delete() as delete:
            yield from _marks(delete.updated_fragments)
        case LanceOperation.CreateIndex() as create:
            yield from (f"_indices/{index.uuid}" for index in create.new_indices)
        case LanceOperation.Overwrite() as overwrite:
            yield from _data_files(overwrite.fragments)
        case LanceOperation.Project() | LanceOperation.UpdateConfig() | LanceOperation.Restore():
            return
        case _:
            yield from _difference(before, after)


def _difference(before: LanceDataset | None, after: LanceDataset) -> set[str]:
    return _named_by(after) - (set() if before is None else _named_by(before))


def _named_by(dataset: LanceDataset) -> set[str]:
    """The files of its own line that a version names."""
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    segments = (segment for index in dataset.describe_indices() for segment in index.segments)
    indexes = {f"_indices/{segment.uuid}" for segment in segments if segment.base_id is None}
    return {*_data_files(fragments), *_marks(fragments), *indexes}


def _data_files(fragments: Iterable[FragmentMetadata]) -> Iterator[str]:
    return (f"data/{data_file_name(file)}" for fragment in fragments for file in fragment.files if file.base_id is None)


def _marks(fragments: Iterable[FragmentMetadata]) -> Iterator[str]:
    for fragment in fragments:
        marks = fragment.deletion_file
        if marks is not None and marks.base_id is None:
            # What Lance's own `path` says, which makes an enumeration anew each time it is called.
            suffix = "arrow" if marks.file_type == "array" else "bin"
            yield f"_deletions/{fragment.id}-{marks.read_version}-{marks.id}.{suffix}"
