"""The source arguments of queries and schemas, and the cache of compiled queries."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from omnigraph.commit.model import is_text
from omnigraph.errors import BadRequest
from omnigraph.graph.contract import Contract
from omnigraph.language.query.ast import ListLit
from omnigraph.language.query.compile import NOTHING_GIVEN, CompiledQuery, compile_query
from omnigraph.language.query.nameless import Given, given_parameters, is_nameless
from omnigraph.watching import span

#: How many compiled queries a handle caches.
CACHED_QUERIES = 512
#: A query with a longer list literal is not cached, since the next call would have a different list.
LONGEST_KEPT = 64

#: Source, name, hash of the schema, and the types of parameters by which a query without a name was compiled.
_Key: TypeAlias = tuple[str, str | None, str, tuple[tuple[str, Given], ...]]


def read_source(source: str | Path, suffix: str = ".gq") -> tuple[str, str | None]:
    """The text of a source and its file name (None for a text). A single line that ends in `suffix`, without `{`, is a path."""
    if isinstance(source, str) and _is_text(source.strip(), suffix):
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


def require_named(name: object, params: object) -> None:
    """Raise BadRequest unless the name is a text and the parameters a mapping; they are easily confused."""
    if name is not None and not isinstance(name, str):
        hint = "; parameters come behind it, as params={…}" if isinstance(name, Mapping) else ""
        raise BadRequest(f"the name of a query is a text, not a {type(name).__name__}{hint}")
    if params is not None and not isinstance(params, Mapping):
        raise BadRequest(f"params must be a JSON object, not a {type(params).__name__}")


def id_column(ids: Sequence[object]) -> pa.Array:
    """The ids that a caller gives as a column; raises for what can be no id."""
    for one in ids:
        if not is_text(one):
            raise BadRequest(f"an id is a text, not {one!r}")
    return pa.array(ids, pa.string())


def _is_text(source: str, suffix: str) -> bool:
    """Whether a source is a text and not a path. A comment such as `//other.pg` is a text."""
    return not source.endswith(suffix) or "{" in source or "\n" in source or source.startswith("//")


class CompiledQueries:
    """Compiled queries by source, name, accepted schema and, without a name, the types of parameters; threads may share it."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, CompiledQuery] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, source: str | Path, name: str | None, contract: Contract, params: Mapping[str, object] | None = None
    ) -> CompiledQuery:
        """The compiled query of this name, or the only one of the source. `params` are the parameters of the call."""
        text, file = read_source(source)
        require_named(name, params)
        known = self._find((text, name, contract.ir_hash, ()))
        if known is not None:
            return known
        # Only a query without a head uses the types of parameters.
        given = given_parameters(params) if params and is_nameless(text) else NOTHING_GIVEN
        key = (text, name, contract.ir_hash, tuple(given.items()))
        known = self._find(key) if given else None
        if known is not None:
            return known
        with span("compile"):
            compiled = compile_query(text, name, contract.catalog, file, given)
        if not any(
            isinstance(found.literal, ListLit) and len(found.literal.items) > LONGEST_KEPT for _, found in key[3]
        ):
            self._keep(key, compiled)
        return compiled

    def _find(self, key: _Key) -> CompiledQuery | None:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def _keep(self, key: _Key, compiled: CompiledQuery) -> None:
        with self._lock:
            self._known[key] = compiled
            while len(self._known) > CACHED_QUERIES:
                self._known.popitem(last=False)
