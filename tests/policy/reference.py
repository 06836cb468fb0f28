"""An independent reading of the decision table: plain loops over the YAML of a bundle, no Cedar and nothing of the project."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

SERVER_ACTIONS = ("graph_list", "cluster_plan", "cluster_apply")


@cache
def _read(bundle_text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(bundle_text)
    return found


def may(bundle_text: str, actor: str | None, action: str, branch: str | None, target: str | None) -> str | None:
    """The id of the rule that allows it, the smallest of several; None when it is denied."""
    bundle = _read(bundle_text)
    protected = bundle.get("protected_branches") or []
    found = []
    for rule in bundle["rules"]:
        allow = rule["allow"]
        if action not in allow["actions"] or actor not in bundle["groups"][allow["actors"]["group"]]:
            continue
        fits = True
        for key, place in (("branch_scope", branch), ("target_branch_scope", target)):
            scope = allow.get(key, "any")
            if scope == "protected" and (place is None or place not in protected):
                fits = False
            if scope == "unprotected" and (place is None or place in protected):
                fits = False
        if fits:
            found.append(rule["id"])
    return min(found) if found else None


def may_at_boundary(
    mode: str, bundle_text: str | None, actor: str | None, action: str, branch: str | None, target: str | None
) -> bool:
    """What a server allows. `mode`: whether it has tokens ("tokens"), none ("open") or is one person's ("full")."""
    if bundle_text is not None:
        return may(bundle_text, actor, action, branch, target) is not None
    if mode == "open":
        return action not in SERVER_ACTIONS
    if mode == "tokens":
        return action == "read"
    return True
