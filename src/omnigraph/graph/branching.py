"""The verbs of branches: list, compare with main, create, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.exactly_once import once
from omnigraph.commit.history import newest_first, reachable
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import Conflict
from omnigraph.graph.handle import Handle
from omnigraph.graph.snapshot import Snapshot
from omnigraph.policy.actions import BRANCH_CREATE, BRANCH_DELETE, Need
from omnigraph.shown import Listing, Shown


@dataclass(frozen=True, slots=True)
class BranchState(Shown):
    """A branch: its newest commit, and how many commits it has that main lacks (`ahead`) and the other way round."""

    name: str
    head: Commit
    ahead: int
    behind: int

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {"name": self.name, "head": self.head.to_dict(), "ahead": self.ahead, "behind": self.behind}


class Branching(Handle):
    """The branches of a graph."""

    def branches(self) -> list[str]:
        """The names of all branches: main first, then by name."""
        return branch_names(self._context)

    def create_branch(
        self,
        name: str,
        base: str | None = None,
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Snapshot:
        """Make a branch at the current head of `base` (this handle's branch unless given).

        `actor` is taken as by every call that writes; a branch is no commit, so nothing keeps it. `idempotency_key`: a repeat of
        the call makes nothing and returns the state that the branch began with.
        """
        self._allow_write(actor, Need(BRANCH_CREATE, self._named(base), name))
        asked = once(idempotency_key, "create_branch", name=name, base=self._named(base))
        return self._snapshot(create_branch(self._context, name, self._named(base), asked))

    def delete_branch(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> None:
        """Remove a branch that no other branch depends on; `actor` as in `create_branch`.

        `idempotency_key`: a repeat of the call deletes nothing, also when there is another branch of this name by then.
        """
        self._allow_write(actor, Need(BRANCH_DELETE, None, name))
        if name == self.branch and name != MAIN:
            raise Conflict(f"cannot delete branch '{name}': it is the currently active branch of this handle")
        delete_branch(self._context, name, asked=once(idempotency_key, "delete_branch", name=name))

    def branch_states(self) -> list[BranchState]:
        """All branches with their newest commits and how far they are from main; main first, then by name."""
        manifest = self._context.manifest
        names = branch_names(self._context)
        heads: dict[str, str] = {}
        known: dict[str, Commit] = {}
        for name in names:
            heads[name] = manifest.load(name).head
            known |= manifest.commits(name)
        of_main = {commit.id for commit in reachable(known, heads[MAIN])}
        found: Listing[BranchState] = Listing()
        for name in names:
            own = {commit.id for commit in newest_first(known, heads[name])}
            found.append(BranchState(name, known[heads[name]], len(own - of_main), len(of_main - own)))
        return found
