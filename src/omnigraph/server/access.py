"""Who may do what at the HTTP boundary. The dispatcher asks here after it knows the actor, the graph and the request, and
before any work.

A graph with a policy asks that (`omnigraph.policy.decide.Policy`). One without asks the server's rule: `Open` (no tokens),
`DefaultDeny` (tokens read only) or `Full` (a token may do everything).
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import Denied
from omnigraph.policy.actions import (
    ADMIN,
    BRANCH_CREATE,
    BRANCH_DELETE,
    BRANCH_MERGE,
    CHANGE,
    CLUSTER_APPLY,
    CLUSTER_PLAN,
    EXPORT,
    GRAPH_LIST,
    INVOKE_QUERY,
    READ,
    READING,
    SCHEMA_APPLY,
    SERVER_ACTIONS,
    Guard,
    Need,
)
from omnigraph.server.settings import Rights

__all__ = [
    "ADMIN",
    "BRANCH_CREATE",
    "BRANCH_DELETE",
    "BRANCH_MERGE",
    "CHANGE",
    "CLUSTER_APPLY",
    "CLUSTER_PLAN",
    "EXPORT",
    "GRAPH_LIST",
    "INVOKE_QUERY",
    "READ",
    "SCHEMA_APPLY",
    "Access",
    "DefaultDeny",
    "Full",
    "Need",
    "Open",
    "ReadOnly",
    "access_of",
]

Access = Guard


@dataclass(frozen=True)
class Open:
    """No tokens: everything is allowed, except what concerns the server as a whole, which needs a policy."""

    def check(self, actor: str | None, need: Need) -> None:
        if need.action in SERVER_ACTIONS:
            raise Denied(
                f"policy denied action '{need.action}': it needs a policy that grants it",
                action=need.action,
                actor=actor,
            )


@dataclass(frozen=True)
class DefaultDeny:
    """Tokens and no policy: whoever has a token may read."""

    def check(self, actor: str | None, need: Need) -> None:
        if need.action != READ:
            raise Denied(
                f"policy denied {need.words} for actor '{actor}': there is no policy here, so default-deny allows "
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


def access_of(rights: Rights, policy: Guard | None, *, read_only: bool) -> Access:
    """Who may do what with a graph, or with the server as a whole; `policy` is its own one, None when it has none."""
    rules: dict[Rights, Access] = {"open": Open(), "default-deny": DefaultDeny(), "full": Full()}
    rule = rules[rights] if policy is None else policy
    return ReadOnly(rule) if read_only else rule
