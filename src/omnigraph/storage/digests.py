"""The digest log of a graph: a digest of every file as it was written, so that damage can be detected.

`__digests.log` has one line per file: `<check> <digest> <size> <path>`, where the digest is the XXH3 (128 bits) of the
file's bytes and the check is the XXH3 (64 bits) of the rest of the line. A line `<check> - 0 <prefix>` cancels the lines of all
paths with this prefix: these files are removed, or replaced. Several lines for one path are all valid, each for some moment.

On a local disk every commit appends its lines with one `write`, after its files exist; this costs no request. A process
that dies before leaves files without a line, which is no damage. An object store protects its objects itself (a put is atomic
and checksummed) and has no append; there `omnigraph verify --deep --record` writes the whole log.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root

LOG = "__digests.log"

_FORGET = "-"
#: Prefixes that are still to be forgotten, by the graph: the disk was full when they should have been written.
_unforgotten: dict[str, list[str]] = {}
#: From this many bytes on a file is mapped instead of read: copying it would take longer than hashing it.
_MAPPED = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Digest:
    """The size of a file in bytes and the XXH3 (128 bits, hexadecimal) of its content."""

    size: int
    hash: str


def digest_of(data: bytes | mmap.mmap) -> Digest:
    return Digest(len(data), xxhash.xxh3_128_hexdigest(data))


def digest_written(place: Path | str) -> Digest:
    """The digest of a local file that this process has just written, so that its bytes are in the page cache."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < _MAPPED:
            return digest_of(os.read(descriptor, size + 1))
        with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as mapped:
            return digest_of(mapped)
    finally:
        os.close(descriptor)


def digest_chunks(chunks: Iterable[bytes]) -> Digest:
    """The digest of a file that is read piece by piece."""
    running, size = xxhash.xxh3_128(), 0
    for chunk in chunks:
        running.update(chunk)
        size += len(chunk)
    return Digest(size, running.hexdigest())


# --- writing ----------------------------------------------------------------------------------------------------------


def note(root: Root, digests: Mapping[str, Digest], *, forgetting: Iterable[str] = ()) -> None:
    """Append lines to the log of a local graph. A failure is only logged, since files without a line are no damage.

    `forgetting`: prefixes of paths whose earlier lines no longer count; they are written before the digests. One that could
    not be written is written with the next lines: without it, files that are gone on purpose would be damage.
    """
    if not root.is_local:
        return
    prefixes = [*_unforgotten.pop(root.uri, ()), *forgetting]
    lines = [*(_line(_FORGET, 0, prefix) for prefix in prefixes), *_lines(digests)]
    if not lines:
        return
    # The leading newline ends a line that a full disk or a killed process may have left unfinished.
    data = f"\n{''.join(lines)}".encode()
    try:
        descriptor = os.open(root.local_path(LOG), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
    except OSError as error:
        if prefixes:
            _unforgotten[root.uri] = [*prefixes, *_unforgotten.get(root.uri, ())]
        _log.warning("digests of %d files were not recorded: %s", len(digests), error)


def forget(root: Root, *prefixes: str) -> None:
    """Cancel the recorded digests of all paths with these prefixes: the files are being removed or replaced."""
    note(root, {}, forgetting=prefixes)


def forget_missing(root: Root, prefix: str) -> None:
    """Cancel the recorded digests of files under a prefix that no longer exist."""
    if not root.is_local or not root.local_path(LOG).exists():
        return
    recorded = _parse(root.local_path(LOG).read_bytes()).digests
    forget(root, *(path for path in recorded if path.startswith(prefix) and not root.local_path(path).exists()))


def _lines(digests: Mapping[str, Digest]) -> Iterable[str]:
    return (_line(digest.hash, digest.size, path) for path, digest in digests.items())


def _line(hash: str, size: int, path: str) -> str:
    rest = f"{hash} {size} {path}"
    return f"{xxhash.xxh3_64_hexdigest(rest.encode())} {rest}\n"


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """The parsed log: the recorded digests by path, and the number of damaged lines."""

    digests: dict[str, tuple[Digest, ...]] = field(default_factory=dict)
    damaged_lines: int = 0

    def matches(self, path: str, found: Digest) -> bool | None:
        """Whether a file has a recorded digest; None when none is recorded for its path."""
        known = self.digests.get(path)
        return None if known is None else found in known

    def has_size(self, path: str, size: int) -> bool | None:
        """Whether a file has a recorded size; None when none is recorded for its path."""
        known = self.digests.get(path)
        return None if known is None else any(digest.size == size for digest in known)


def read_log(store: ObjectStore) -> Recorded:
    """The whole log, parsed."""
    return _parse(store.get_or_none(LOG) or b"")


def _parse(data: bytes) -> Recorded:
    """Parse the log. An unfinished last line was being written when its process died, and is ignored."""
    found = Recorded()
    *lines, _unfinished = data.split(b"\n")
    for line in lines:
        if line and not _take(found, line):
            found.damaged_lines += 1
    return found


def _take(found: Recorded, line: bytes) -> bool:
    check, _, rest = line.partition(b" ")
    if check != xxhash.xxh3_64_hexdigest(rest).encode():
        return False
    hash, size, path = rest.decode().split(" ", 2)
    if hash == _FORGET:
        for known in [known for known in found.digests if known.startswith(path)]:
            del found.digests[known]
        return True
    digest = Digest(int(size), hash)
    known_digests = found.digests.get(path, ())
    if digest not in known_digests:
        found.digests[path] = (*known_digests, digest)
    return True


def fold_log(store: ObjectStore, *, without: Container[str] = (), added: Mapping[str, Digest] | None = None) -> None:
    """Rewrite the log without damaged lines and the lines of paths in `without`, with new lines for the files in `added`.

    Called under the locks of all branches, because a line that a commit appends meanwhile would be lost. Without a log and
    anything to add, nothing is written.
    """
    recorded = read_log(store)
    if not recorded.digests and not recorded.damaged_lines and not added:
        return
    kept = {path: digests for path, digests in recorded.digests.items() if path not in without}
    kept |= {path: (digest,) for path, digest in (added or {}).items()}
    lines = (_line(digest.hash, digest.size, path) for path, digests in kept.items() for digest in digests)
    store.put(LOG, "".join(lines).encode())
