"""The commits that a branch tells one after the other, and the cursors that say how far somebody has come."""

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
    """A branch as it was when it was asked, and what is wanted of it. Its cursors are bound to both."""

    manifest: Manifest
    #: Of the graph: its own first, then those it had before it was moved or copied.
    identities: tuple[str, ...]
    state: ManifestState
    wanted: Filter

    @property
    def head(self) -> str:
        """The newest commit."""
        return self.state.head

    def is_newest(self, commit: str) -> bool:
        """Whether a commit is the newest of the branch by now."""
        return self.manifest.load(self.state.branch).head == commit

    # --- where to begin ---------------------------------------------------------------------------------------------

    def start(self, start: str | None) -> str | None:
        """The last commit that is not told when a feed starts; None: none, all are."""
        # Where a filter is used for the first time, a type that is not there is a mistake.
        self.wanted.refuse_unknown_types(self.state)
        if start is None or start == NOW:
            return self.head
        if start == BEGINNING:
            return None
        if isinstance(start, str) and start.startswith(AFTER):
            return start.removeprefix(AFTER)
        raise BadRequest(f"'{start}' is no start of a feed: give `{NOW}`, `{BEGINNING}` or `{AFTER}<commit id>`")

    def cursor(self, seen: str | None) -> str:
        """The cursor of somebody who has seen all up to a commit."""
        return self.seal({"for": CURSOR, "seen": seen})

    def seen(self, cursor: str) -> str | None:
        """The last commit that the holder of a cursor has seen."""
        seen: str | None = self.unseal(cursor, CURSOR)["seen"]
        return seen

    # --- commits ----------------------------------------------------------------------------------------------------

    def between(self, seen: str | None, until: str) -> list[Commit]:
        """The commits of this branch behind one and up to another, oldest first, along first parents."""
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
        """The commits that came to this branch behind one that it has; its cost follows how many they are."""
        branch = self.state.branch
        if seen is None:
            return self.manifest.commits(branch)
        commit = self.manifest.find_commit(branch, seen)
        if commit is None:
            raise self._not_here(seen)
        # The other commits of its group have the same manifest version.
        return self.manifest.commits(branch, newer_than=commit.manifest_version - (commit.group is not None))

    def _not_here(self, commit: str) -> ChangeCursorRejected:
        return rejected("unknown_commit", f"commit {commit} is not in the history that '{self.state.branch}' tells")

    # --- tokens -----------------------------------------------------------------------------------------------------

    def seal(self, payload: dict[str, Any]) -> str:
        """A token that is bound to this branch and filter."""
        return seal(self.identities[0], payload | self._bound())

    def unseal(self, token: str, purpose: str) -> dict[str, Any]:
        """What a token of this branch and filter says."""
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
    """What a branch tells as of now."""
    return Track(context.manifest, identities, context.manifest.load(branch), wanted)
