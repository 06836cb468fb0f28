"""A stream cut into pieces that are never empty, never large, and never end inside a character."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

CHUNK_BYTES = 65_536


def chunked(stream: Iterable[bytes], limit: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a UTF-8 stream in chunks of at most `limit` bytes, each valid UTF-8 by itself."""
    waiting = b""
    for piece in stream:
        waiting = waiting + piece if waiting else piece
        start = 0
        while len(waiting) - start > limit:
            end = _boundary(waiting, start + limit)
            yield waiting[start:end]
            start = end
        waiting = waiting[start:]
    if waiting:
        yield waiting


def _boundary(data: bytes, place: int) -> int:
    """The last place up to this one where a character begins."""
    while data[place] & 0xC0 == 0x80:
        place -= 1
    return place
