"""The schemas of an open graph. A schema belongs to a state: that of main lies in three files, every one in the archive.

Main's is followed by a cheap probe of the three files, and checked in full only when one changed. That of any other state is
the one its fence row names; what is archived under a hash never changes, so it is read once.
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
from omnigraph.storage.objects import at_once


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

    def identities(self) -> tuple[str, ...]:
        """Which graph this is, then which it was before it was moved or copied.

        No request is made unless it was not written since then.
        """
        return self._context.place.identities(self._contract.identity_domain)

    @property
    def original_domain(self) -> str:
        """Which graph this is or was copied from, as its schema files said when it was opened."""
        return self._contract.identity_domain

    def captured(self, branch: str = MAIN) -> tuple[Contract, SchemaIs]:
        """The schema of a branch, and the requirement of a write that relies on it.

        That of main is the accepted schema now; raises when the files on disk contradict each other or belong to another graph.
        That of another branch is the one this process has seen last: a write that relies on an older one is told so.
        """
        if branch != MAIN:
            state = self._context.manifest.last_seen(branch).state
            return self.of(state), SchemaIs(state.schema_hash)
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
        """Whether a change of main's schema is under way, or died on its way."""
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
            # A graph of an older format, which does not say so until its first schema change.
            if self._context.manifest.last_seen().state.schema_hash is None:
                return contract
            known = read_first(store, state, contract.identity_domain)
        else:
            known = read_archived(store, state.schema_hash, contract.identity_domain)
        with self._lock:
            self._archived[state.schema_hash or ""] = known
        return known

    def of_head(self, state: ManifestState, captured: tuple[Contract, SchemaIs]) -> Contract:
        """The schema to read main's newest state with. It is ahead of the files for as long as a change takes to promote them."""
        contract, named = captured
        if state.schema_hash in (contract.ir_hash, named.schema_hash) or not self.is_changing():
            return contract
        return self.of(state)

    def of_today(self, state: ManifestState) -> Contract:
        """The schema that the branch of a state has now; of a branch that is gone the one of the state."""
        if state.branch == MAIN:
            return self.captured()[0]
        try:
            head = self._context.manifest.last_seen(state.branch).state
        except BranchNotFound:
            return self.of(state)
        return self.of(head if head.incarnation == state.incarnation else state)

    def look_again(self, branch: str) -> bool:
        """Read the state of a branch; whether its schema is another one than was seen last. Of main the files say it."""
        if branch == MAIN:
            return self.is_changing()
        before = self._context.manifest.last_seen(branch).state.schema_hash
        return self._context.manifest.load(branch).schema_hash != before
