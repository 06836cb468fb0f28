"""Permissions at the HTTP boundary. The dispatcher checks them when it knows the actor, the graph and the request, before
any work.
A graph with a policy is checked by the policy (`omnigraph.policy.decide.Policy`). A graph without one is checked by the
server's
rule: `Open` (no tokens), `DefaultDeny` (a token may read only) or `Full` (a token may do everything).
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
    """Tokens without a policy: a token may read only."""

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
    """Denies all changes; for everything else the rule `behind` decides."""

    behind: Access

    def check(self, actor: str | None, need: Need) -> None:
        if need.action not in READING:
            raise Denied(f"{need.words} is not possible: this server is read-only", action=need.action, actor=actor)
        self.behind.check(actor, need)


def access_of(rights: Rights, policy: Guard | None, *, read_only: bool) -> Access:
    """The rule of a graph or of the server as a whole; `policy` is its policy, or None."""
    rules: dict[Rights, Access] = {"open": Open(), "default-deny": DefaultDeny(), "full": Full()}
    rule = rules[rights] if policy is None else policy
    return ReadOnly(rule) if read_only else rule
