"""Who may do what. The dispatcher asks here after it knows the actor, the graph and the request, and before any work.

Without a policy there are three ways: `Open` (no tokens), `DefaultDeny` (tokens read only) and `Full` (a token may do
everything). A policy is one more class with the same method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from omnigraph.errors import Denied
from omnigraph.server.settings import Rights

READ, EXPORT, CHANGE = "read", "export", "change"
SCHEMA_APPLY, BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE = (
    "schema_apply",
    "branch_create",
    "branch_delete",
    "branch_merge",
)
INVOKE_QUERY, ADMIN, GRAPH_LIST = "invoke_query", "admin", "graph_list"

#: What a server that only reads still does.
READING = frozenset({READ, EXPORT, INVOKE_QUERY, GRAPH_LIST})


@dataclass(frozen=True)
class Need:
    """One permission that a request needs: the action, the branch it is checked on, and the branch it is aimed at."""

    action: str
    branch: str | None = None
    target: str | None = None

    @property
    def words(self) -> str:
        """The need as denials name it."""
        on = "" if self.branch is None else f" on branch '{self.branch}'"
        aim = "" if self.target is None else f" targeting branch '{self.target}'"
        return f"action '{self.action}'{on}{aim}"


class Access(Protocol):
    """Decides about needs; `actor` is None where there are no tokens."""

    def check(self, actor: str | None, need: Need) -> None:
        """Return when the actor may do it; raise `Denied` otherwise."""


@dataclass(frozen=True)
class Open:
    """No tokens: everything is allowed, except to list the graphs, which needs a policy."""

    def check(self, actor: str | None, need: Need) -> None:
        if need.action == GRAPH_LIST:
            raise Denied(
                "policy denied action 'graph_list': it needs a policy that grants it", action=GRAPH_LIST, actor=actor
            )


@dataclass(frozen=True)
class DefaultDeny:
    """Tokens and no policy: whoever has a token may read."""

    def check(self, actor: str | None, need: Need) -> None:
        if need.action != READ:
            raise Denied(
                f"policy denied {need.words} for actor '{actor}': this server has no policy, so default-deny allows "
                "`read` only",
                action=need.action,
                actor=actor,
            )


@dataclass(frozen=True)
class Full:
    """Every token may do everything: the server of one machine."""

    def check(self, actor: str | None, need: Need) -> None:
        return None


@dataclass(frozen=True)
class ReadOnly:
    """Nothing is changed, whoever asks; for the rest another rule decides."""

    behind: Access

    def check(self, actor: str | None, need: Need) -> None:
        if need.action not in READING:
            raise Denied(f"{need.words} is not possible: this server is read-only", action=need.action, actor=actor)
        self.behind.check(actor, need)


def access_of(rights: Rights, *, read_only: bool) -> Access:
    """The rule of a server without a policy."""
    rules: dict[Rights, Access] = {"open": Open(), "default-deny": DefaultDeny(), "full": Full()}
    return ReadOnly(rules[rights]) if read_only else rules[rights]
