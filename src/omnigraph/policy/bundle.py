"""A policy file as data: its groups, protected branches and rules, checked when it is read.

The messages are part of the contract of `policy validate`, so their texts do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from omnigraph.errors import BadRequest
from omnigraph.policy.actions import ACTIONS, BRANCH_SCOPED, SERVER_ACTIONS, TARGET_SCOPED
from omnigraph.policy.strict_yaml import mapping_of, read_yaml

BranchScope = Literal["any", "protected", "unprotected"]
#: The kind of a bundle's binding: to graphs, or to the cluster as a whole.
BundleKind = Literal["graph", "cluster"]

_SCOPES: tuple[str, ...] = get_args(BranchScope)


@dataclass(frozen=True)
class Rule:
    """Allows the members of one group some actions, on branches within a scope. None: no scope is stated."""

    id: str
    group: str
    actions: tuple[str, ...]
    branch_scope: BranchScope | None = None
    target_branch_scope: BranchScope | None = None


@dataclass(frozen=True)
class Bundle:
    """One policy file. Everything that no rule allows is denied."""

    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]

    @property
    def actors(self) -> frozenset[str]:
        """The members of all groups."""
        return frozenset(actor for members in self.groups.values() for actor in members)


def read_bundle(text: str, kind: BundleKind | None = None) -> Bundle:
    """Read a policy file; raises BadRequest when it is wrong. `kind`: the kind of its binding, when it is known."""
    given = mapping_of(read_yaml(text), "policy", ("version", "groups", "protected_branches", "rules"))
    version = given.get("version")
    if version != 1 or not isinstance(version, int) or isinstance(version, bool):
        raise BadRequest("policy version must be 1")
    groups = _groups(given.get("groups"))
    protected = _texts(given.get("protected_branches", []), "policy protected_branches")
    if any(not name.strip() for name in protected):
        raise BadRequest("protected branch names must not be blank")
    rules = _rules(given.get("rules"), groups)
    if kind is not None:
        refuse_other_kind(rules, kind)
    return Bundle(groups, frozenset(protected), rules)


def refuse_other_kind(rules: Iterable[Rule], kind: BundleKind) -> None:
    """Raise an error for server actions in a bundle of a graph, and for other actions in a bundle of the cluster."""
    for rule in rules:
        for action in rule.actions:
            if kind == "graph" and action in SERVER_ACTIONS:
                raise BadRequest(
                    f"policy rule '{rule.id}' uses server-scoped action '{action}' in a policy that applies to a graph; "
                    "move it to a policy that applies to `cluster`"
                )
            if kind == "cluster" and action not in SERVER_ACTIONS:
                raise BadRequest(
                    f"policy rule '{rule.id}' uses graph-scoped action '{action}' in a policy that applies to the "
                    "cluster; move it to a policy that applies to a graph"
                )


def _groups(given: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, dict):
        raise BadRequest("policy groups must map names to lists of actor ids")
    found = {}
    for name, members in given.items():
        if not isinstance(name, str) or not name.strip():
            raise BadRequest("policy group names must not be blank")
        actors = _texts(members, f"policy group '{name}'")
        if not actors:
            raise BadRequest(f"policy group '{name}' must not be empty")
        if any(not actor.strip() for actor in actors):
            raise BadRequest(f"policy group '{name}' contains a blank actor id")
        found[name] = tuple(actors)
    return found


def _texts(given: object, what: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise BadRequest(f"{what} must be a list of texts")
    return given


def _rules(given: object, groups: Mapping[str, object]) -> tuple[Rule, ...]:
    if not isinstance(given, list):
        raise BadRequest("policy rules must be a list")
    seen: set[str] = set()
    rules = []
    for item in given:
        rule = _rule(item, groups)
        if rule.id in seen:
            raise BadRequest(f"duplicate policy rule id '{rule.id}'")
        seen.add(rule.id)
        rules.append(rule)
    return tuple(rules)


def _rule(given: object, groups: Mapping[str, object]) -> Rule:
    outer = mapping_of(given, "policy rule", ("id", "allow"))
    rule_id = outer.get("id")
    if not isinstance(rule_id, str) or not rule_id.strip():
        raise BadRequest("policy rule ids must not be blank")
    called = f"policy rule '{rule_id}'"
    allow = mapping_of(outer.get("allow"), called, ("actors", "actions", "branch_scope", "target_branch_scope"))
    actions = _texts(allow.get("actions", []), f"{called}: actions")
    if not actions:
        raise BadRequest(f"{called} must include at least one action")
    for action in actions:
        if action not in ACTIONS:
            raise BadRequest(f"{called} uses unknown action '{action}'; the actions are {', '.join(sorted(ACTIONS))}")
    group = mapping_of(allow.get("actors"), f"{called}: actors", ("group",)).get("group")
    if not isinstance(group, str) or not group.strip():
        raise BadRequest(f"{called} must reference a non-blank group")
    if group not in groups:
        raise BadRequest(f"{called} references unknown group '{group}'")
    of_server = next((action for action in actions if action in SERVER_ACTIONS), None)
    if of_server is not None and set(actions) - SERVER_ACTIONS:
        raise BadRequest(
            f"{called} mixes the server-scoped action '{of_server}' with graph-scoped actions; split into separate rules"
        )
    scopes = _scopes(called, allow, actions)
    return Rule(rule_id, group, tuple(dict.fromkeys(actions)), *scopes)


def _scopes(called: str, allow: Mapping[str, Any], actions: list[str]) -> tuple[BranchScope | None, BranchScope | None]:
    """`branch_scope` and `target_branch_scope` of a rule; at most one may be given, and all actions must support it."""
    branch, target = (_scope(called, field, allow.get(field)) for field in ("branch_scope", "target_branch_scope"))
    if branch is not None and target is not None:
        raise BadRequest(f"{called} may specify branch_scope or target_branch_scope, not both")
    for field, scope, takes_it in (
        ("branch_scope", branch, BRANCH_SCOPED),
        ("target_branch_scope", target, TARGET_SCOPED),
    ):
        for action in actions:
            if scope is not None and action not in takes_it:
                raise BadRequest(f"{called} uses {field} with unsupported action '{action}'")
    return branch, target


def _scope(called: str, field: str, given: object) -> BranchScope | None:
    if given is not None and given not in _SCOPES:
        raise BadRequest(f"{called}: {field} is one of {', '.join(_SCOPES)}, not {given!r}")
    return cast("BranchScope | None", given)
