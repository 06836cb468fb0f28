"""Files that commands write: there as a whole, or as they were."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from omnigraph.errors import BadRequest


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that is there as a whole or not at all: what stood there stays until the last byte is written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe can not be replaced.
            path.write_bytes(b"".join(chunks))
            return
        with temporary.open("xb") as file:
            file.writelines(chunks)
        temporary.replace(path)
    except OSError as error:
        raise BadRequest(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
