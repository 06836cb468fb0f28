"""Compares the files of a graph with what is recorded of them: existence, size and, read whole, digest.

Reading is split into tasks of about 256 MiB, which run here or on Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from omnigraph.maintenance.verify_report import attempted
from omnigraph.storage.digests import Digest, digest_chunks
from omnigraph.storage.files import InputFile
from omnigraph.storage.root import Root

TASK_BYTES = 256 << 20
TASK_FILES = 20_000
_CHUNK = 8 << 20

_LINE = re.compile(
    r"(?P<line>(?:__manifest|(?:nodes|edges)/[^/]+|_graph_commit\w+\.lance)(?:/tree/.+?)?)/"
    r"(?P<folder>_versions|_transactions|data|_deletions|_indices|_refs)/(?P<rest>.+)"
)
_KINDS = {
    "_versions": "version",
    "_transactions": "transaction",
    "_deletions": "deletion marks",
    "_indices": "index",
    "_refs": "branch ref",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The role of a path: the folder of its dataset line (None for a control file), and the kind of file."""

    line: str | None
    kind: str
    rest: str


def place_of(path: str) -> Place:
    """The role of a file of a graph, from its path."""
    found = _LINE.fullmatch(path)
    if found is None:
        return Place(None, "schema file" if path.startswith(("_schema", "__schema")) else "control file", path)
    folder, rest = found["folder"], found["rest"]
    kind = _KINDS.get(folder) or ("blob" if "/" in rest else "data")
    return Place(found["line"], kind, rest)


def group_of(path: str) -> str | None:
    """The folder of an index, or the data file that a blob belongs to; None for what belongs to nothing else.

    Lance builds a text index from files that it stages below the folder of the index and deletes afterwards. When the store
    refuses the deletion, the files stay and are no part of the index.
    """
    place = place_of(path)
    if place.kind == "index":
        uuid, _, name = place.rest.partition("/")
        return None if name.startswith("staging/") else f"{place.line}/_indices/{uuid}"
    if place.kind == "blob":
        return f"{place.line}/data/{place.rest.partition('/')[0]}.lance"
    return None


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """Files to read whole: path, listed size, and recorded digests (none: any content is accepted)."""

    root: Root
    files: tuple[tuple[str, int, tuple[Digest, ...]], ...]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """By path the problem of a file, or its digest if none was recorded; and how many bytes were read."""

    wrong: dict[str, str]
    digests: dict[str, Digest]
    bytes: int


def read_specs(root: Root, files: Iterable[tuple[str, int, tuple[Digest, ...]]]) -> list[ReadSpec]:
    """Group the files into tasks of bounded size, in the order of their paths."""
    specs: list[ReadSpec] = []
    group: list[tuple[str, int, tuple[Digest, ...]]] = []
    size = 0
    for file in sorted(files, key=lambda file: file[0]):
        if group and (size + file[1] > TASK_BYTES or len(group) >= TASK_FILES):
            specs.append(ReadSpec(root, tuple(group)))
            group, size = [], 0
        group.append(file)
        size += file[1]
    return [*specs, ReadSpec(root, tuple(group))] if group else specs


def read_files(spec: ReadSpec) -> ReadResult:
    """Read files whole and compare their digests. A task, which runs in any process that can reach the graph's storage."""
    wrong: dict[str, str] = {}
    digests: dict[str, Digest] = {}
    total = 0
    for path, size, known in spec.files:
        found = _digest(spec.root, path, size)
        if isinstance(found, str):
            wrong[path] = found
            continue
        total += found.size
        if not known:
            digests[path] = found
        elif found not in known:
            wrong[path] = "its bytes differ from what was written"
    return ReadResult(wrong, digests, total)


def _digest(root: Root, path: str, size: int) -> Digest | str:
    return attempted(lambda: digest_chunks(chunks_of(root, path, size)))


def chunks_of(root: Root, path: str, size: int) -> Iterator[bytes]:
    """The bytes of a file of a graph, piece by piece."""
    place = f"{root.uri}/{path}" if root.is_local else "/".join(part for part in (root.prefix, path) if part)
    with InputFile(path, root, place, size).opened() as file:
        while chunk := file.read(_CHUNK):
            yield bytes(chunk)


def total_bytes(specs: Sequence[ReadSpec]) -> int:
    return sum(size for spec in specs for _, size, _ in spec.files)
