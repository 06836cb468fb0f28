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
            stamps = tuple(requests.map(self._context.store.stamp, FILES))
        with self._lock:
            if stamps != self._seen:
                contract = checked_contract(self._context)
                check_domain(contract, self._contract)
                self._contract = contract
                self._seen = stamps
            return self._contract
