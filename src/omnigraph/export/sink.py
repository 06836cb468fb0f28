"""A file that is read while it is written, to stream the output of a writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class ByteSink:
    """Accepts bytes from a writer and hands them out to a reader."""

    closed = False

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._place = 0

    def write(self, data: bytes | memoryview) -> int:
        self._waiting.append(bytes(data))
        self._place += len(data)
        return len(data)

    def taken(self) -> bytes:
        """The bytes written since the last call."""
        waiting, self._waiting = self._waiting, []
        return b"".join(waiting)

    def tell(self) -> int:
        return self._place

    def flush(self) -> None:
        return None

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        return None


CHUNK_BYTES = 65_536


def chunked(stream: Iterable[bytes], limit: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a UTF-8 stream in chunks of at most `limit` bytes, each valid UTF-8 on its own."""
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
    """The last offset up to `place` at which a character begins."""
    while data[place] & 0xC0 == 0x80:
        place -= 1
    return place
