"""Decisions: a bundle is compiled once to Cedar policies and entities, which decide whether an actor has a permission.

A question to Cedar depends only on the actor, the action, and whether the branches exist and are protected. There are few
different questions, so each decision is cached as long as the policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import Denied
from omnigraph.policy.actions import SERVER_ACTIONS, Need
from omnigraph.policy.bundle import BranchScope, Bundle, Rule

#: The type and id of the resource of server-scoped actions.
_SERVER = {"type": "Server", "id": "root"}


@dataclass(frozen=True)
class Decision:
    """Whether a need is allowed; `rule` is the smallest id of the rules that allow it, None for a denial."""

    allowed: bool
    message: str
    rule: str | None = None


class Policy:
    """The compiled form of a bundle for one graph, or for the server (`graph_id` None). It may be used from many threads."""

    def __init__(self, bundle: Bundle, graph_id: str | None) -> None:
        from cedarpy import Entities, PolicySet

        self.bundle = bundle
        self._actors = bundle.actors
        self._resource = _SERVER if graph_id is None else {"type": "Graph", "id": graph_id}
        self._rule_of = {policy_id(rule, action): rule.id for rule in bundle.rules for action in rule.actions}
        self._policies = PolicySet.from_json_str(json.dumps(_cedar_policies(bundle, self._resource)))
        self._entities = Entities.from_json_str(json.dumps(list(_cedar_entities(bundle))))
        self._known: dict[tuple[str, str, bool | None, bool | None], str | None] = {}

    def decide(self, actor: str | None, need: Need) -> Decision:
        """The decision about one need, with its text for callers."""
        if actor is None or actor not in self._actors:
            who = "a caller without an actor" if actor is None else f"unknown actor '{actor}'"
            return Decision(False, f"policy denied action '{need.action}' for {who}")
        rule = self._allowing_rule(actor, need)
        if rule is None:
            return Decision(False, f"policy denied {need.words} for actor '{actor}'")
        return Decision(True, f"policy allowed action '{need.action}' for actor '{actor}'", rule)

    def check(self, actor: str | None, need: Need) -> None:
        """Raise `Denied` unless the actor has the permission."""
        decision = self.decide(actor, need)
        if not decision.allowed:
            raise Denied(decision.message, action=need.action, actor=actor)

    def _allowing_rule(self, actor: str, need: Need) -> str | None:
        """The smallest id of the rules that allow a need; None when no rule does."""
        question = (actor, need.action, self._is_protected(need.branch), self._is_protected(need.target))
        if question not in self._known:
            self._known[question] = self._asked(*question)
        return self._known[question]

    def _is_protected(self, branch: str | None) -> bool | None:
        """Whether a branch is protected; None when there is no branch."""
        return None if branch is None else branch in self.bundle.protected_branches

    def _asked(self, actor: str, action: str, branch: bool | None, target: bool | None) -> str | None:
        """Cedar's decision; each flag: whether the branch is protected, None when the need has no such branch."""
        from cedarpy import is_authorized

        request = {
            "principal": {"type": "Actor", "id": actor},
            "action": {"type": "Action", "id": action},
            "resource": _SERVER if action in SERVER_ACTIONS else self._resource,
            "context": {
                "has_branch": branch is not None,
                "branch_is_protected": bool(branch),
                "has_target_branch": target is not None,
                "target_branch_is_protected": bool(target),
            },
        }
        answer = is_authorized(request, self._policies, self._entities)
        matching = [self._rule_of[reason] for reason in answer.diagnostics.reasons]
        return min(matching) if answer.allowed else None


def policy_id(rule: Rule, action: str) -> str:
    """The id of the Cedar policy of one action of a rule."""
    return f"{rule.id}:{action}"


def _cedar_policies(bundle: Bundle, resource: dict[str, str]) -> dict[str, Any]:
    """A policy set in Cedar's JSON form, in which no name has to be escaped: one permit per rule and action."""
    permits = {}
    for rule in bundle.rules:
        for action in rule.actions:
            permits[policy_id(rule, action)] = {
                "effect": "permit",
                "principal": {"op": "in", "entity": {"type": "Group", "id": rule.group}},
                "action": {"op": "==", "entity": {"type": "Action", "id": action}},
                "resource": {"op": "==", "entity": _SERVER if action in SERVER_ACTIONS else resource},
                "conditions": [
                    *_condition("branch", rule.branch_scope),
                    *_condition("target_branch", rule.target_branch_scope),
                ],
            }
    return {"staticPolicies": permits, "templates": {}, "templateLinks": []}


def _condition(what: str, scope: BranchScope | None) -> list[dict[str, Any]]:
    """The `when` condition of a scope; `any` and no scope have none, the other scopes require a branch."""
    if scope is None or scope == "any":
        return []
    is_protected: dict[str, Any] = _of_context(f"{what}_is_protected")
    wanted = is_protected if scope == "protected" else {"!": {"arg": is_protected}}
    return [{"kind": "when", "body": {"&&": {"left": _of_context(f"has_{what}"), "right": wanted}}}]


def _of_context(attribute: str) -> dict[str, Any]:
    return {".": {"left": {"Var": "context"}, "attr": attribute}}


def _cedar_entities(bundle: Bundle) -> Iterator[dict[str, Any]]:
    groups_of: dict[str, list[str]] = {actor: [] for actor in sorted(bundle.actors)}
    for group, members in bundle.groups.items():
        yield {"uid": {"type": "Group", "id": group}, "attrs": {}, "parents": []}
        for actor in dict.fromkeys(members):
            groups_of[actor].append(group)
    for actor, groups in groups_of.items():
        parents = [{"type": "Group", "id": group} for group in groups]
        yield {"uid": {"type": "Actor", "id": actor}, "attrs": {}, "parents": parents}
