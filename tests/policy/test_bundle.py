"""Reading policy files and case files: every refusal with its text."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest
from omnigraph.policy.actions import Need
from omnigraph.policy.bundle import BundleKind, read_bundle
from omnigraph.policy.cases import failures, read_cases
from omnigraph.policy.decide import Policy
from tests.policy.bundles import TEAM

RULE = "{ id: r, allow: { actors: { group: g }, actions: [read] } }"


def policy(rules: str = RULE, groups: str = "{ g: [a] }", more: str = "", version: str = "1") -> str:
    return f"version: {version}\ngroups: {groups}\n{more}\nrules: [{rules}]\n"


def rule(actions: str = "[read]", group: str = "g", more: str = "", rule_id: str = "r") -> str:
    return f"{{ id: {rule_id}, allow: {{ actors: {{ group: {group} }}, actions: {actions}{more} }} }}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (policy(version="2"), "policy version must be 1"),
        (policy(version="true"), "policy version must be 1"),
        (policy(version="1.0"), "policy version must be 1"),
        ("groups: { g: [a] }\nrules: []", "policy version must be 1"),
        (policy(f"{RULE}, {RULE}"), "duplicate policy rule id 'r'"),
        (policy(rule(rule_id="' '")), "policy rule ids must not be blank"),
        (policy(groups="{ g: [] }"), "policy group 'g' must not be empty"),
        (policy(groups="{ g: [a, ' '] }"), "policy group 'g' contains a blank actor id"),
        (policy(groups="{ ' ': [a] }"), "policy group names must not be blank"),
        (policy(more="protected_branches: ['']"), "protected branch names must not be blank"),
        (policy(rule("[]")), "policy rule 'r' must include at least one action"),
        (policy(rule(group="''")), "policy rule 'r' must reference a non-blank group"),
        (policy(rule(group="h")), "policy rule 'r' references unknown group 'h'"),
        (
            policy(rule(more=", branch_scope: any, target_branch_scope: any")),
            "policy rule 'r' may specify branch_scope or target_branch_scope, not both",
        ),
        (
            policy(rule("[read, branch_create]", more=", branch_scope: any")),
            "policy rule 'r' uses branch_scope with unsupported action 'branch_create'",
        ),
        (
            policy(rule("[schema_apply, read]", more=", target_branch_scope: any")),
            "policy rule 'r' uses target_branch_scope with unsupported action 'read'",
        ),
        (
            policy(rule("[invoke_query]", more=", branch_scope: any")),
            "policy rule 'r' uses branch_scope with unsupported action 'invoke_query'",
        ),
        (
            policy(rule("[graph_list, read]")),
            "policy rule 'r' mixes the server-scoped action 'graph_list' with graph-scoped actions; split into separate rules",
        ),
        (
            policy(rule("[change, cluster_apply]")),
            "policy rule 'r' mixes the server-scoped action 'cluster_apply' with graph-scoped actions; split into separate rules",
        ),
    ],
)
def test_stable_texts(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_bundle(text)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (policy(rule(more=", branch_scpoe: any")), "unknown field `branch_scpoe`"),
        (policy(more="kind: graph"), "unknown field `kind`"),
        (policy("{ id: r, effect: deny, allow: {} }"), "unknown field `effect`"),
        (policy(rule("[fly]")), "unknown action 'fly'"),
        (policy(rule(more=", branch_scope: mine")), "branch_scope is one of any, protected, unprotected, not 'mine'"),
        (policy(groups="[a]"), "policy groups must map names"),
        (policy(groups="{ g: a }"), "policy group 'g' must be a list of texts"),
        (policy(more="version: 1"), "duplicate key 'version' in line 3"),
        ("version: [1", "not valid YAML in line"),
        ("", "policy must be a mapping"),
        ("[" * 5000, "not valid YAML"),
        ("a: &a [*a]", "not valid YAML: a value refers to itself"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
            "more than 100000 values",
        ),
        ("? [a]\n: 1", "not valid YAML in line 1: a key must be a text"),
    ],
)
def test_what_else_is_refused(text: str, part: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_bundle(text)
    assert part in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("actions", "kind", "part"),
    [
        ("[graph_list]", "graph", "server-scoped action 'graph_list'"),
        ("[read]", "cluster", "graph-scoped action 'read'"),
    ],
)
def test_kinds_of_bundles(actions: str, kind: BundleKind, part: str) -> None:
    text = policy(rule(actions))
    assert read_bundle(text).rules
    with pytest.raises(BadRequest, match=part):
        read_bundle(text, kind)


def test_no_scope_takes_all_actions() -> None:
    found = read_bundle(policy(rule("[read, branch_create, read]")))
    assert found.rules[0].actions == ("read", "branch_create")
    assert read_bundle(TEAM).actors == {"ann", "bob", "cleo"}


def test_cases() -> None:
    cases = read_cases(
        "version: 1\ncases:\n"
        "  - { id: may, actor: ann, action: read, branch: main, expect: allow }\n"
        "  - { id: may-not, actor: bob, action: branch-merge, branch: t, target_branch: main, expect: allow }\n"
    )
    assert cases[1].need == Need("branch_merge", "t", "main")
    decide = Policy(read_bundle(TEAM), "g").decide
    assert failures(cases, decide) == [
        "may-not: expected Allow but got Deny (policy denied action 'branch_merge' on branch 't' targeting branch 'main' "
        "for actor 'bob')"
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("version: 3\ncases: []", "policy tests version must be 1"),
        ("version: 1.0\ncases: []", "policy tests version must be 1"),
        ("version: 1\ncases: [{ id: '', actor: a, action: read, expect: allow }]", "ids must not be blank"),
        (
            "version: 1\ncases: [{ id: a, actor: ' ', action: read, expect: allow }]",
            "case 'a' must name a non-blank actor",
        ),
        (
            "version: 1\ncases: [{ id: a, actor: a, action: read, expect: allow }, "
            "{ id: a, actor: a, action: read, expect: allow }]",
            "duplicate policy test case id 'a'",
        ),
        ("version: 1\ncases: [{ id: a, actor: a, action: read, expect: maybe }]", "expect is allow or deny"),
        ("version: 1\ncases: [{ id: a, actor: a, action: fly, expect: deny }]", "unknown action 'fly'"),
        ("version: 1\ncases: [{ id: a, actor: a, action: read, when: now, expect: deny }]", "unknown field `when`"),
        ("version: 1\ncases: 1", "cases must be a list"),
    ],
)
def test_refused_cases(text: str, part: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_cases(text)
    assert part in refused.value.message
