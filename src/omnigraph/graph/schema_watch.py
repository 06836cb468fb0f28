"""Following the schema of an open graph: a cheap probe of the three files, and a full check only when one changed."""

from __future__ import annotations

import threading

from omnigraph.commit.context import CommitContext
from omnigraph.commit.schema_files import FILES
from omnigraph.graph.contract import Contract, check_domain
from omnigraph.graph.lifecycle import checked_contract
from omnigraph.storage.round_trips import at_once


class SchemaWatch:
    """The contract of one open handle, kept up to date."""

    def __init__(self, context: CommitContext, contract: Contract) -> None:
        self._context = context
        self._contract = contract
        self._seen: tuple[str | None, ...] | None = None
        self._lock = threading.Lock()

    def current(self) -> Contract:
        """The accepted schema now. Raises when the files on disk contradict each other or belong to another graph."""
        with at_once(self._context.root) as requests:
            tags = tuple(requests.map(self._tag, FILES))
        with self._lock:
            if tags != self._seen:
                contract = checked_contract(self._context)
                check_domain(contract, self._contract)
                self._contract = contract
                self._seen = tags
            return self._contract

    def _tag(self, name: str) -> str | None:
        found = self._context.store.get_tagged_or_none(name)
        return None if found is None else found[1]
