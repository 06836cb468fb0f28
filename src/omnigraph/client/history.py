"""The base of a served graph's handle, and its verbs about what was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from omnigraph.changes.commits import CommitChanges
from omnigraph.changes.feed import FeedPage
from omnigraph.changes.filter import Names
from omnigraph.changes.model import Change, Changes, ChangeSet
from omnigraph.client.transport import Transport
from omnigraph.client.values import RemoteBaseline, RemoteSnapshot, captured_baseline, snapshot_from
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import BadRequest
from omnigraph.ids import new_ulid
from omnigraph.wire import results
from omnigraph.wire.failures import LIBRARY

Reference = RemoteSnapshot | str | int | None


class RemoteHistory:
    """A handle of a served graph with the verbs about what was: commits, snapshots, differences, changes, tags."""

    mode = "rw"
    #: The server says who writes, from the token.
    actor = None

    def __init__(self, transport: Transport, branch: str = MAIN) -> None:
        self._transport = transport
        self.branch = branch
        self.is_closed = False

    @property
    def uri(self) -> str:
        """The URL of the graph."""
        return self._transport.address("")

    # --- references -------------------------------------------------------------------------------------------------

    def _named(self, branch: str | None) -> str:
        return self.branch if branch is None else branch

    def _place(self, branch: str | None, snapshot: Reference) -> dict[str, str]:
        if branch is not None and snapshot is not None:
            raise BadRequest("branch and snapshot exclude each other: a snapshot says itself what is read; give one")
        return {"branch": self._named(branch)} if snapshot is None else {"snapshot": self._reference(snapshot)}

    def _reference(self, snapshot: RemoteSnapshot | str | int) -> str:
        """A snapshot as the server understands it; a manifest version is one of this handle's branch."""
        if isinstance(snapshot, RemoteSnapshot):
            return snapshot.id
        text = str(snapshot)
        return f"manifest:{self.branch}:v{text}" if text.isdecimal() else text

    def _target(self, target: Commit | Reference) -> str | None:
        if target is None:
            return None
        return target.id if isinstance(target, Commit) else self._reference(target)

    # --- history ----------------------------------------------------------------------------------------------------

    def commits(self, branch: str | None = None) -> list[Commit]:
        """The history reachable from a branch's head, newest first."""
        told = self._transport.get("/commits", {"branch": self._named(branch)})
        return [results.commit_of(found) for found in told[LIBRARY]]

    def commit(self, commit_id: str) -> Commit:
        """A commit by its id, wherever it was made."""
        return results.commit_of(self._transport.get(f"/commits/{segment(commit_id)}")[LIBRARY])

    def head(self, branch: str | None = None) -> Commit:
        """The newest commit of a branch; a fresh branch has its fork point."""
        told = self._transport.get("/commits", {"branch": self._named(branch), "limit": 1})
        return results.commit_of(told[LIBRARY][0])

    def snapshot(self, branch: str | None = None, at: Reference = None) -> RemoteSnapshot:
        """The graph now, or at a commit id, tag, manifest version or snapshot id."""
        if isinstance(at, RemoteSnapshot):
            return at
        asked = {"branch": self._named(branch)} if at is None else {"snapshot": self._reference(at)}
        return snapshot_from(self._transport.get("/snapshot", asked)[LIBRARY])

    def diff(
        self,
        before: Commit | Reference,
        after: Commit | Reference = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> ChangeSet:
        """What changed from one read target to another, this handle's branch unless given."""
        body = {
            "before": self._target(before),
            "after": self._target(after) or self.branch,
            "kinds": words(kinds),
            "types": words(types),
            "ops": words(ops),
        }
        told = self._transport.post("/diff", body, safe=True)
        return ChangeSet([results.change_of(change) for change in told["changes"]])

    def commit_changes(
        self,
        commit_id: str,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> CommitChanges:
        """What one commit did against its first parent: all of it, or with `limit` or `page_token` a page."""
        wanted = {"kind": words(kinds), "type": words(types), "op": words(ops)}

        def page(token: str | None) -> CommitChanges:
            asked = wanted | {"limit": limit, "page_token": token}
            told = self._transport.get(f"/commits/{segment(commit_id)}/changes", asked)
            return results.commit_changes_of(told, told[LIBRARY]["commit"])

        first = page(page_token)
        if limit is not None or page_token is not None:
            return first

        def stream() -> Iterator[Change]:
            shown: CommitChanges = first
            yield from shown.changes
            while shown.next_page_token is not None:
                shown = page(shown.next_page_token)
                yield from shown.changes

        return CommitChanges(Changes(stream), first.commit)

    def changes(
        self,
        branch: str | None = None,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        max_commits: int | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> FeedPage:
        """The next page of a branch's change feed; see `Graph.changes`."""
        asked = {
            "branch": self._named(branch),
            "cursor": cursor,
            "start": start,
            "page_token": page_token,
            "limit": limit,
            "max_commits": max_commits,
            "kind": words(kinds),
            "type": words(types),
            "op": words(ops),
        }
        told = self._transport.get("/changes", asked)
        return results.feed_page_of(told, told[LIBRARY])

    def baseline(
        self,
        branch: str | None = None,
        out: Any = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> RemoteBaseline:
        """All that a branch holds now, written to `out` as export lines, and the cursor of the changes behind it."""
        body = {
            "branch": self._named(branch),
            "kind": words(kinds),
            "type": words(types),
            "op": words(ops),
        }
        with self._transport.stream("/changes/baseline", body) as pieces:
            entities, told = captured_baseline(pieces, out)
        snapshot = self.snapshot(at=told["snapshot_commit_id"])
        return RemoteBaseline(snapshot, told["snapshot_commit_id"], told["resume_cursor"], entities)

    # --- tags -------------------------------------------------------------------------------------------------------

    def tags(self) -> dict[str, str]:
        """The ids of the tagged commits by tag name, in name order."""
        found: dict[str, str] = self._transport.get("/tags")["tags"]
        return found

    def tag(self, name: str, commit: Commit | Reference = None, *, actor: str | None = None) -> str:
        """Name a commit, the head of this handle's branch unless given; returns its id."""
        refuse_actor(actor)
        target = self._target(commit) or self.branch
        told = self._transport.post("/tags", {"name": name, "commit": target}, safe=True, headers=new_key())
        return str(told["graph_commit_id"])

    def delete_tag(self, name: str, *, actor: str | None = None) -> None:
        """Forget a tag; the commit stays."""
        refuse_actor(actor)
        self._transport.request("DELETE", f"/tags/{segment(name)}", headers=new_key(), safe=True)


def new_key() -> dict[str, str]:
    """A header that makes a repeat of a write harmless."""
    return {"Idempotency-Key": new_ulid()}


def segment(text: str) -> str:
    return quote(text, safe="")


def words(given: Names) -> list[str] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str) else list(given)


def refuse_actor(actor: str | None) -> None:
    if actor is not None:
        raise BadRequest("`actor` is not allowed on a served write: the server takes it from the token")
