"""Queries and schemas as callers give them, and the compiled queries that handles keep."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.graph.contract import Contract
from omnigraph.language.query.compile import CompiledQuery, compile_query

#: How many compiled queries one handle keeps.
CACHED_QUERIES = 512


def read_source(source: str | Path, suffix: str = ".gq") -> tuple[str, str | None]:
    """A text, or the text of a file and the name of the file. A text without a brace that ends in `suffix` is a path."""
    if isinstance(source, str) and ("{" in source or not source.strip().endswith(suffix)):
        return source, None
    if not isinstance(source, str | os.PathLike):
        raise BadRequest(f"a source is a text or the path of a {suffix} file, not {source!r}")
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8"), str(source)
    except OSError as error:
        raise BadRequest(f"cannot read '{path}': {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"cannot read '{path}': it is not UTF-8 text (byte {error.start})") from None


class CompiledQueries:
    """Compiled queries by source, name and accepted schema; safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str | None, str], CompiledQuery] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, source: str | Path, name: str | None, contract: Contract) -> CompiledQuery:
        """The compiled query of this name, or the only one of the source."""
        text, file = read_source(source)
        key = (text, name, contract.ir_hash)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        compiled = compile_query(text, name, contract.catalog, file)
        with self._lock:
            self._known[key] = compiled
            while len(self._known) > CACHED_QUERIES:
                self._known.popitem(last=False)
        return compiled
