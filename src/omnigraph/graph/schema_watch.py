"""The schemas of an open graph. Each state has a schema: main's current schema is in three files, all are in the archive.
The three files are probed cheaply, and checked in full only when one changed. The schema of any other state is named by its
fence row; an archived schema never changes, so it is read once.
"""

from __future__ import annotations

import threading

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.commit.schema_files import FILES
from omnigraph.commit.updates import SchemaIs
from omnigraph.errors import BranchNotFound, SchemaContractError
from omnigraph.graph.contract import Contract, check_domain, read_archived, read_first
from omnigraph.graph.lifecycle import checked_contract, readable_sidecars


class SchemaWatch:
    """The contract of one open handle, kept up to date."""

    def __init__(self, context: CommitContext, contract: Contract) -> None:
        self._context = context
        self._contract = contract
        #: The schema hash in the manifest when the contract was read.
        self._named: str | None = None
        self._seen: tuple[str | None, ...] | None = None
        self._archived: dict[str, Contract] = {}
        self._lock = threading.Lock()

    def identities(self) -> tuple[str, ...]:
        """The identity of this graph, then its identities before it was moved or copied.
        Storage is read only when nothing was written since a move or copy.
        """
        return self._context.place.identities(self._contract.identity_domain)

    @property
    def original_domain(self) -> str:
        """The identity domain in the schema files at opening: of this graph, or of the graph from which it was copied."""
        return self._contract.identity_domain

    def captured(self, branch: str = MAIN) -> tuple[Contract, SchemaIs]:
        """The schema of a branch, and the requirement for a write that relies on it.
        For main it is the accepted schema now; raises when the files on disk contradict each other or belong to another
        graph. For
        another branch it is the schema that this process has seen last; a write that relies on an outdated schema is refused.
        """
        if branch != MAIN:
            state = self._context.manifest.last_seen(branch).state
            return self.of(state), SchemaIs(state.schema_hash)
        stamps = self._context.store.stamps(FILES)
        with self._lock:
            if stamps != self._seen:
                read = self._read()
                if read is not None:
                    contract, named = read
                    check_domain(contract, self._contract)
                    self._contract, self._named, self._seen = contract, named, stamps
            return self._contract, SchemaIs(self._named)

    def _read(self) -> tuple[Contract, str | None] | None:
        """The contract on disk and the manifest's hash of it; None while a schema change is published but not complete."""
        try:
            contract = checked_contract(self._context)
            named = self._context.manifest.last_seen().state.schema_hash
            if named in (None, contract.ir_hash):
                return contract, named
        except SchemaContractError:
            pass
        if self.is_changing():
            return None
        # The change may have been completed between the two reads. Files that still differ were put there by someone else.
        contract = checked_contract(self._context)
        return contract, self._context.manifest.last_seen().state.schema_hash

    def is_changing(self) -> bool:
        """Whether a change of main's schema is running or was interrupted."""
        return any(sidecar.moves_schema_files for sidecar in readable_sidecars(self._context.store))

    def of(self, state: ManifestState) -> Contract:
        """The schema that a state was written under, as it was then."""
        with self._lock:
            contract, known = self._contract, self._archived.get(state.schema_hash or "")
        if state.schema_hash == contract.ir_hash:
            return contract
        if known is not None:
            return known
        store = self._context.store
        if state.schema_hash is None:
            # A graph of an older format, whose states do not name a schema before its first schema change.
            if self._context.manifest.last_seen().state.schema_hash is None:
                return contract
            known = read_first(store, state, contract.identity_domain)
        else:
            known = read_archived(store, state.schema_hash, contract.identity_domain)
        with self._lock:
            self._archived[state.schema_hash or ""] = known
        return known

    def of_head(self, state: ManifestState, captured: tuple[Contract, SchemaIs]) -> Contract:
        """The schema of main's newest state, which may be ahead of the files while a change puts them in place."""
        contract, named = captured
        if state.schema_hash in (contract.ir_hash, named.schema_hash) or not self.is_changing():
            return contract
        return self.of(state)

    def of_today(self, state: ManifestState) -> Contract:
        """The current schema of the branch of a state; the schema of the state itself if the branch is gone."""
        if state.branch == MAIN:
            return self.captured()[0]
        try:
            head = self._context.manifest.last_seen(state.branch).state
        except BranchNotFound:
            return self.of(state)
        return self.of(head if head.incarnation == state.incarnation else state)

    def look_again(self, branch: str) -> bool:
        """Read the state of a branch again; returns whether its schema changed (for main: whether a change is running)."""
        if branch == MAIN:
            return self.is_changing()
        before = self._context.manifest.last_seen(branch).state.schema_hash
        return self._context.manifest.load(branch).schema_hash != before
