"""A file that is read while it is written, so that what a writer makes can be streamed on."""

from __future__ import annotations


class ByteSink:
    """Takes bytes from one side and gives them out on the other."""

    closed = False

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._place = 0

    def write(self, data: bytes | memoryview) -> int:
        self._waiting.append(bytes(data))
        self._place += len(data)
        return len(data)

    def taken(self) -> bytes:
        """What was written since the last time."""
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
