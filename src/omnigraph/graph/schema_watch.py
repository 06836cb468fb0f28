"""Following the schema of an open graph: a cheap probe of the three files, and a full check only when one changed."""

from __future__ import annotations

import threading

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.commit.schema_files import FILES
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import SchemaIs
from omnigraph.errors import SchemaContractError
from omnigraph.graph.contract import Contract, check_domain, read_archived, read_first
from omnigraph.graph.lifecycle import checked_contract, readable_sidecars
from omnigraph.storage.round_trips import at_once

#: The schema of the states that do not name theirs: those of an older format, until its first change.
FIRST = ""


class SchemaWatch:
    """The contract of one open handle, kept up to date."""

    def __init__(self, context: CommitContext, contract: Contract) -> None:
        self._context = context
        self._contract = contract
        #: What the manifest called the schema when the contract was read.
        self._named: str | None = None
        self._seen: tuple[str | None, ...] | None = None
        self._archived: dict[str, Contract] = {}
        self._lock = threading.Lock()

    def current(self) -> Contract:
        """The accepted schema now. Raises when the files on disk contradict each other or belong to another graph."""
        return self.captured()[0]

    def captured(self) -> tuple[Contract, SchemaIs]:
        """The accepted schema now, and the requirement of a write that relies on it."""
        with at_once(self._context.root) as requests:
            stamps = tuple(requests.map(self._context.store.stamp, FILES))
        with self._lock:
            if stamps != self._seen:
                read = self._read()
                if read is not None:
                    contract, named = read
                    check_domain(contract, self._contract)
                    self._contract, self._named, self._seen = contract, named, stamps
            return self._contract, SchemaIs(self._named)

    def _read(self) -> tuple[Contract, str | None] | None:
        """The contract on disk and what the manifest calls it; None while a change is between its publish and its end."""
        try:
            contract = checked_contract(self._context)
            named = self._context.manifest.last_seen().state.schema_hash
            if named in (None, contract.ir_hash):
                return contract, named
        except SchemaContractError:
            pass
        if self.is_changing():
            return None
        # It may have been completed between one look and the next. What still differs, somebody has put there.
        contract = checked_contract(self._context)
        return contract, self._context.manifest.last_seen().state.schema_hash

    def is_changing(self) -> bool:
        """Whether a schema change is under way, or died on its way."""
        return any(sidecar.kind is Kind.SCHEMA_APPLY for sidecar in readable_sidecars(self._context.store))

    def of(self, state: ManifestState, captured: tuple[Contract, SchemaIs]) -> Contract:
        """The schema that a state was written under, as it was then."""
        contract, named = captured
        if state.schema_hash in (contract.ir_hash, named.schema_hash):
            return contract
        store, name = self._context.store, state.schema_hash or FIRST
        with self._lock:
            known = self._archived.get(name)
        if known is None:
            if state.schema_hash is None:
                known = read_first(store, state, contract.identity_domain)
            else:
                known = read_archived(store, state.schema_hash, contract.identity_domain)
            with self._lock:
                self._archived[name] = known
        return known

    def of_head(self, state: ManifestState, captured: tuple[Contract, SchemaIs]) -> Contract:
        """The schema to read the newest state with. It is ahead of the files for as long as a change takes to promote them."""
        contract, named = captured
        if state.schema_hash in (contract.ir_hash, named.schema_hash) or not self.is_changing():
            return contract
        return self.of(state, captured)
