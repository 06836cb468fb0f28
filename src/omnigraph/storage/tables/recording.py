"""Records the files that a Lance commit adds to a dataset in the graph's digest log (`storage/digests.py`).

Called by `tables/commit.py` after every call that makes a version, so no commit is missed. Only for local graphs: the files
are read back from the page cache, about 0.1 ms for a commit of one row. A failure here never fails a commit.
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

#: A Lance handle knows only its URI, so the root of the graph is found by the names that datasets have below it.
_BELOW_ROOT = re.compile(
    r"(?P<root>/.*?)/(?P<path>__manifest|(?:nodes|edges)/[0-9a-f]{16}-[0-9a-f]{16}|_graph_commit\w+\.lance)"
    r"(?:/tree/(?P<branch>.+))?"
)

_log = logging.getLogger(__name__)


def record_commit(
    before: LanceDataset | None, committed: LanceDataset, transaction: Transaction, version: VersionBytes, *, undo: bool
) -> None:
    """Record the files of the transaction that made the version of `committed`, with one append to the log.

    `version`: the bytes of the version's files, already read back. `undo`: the transaction restores earlier files, which are
    not recorded again, because their current content may be damaged.
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
    """The file name of a transaction: it starts with the version it was committed on, which a rebase changes."""
    return f"{committed.version - 1}-{transaction.uuid}.txn"


@contextmanager
def recording_versions(dataset: LanceDataset) -> Iterator[None]:
    """Record the versions that Lance makes itself inside the block by advancing this handle: a compaction, an index fold."""
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
    """Record the first version of a Lance branch and its ref; cancels the records of a deleted branch of that name."""
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
    """Cancel the records of a Lance branch that is being removed."""
    place = _place(dataset.uri)
    if place is not None:
        forget_line(place[0], Location(place[1].path, name))


def forget_line(root: Root, branch: Location) -> None:
    """Cancel the records of a Lance branch and its ref, which are being removed."""
    forget(root, *_prefixes(branch))


def forget_versions(uri: str, versions: Iterable[int]) -> None:
    """Cancel the records of versions that are removed at once because their files are incomplete."""
    place = _place(uri)
    if place is not None:
        forget(place[0], *(version_file(place[1], version) for version in versions))


def ref_file(branch: Location) -> str:
    """The path of the ref file that makes a branch of a dataset exist."""
    assert branch.branch is not None, "the main line has no ref"
    return f"{branch.path}/_refs/branches/{quote(branch.branch, safe='')}.json"


def _prefixes(branch: Location) -> list[str]:
    return [f"{branch.dataset_path}/", ref_file(branch)]


def _place(uri: str) -> tuple[Root, Location] | None:
    """The graph and the line of a local dataset; None for any other dataset."""
    found = _BELOW_ROOT.fullmatch(uri)
    return None if found is None else (Root(found["root"]), Location(found["path"], found["branch"]))


@contextmanager
def _harmless(uri: str) -> Iterator[None]:
    """Log a failure to record digests and go on: the commit has happened."""
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
            # A missing file is not recorded; the size check of the commit reports it.
            with suppress(FileNotFoundError):
                found[file] = digest_written(f"{root.uri}/{file}")
    return found


def _below(root: Root, path: str) -> Iterator[str]:
    """The files at a path: of a data file also the large blobs in the folder of its name; of an index folder all files."""
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
    """The files that a transaction adds, as paths below its line; files of earlier versions are recorded already."""
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
    """The files that a version names and that lie on its own line."""
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
            # Equals Lance's own `path`, which builds an enumeration at each call.
            suffix = "arrow" if marks.file_type == "array" else "bin"
            yield f"_deletions/{fragment.id}-{marks.read_version}-{marks.id}.{suffix}"
