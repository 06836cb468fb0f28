"""Test cases for policies: a question and the expected decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import BadRequest
from omnigraph.policy.actions import ACTIONS, Need
from omnigraph.policy.decide import Decision
from omnigraph.policy.strict_yaml import mapping_of, read_yaml

_FIELDS = ("id", "actor", "action", "branch", "target_branch", "expect")


@dataclass(frozen=True)
class Case:
    """One question and its expected answer."""

    id: str
    actor: str
    need: Need
    expect: Literal["allow", "deny"]


def read_cases(text: str) -> tuple[Case, ...]:
    """Read a file of cases; raises BadRequest when it is wrong."""
    given = mapping_of(read_yaml(text), "policy tests", ("version", "cases"))
    version = given.get("version")
    if version != 1 or not isinstance(version, int) or isinstance(version, bool):
        raise BadRequest("policy tests version must be 1")
    listed = given.get("cases")
    if not isinstance(listed, list):
        raise BadRequest("policy tests: cases must be a list")
    cases: dict[str, Case] = {}
    for item in listed:
        case = _case(item)
        if case.id in cases:
            raise BadRequest(f"duplicate policy test case id '{case.id}'")
        cases[case.id] = case
    return tuple(cases.values())


def _case(item: object) -> Case:
    given = mapping_of(item, "policy test case", _FIELDS)
    case_id = given.get("id")
    if not isinstance(case_id, str) or not case_id.strip():
        raise BadRequest("policy test case ids must not be blank")
    actor = given.get("actor")
    if not isinstance(actor, str) or not actor.strip():
        raise BadRequest(f"policy test case '{case_id}' must name a non-blank actor")
    action, expect = given.get("action"), given.get("expect")
    if not isinstance(action, str):
        raise BadRequest(f"policy test case '{case_id}' must name an action")
    if expect not in ("allow", "deny"):
        raise BadRequest(f"policy test case '{case_id}': expect is allow or deny, not {expect!r}")
    branch, target = given.get("branch"), given.get("target_branch")
    for name, value in (("branch", branch), ("target_branch", target)):
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"policy test case '{case_id}': {name} must be a text")
    return Case(case_id, actor, Need(read_action(action), branch, target), expect)


def read_action(text: str) -> str:
    """An action from its text, `branch_merge` or `branch-merge`."""
    action = text.replace("-", "_")
    if action not in ACTIONS:
        raise BadRequest(f"unknown action '{text}'; the actions are {', '.join(sorted(ACTIONS))}")
    return action


def failures(cases: Sequence[Case], decide: Callable[[str, Need], Decision]) -> list[str]:
    """One line for each case whose decision differs from the expected one."""
    told = []
    for case in cases:
        decision = decide(case.actor, case.need)
        got = "allow" if decision.allowed else "deny"
        if got != case.expect:
            told.append(f"{case.id}: expected {case.expect.title()} but got {got.title()} ({decision.message})")
    return told
