"""Problems of rows that came in a body or an argument: told by line or record, not by the name of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import KeyConflict, LoadRejected, OmnigraphError

#: How the library calls rows that it is given in memory.
IN_MEMORY = "<data>"


@contextmanager
def told_by_record(unit: str, name: str) -> Iterator[None]:
    """Problems are told by line or record of the body, not by the name of the file that it was kept in."""
    place = re.compile(re.escape(name) + r":([0-9]+):")
    try:
        yield
    except (LoadRejected, KeyConflict) as error:
        error.message = place.sub(rf"{unit} \1:", error.message).replace(f"{name}: ", "")
        if isinstance(error, KeyConflict):
            error.places = tuple(("body", line, message) for _, line, message in error.places)
        else:
            error.errors = [("body", line, message) for _, line, message in error.errors]
        raise
    except OmnigraphError as error:
        error.message = error.message.replace(name, "the body")
        raise
