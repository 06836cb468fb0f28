"""Reading the `.pg` and `.gq` files named on the command line."""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import BadRequest


def read_source(path: str) -> str:
    """The text of a file; what can not be read is one clear error."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path!r}: {error.strerror or error}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"cannot read {path!r}: it is not UTF-8 text (byte {error.start})") from error
