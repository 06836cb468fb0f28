"""The verbs about what was: tags, differences, changes of a commit and along a branch."""

from __future__ import annotations

from omnigraph.commit.model import Commit
from omnigraph.graph.handle import Handle
from omnigraph.graph.snapshot import Reference


class History(Handle):
    """What changed, and names for what was."""

    # --- tags -------------------------------------------------------------------------------------------------------

    def tag(self, name: str, commit: Commit | Reference = None, *, actor: str | None = None) -> str:
        """Name a commit, the head of this handle's branch unless given; returns its id. Cleanup keeps what is tagged."""
        from omnigraph.commit.tags import set_tag

        self._refuse_read_only()
        commit_id = self.snapshot(at=commit.id if isinstance(commit, Commit) else commit).commit
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
