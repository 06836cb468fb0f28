"""The verbs about what was: tags, differences, changes of a commit and along a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.commit.branch_refs import LONGEST_NAME, read_ref
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.graph.handle import Handle
from omnigraph.graph.snapshot import Reference, Snapshot, resolve

if TYPE_CHECKING:
    from omnigraph.changes.filter import Names
    from omnigraph.changes.model import ChangeSet

#: What can be compared: a branch, a tag, a commit, a snapshot, or a manifest version of this handle's branch.
ReadTarget = Commit | Reference


class History(Handle):
    """What changed, and names for what was."""

    # --- differences ------------------------------------------------------------------------------------------------

    def diff(
        self,
        before: ReadTarget,
        after: ReadTarget = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> ChangeSet:
        """What changed from one read target to another, this handle's branch unless given; on any branches.

        `kinds`: node, edge. `types`: names of types. `ops`: insert, update, delete.
        """
        from omnigraph.changes.diff import diff
        from omnigraph.changes.filter import read_filter

        return diff(self._context, self._target(before), self._target(after), read_filter(kinds, types, ops))

    def _target(self, target: ReadTarget) -> ManifestState:
        """The state that a read target names; a branch is meant before anything else of that name."""
        if isinstance(target, Snapshot):
            return target.state
        if isinstance(target, Commit):
            target = target.id
        if isinstance(target, str) and (target == MAIN or self._is_branch(target)):
            return self._context.manifest.load(target)
        return resolve(self._context.manifest, self.branch, target)

    def _is_branch(self, name: str) -> bool:
        return 0 < len(name.encode()) <= LONGEST_NAME and read_ref(self._context.store, name) is not None

    # --- tags -------------------------------------------------------------------------------------------------------

    def tag(self, name: str, commit: ReadTarget = None, *, actor: str | None = None) -> str:
        """Name a commit, the head of this handle's branch unless given; returns its id. Cleanup keeps what is tagged."""
        from omnigraph.commit.tags import set_tag

        self._refuse_read_only()
        commit_id = self._target(commit).head
        set_tag(self._context, name, commit_id, actor or self.actor)
        return commit_id

    def tags(self) -> dict[str, str]:
        """The ids of the tagged commits by tag name, in name order."""
        from omnigraph.commit.tags import tagged_commits

        return dict(tagged_commits(self._context))

    def delete_tag(self, name: str) -> None:
        """Forget a tag. The commit stays, until cleanup may take it."""
        from omnigraph.commit.tags import drop_tag

        self._refuse_read_only()
        drop_tag(self._context, name)
