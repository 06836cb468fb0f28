"""The base of handles of a served graph, blocking or awaited: its state, and the encoding of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from omnigraph.changes.filter import Names
from omnigraph.client.requests import Answer, Ask, Request, in_header, keyed, post, put
from omnigraph.client.transport import Server
from omnigraph.client.values import RemoteSnapshot
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import BadRequest
from omnigraph.shown import Shown
from omnigraph.wire.failures import LIBRARY

#: The path suffix of conditional writes. A server without this route refuses them and never treats them as plain writes.
CONDITIONAL = "/if-graph-commit"

Reference = RemoteSnapshot | str | int | datetime | None
Target = Commit | RemoteSnapshot | str | int | datetime | None


class Handle(Shown):
    """A handle of a served graph, bound to a branch."""

    mode = "rw"

    def __init__(self, server: Server, branch: str = MAIN, since: str | None = None) -> None:
        self._server = server
        self.branch = branch
        #: For a handle made by `retrying`: the head at the call.
        self._since = since

    @property
    def uri(self) -> str:
        """The URL of the graph."""
        return self._server.graph_url

    @property
    def actor(self) -> str | None:
        """Who writes. The server takes it from the token and tells it with each write; None before the first."""
        return self._server.actor

    @property
    def is_closed(self) -> bool:
        """Whether the connections are closed."""
        return self._server.is_closed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, branch={self.branch!r})"

    # --- what is meant ----------------------------------------------------------------------------------------------

    def _named(self, branch: str | None) -> str:
        return self.branch if branch is None else branch

    def _place(self, branch: str | None, snapshot: Reference) -> dict[str, str]:
        if branch is not None and snapshot is not None:
            raise BadRequest("branch and snapshot exclude each other: a snapshot says itself what is read; give one")
        return {"branch": self._named(branch)} if snapshot is None else {"snapshot": self._reference(snapshot)}

    def _reference(self, snapshot: RemoteSnapshot | str | int | datetime) -> str:
        """A snapshot reference for the server; a manifest version, a time or `~3` alone refers to this handle's branch."""
        if isinstance(snapshot, RemoteSnapshot):
            return snapshot.id
        if isinstance(snapshot, datetime):
            return f"{self.branch}@{{{snapshot.isoformat()}}}"
        text = str(snapshot)
        if text.isdecimal():
            return f"manifest:{self.branch}:v{text}"
        return f"{self.branch}{text}" if text.startswith(("~", "@{")) else text

    def _target(self, target: Target) -> str | None:
        if target is None:
            return None
        return target.id if isinstance(target, Commit) else self._reference(target)

    # --- writing ----------------------------------------------------------------------------------------------------

    def _written(
        self,
        path: str,
        body: Any,
        idempotency_key: str | None = None,
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
    ) -> Ask[Any]:
        """The JSON of the answer to a write, sent with an idempotency key, so that it may be repeated."""
        answer = yield post(path, body, keyed(idempotency_key, headers), params=params or {})
        return self._told(answer)

    def _put(self, path: str, body: Any, idempotency_key: str | None) -> Ask[Any]:
        """The JSON of the answer to a PUT request."""
        return self._told((yield put(path, body, keyed(idempotency_key))))

    def _deleted(self, path: str, idempotency_key: str | None) -> Ask[None]:
        self._told((yield Request("DELETE", path, headers=keyed(idempotency_key))))

    def _told(self, answer: Answer) -> Any:
        """The JSON of the answer to a write; its actor is remembered."""
        told = answer.json
        self._server.actor = told.get("actor_id", self._server.actor)
        return told

    def _changed(self, path: str, body: Any, key: str | None, if_commit: str | None, branch: str) -> Ask[Any]:
        """The answer to a mutation, which may be bound to the head of the branch: the library's form of it."""
        required = self._required(if_commit, branch)
        if required is not None:
            path += CONDITIONAL
        condition = None if required is None else condition_of(required)
        told = yield from self._written(path, body, key, condition)
        return told[LIBRARY]

    def _required(self, if_commit: str | None, branch: str) -> str | None:
        """The commit that has to be the head of a branch that is written; None when any may be."""
        if if_commit is not None:
            return if_commit
        return self._since if branch == self.branch else None


def condition_of(if_commit: str) -> dict[str, str]:
    """The header that binds a write to the head of a branch."""
    return {"Omnigraph-If-Graph-Commit": in_header("a commit id", if_commit)}


def words(given: Names) -> list[str] | None:
    """One name or several, as a list."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        raise BadRequest(f"{given!r} is no name; give one word or a list of them")
    return [given] if isinstance(given, str) else list(given)


def refuse_actor(actor: str | None) -> None:
    """The actor of a served write is the one of the token."""
    if actor is not None:
        raise BadRequest("`actor` is not allowed on a served write: the server takes it from the token")


def storage_only(verb: str, **given: tuple[object, object]) -> None:
    """Raise BadRequest for arguments that a server does not support; each is a pair (given value, default)."""
    for name, (value, usual) in given.items():
        if value != usual:
            raise BadRequest(
                f"`{name}` of a {verb} is the server's to decide; leave it out, or work on the storage (og.open, --store)"
            )
