"""The commits of a branch in feed order, and the cursors that record how far a reader has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.changes.filter import Filter
from omnigraph.changes.tokens import rejected, seal, unseal
from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, ManifestState
from omnigraph.errors import BadRequest, ChangeCursorRejected

CURSOR = "cursor"
NOW, BEGINNING, AFTER = "now", "beginning", "after:"


@dataclass(frozen=True)
class Track:
    """A captured branch and the filter of a reader. Its cursors are valid only for both."""

    manifest: Manifest
    #: The identities of the graph: the current one first, then those from before it was moved or copied.
    identities: tuple[str, ...]
    state: ManifestState
    wanted: Filter

    @property
    def head(self) -> str:
        """The id of the newest commit."""
        return self.state.head

    def is_newest(self, commit: str) -> bool:
        """Whether a commit is now the newest of the branch."""
        return self.manifest.load(self.state.branch).head == commit

    # --- where to begin ---------------------------------------------------------------------------------------------

    def start(self, start: str | None) -> str | None:
        """The last commit that a new feed leaves out; None: it starts with the first commit."""
        # At the first use of a filter, an unknown type is an error.
        self.wanted.refuse_unknown_types(self.state)
        if start is None or start == NOW:
            return self.head
        if start == BEGINNING:
            return None
        if isinstance(start, str) and start.startswith(AFTER):
            return start.removeprefix(AFTER)
        raise BadRequest(f"'{start}' is no start of a feed: give `{NOW}`, `{BEGINNING}` or `{AFTER}<commit id>`")

    def cursor(self, seen: str | None) -> str:
        """The cursor of a reader that has seen everything up to a commit; None: nothing."""
        return self.seal({"for": CURSOR, "seen": seen})

    def seen(self, cursor: str) -> str | None:
        """The last commit that the holder of a cursor has seen; None: none."""
        seen: str | None = self.unseal(cursor, CURSOR)["seen"]
        return seen

    # --- commits ----------------------------------------------------------------------------------------------------

    def between(self, seen: str | None, until: str) -> list[Commit]:
        """The commits of this branch after `seen`, up to and including `until`, oldest first, along first parents."""
        if seen == until:
            return []
        known = self._newer(seen)
        found: list[Commit] = []
        at: str | None = until
        while at is not None and at != seen:
            commit = known.get(at)
            if commit is None:
                raise self._not_here(seen or at)
            found.append(commit)
            at = commit.parent
        if seen is not None and at is None:
            raise self._not_here(seen)
        return [commit for commit in reversed(found) if commit.kind != "init"]

    def _newer(self, seen: str | None) -> dict[str, Commit]:
        """The commits of this branch that are newer than `seen`; the cost follows their number."""
        branch = self.state.branch
        if seen is None:
            return self.manifest.commits(branch)
        commit = self.manifest.find_commit(branch, seen)
        if commit is None:
            raise self._not_here(seen)
        # Later commits of its group have the same manifest version.
        return self.manifest.commits(branch, newer_than=commit.manifest_version - (commit.group is not None))

    def _not_here(self, commit: str) -> ChangeCursorRejected:
        return rejected("unknown_commit", f"commit {commit} is not in the history that '{self.state.branch}' tells")

    # --- tokens -----------------------------------------------------------------------------------------------------

    def seal(self, payload: dict[str, Any]) -> str:
        """A token that is valid only for this branch and filter."""
        return seal(self.identities[0], payload | self._bound())

    def unseal(self, token: str, purpose: str) -> dict[str, Any]:
        """The payload of a token, after checking that it is for this branch and filter."""
        payload = unseal(self.identities, token, purpose)
        bound = self._bound()
        if payload["branch"] != bound["branch"]:
            raise rejected("other_branch", f"it belongs to branch '{payload['branch']}'")
        if payload["incarnation"] != bound["incarnation"]:
            raise rejected("recreated_branch", f"branch '{payload['branch']}' was deleted and created anew since")
        if payload["filter"] != bound["filter"]:
            raise rejected("other_filter", "it belongs to other filters")
        return payload

    def _bound(self) -> dict[str, Any]:
        return {
            "branch": self.state.branch,
            "incarnation": self.state.incarnation,
            "filter": self.wanted.fingerprint(),
        }


def track_of(context: CommitContext, identities: tuple[str, ...], branch: str, wanted: Filter) -> Track:
    """The track of a branch as of now."""
    return Track(context.manifest, identities, context.manifest.load(branch), wanted)
