"""Decisions: a table against an independent reading of the same bundles, texts, and what a decision costs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from omnigraph.errors import Denied
from omnigraph.policy.actions import ACTIONS, READING, Guard, Need
from omnigraph.policy.bundle import read_bundle
from omnigraph.policy.decide import Policy
from omnigraph.server.access import access_of
from omnigraph.server.settings import Rights
from tests.policy.bundles import ACTORS, BRANCHES, GRAPH_BUNDLES, LISTERS, TEAM
from tests.policy.reference import may, may_at_boundary

MODES: dict[str, Rights] = {"open": "open", "tokens": "default-deny", "full": "full"}


def _questions() -> Iterator[tuple[str, str | None, str | None, str, str | None, str | None]]:
    for mode in MODES:
        for bundle in (None, *GRAPH_BUNDLES):
            for actor in ACTORS:
                for action in sorted(ACTIONS):
                    for branch, target in BRANCHES:
                        yield mode, bundle, actor, action, branch, target


def test_the_decision_table() -> None:
    asked, allowed = 0, 0
    for read_only in (False, True):
        for mode, bundle, actor, action, branch, target in _questions():
            text = None if bundle is None else GRAPH_BUNDLES[bundle]
            policy = _policies()[bundle]
            access = access_of(MODES[mode], policy, read_only=read_only)
            got = _allows(access, actor, Need(action, branch, target))
            expected = may_at_boundary(mode, text, actor, action, branch, target)
            if read_only and action not in READING:
                expected = False
            assert got is expected, (mode, bundle, actor, action, branch, target, read_only)
            asked, allowed = asked + 1, allowed + got
    assert asked >= 400
    assert 100 < allowed < asked - 100


def _allows(access: Guard, actor: str | None, need: Need) -> bool:
    try:
        access.check(actor, need)
    except Denied as error:
        return (error.action, error.actor) != (need.action, actor)
    return True


_made: dict[str | None, Policy | None] = {}


def _policies() -> dict[str | None, Policy | None]:
    if not _made:
        _made[None] = None
        _made.update({name: Policy(read_bundle(text, "graph"), "people") for name, text in GRAPH_BUNDLES.items()})
    return _made


@pytest.mark.parametrize("name", GRAPH_BUNDLES)
def test_the_reported_rule_is_the_smallest(name: str) -> None:
    text = GRAPH_BUNDLES[name]
    policy = Policy(read_bundle(text, "graph"), "g")
    for actor in ("ann", "bob", "cleo"):
        for action in sorted(ACTIONS):
            for branch, target in BRANCHES:
                decided = policy.decide(actor, Need(action, branch, target))
                assert decided.rule == may(text, actor, action, branch, target), (actor, action, branch, target)


def test_the_texts() -> None:
    policy = Policy(read_bundle(TEAM, "graph"), "g")

    def told(actor: str | None, need: Need) -> str:
        return policy.decide(actor, need).message

    assert told("eve", Need("change", "main")) == "policy denied action 'change' for unknown actor 'eve'"
    assert told("ann", Need("change", "main")) == "policy denied action 'change' on branch 'main' for actor 'ann'"
    assert (
        told("bob", Need("branch_merge", "topic", "main"))
        == "policy denied action 'branch_merge' on branch 'topic' targeting branch 'main' for actor 'bob'"
    )
    assert told("ann", Need("read", "main")) == "policy allowed action 'read' for actor 'ann'"
    assert told(None, Need("read")) == "policy denied action 'read' for a caller without an actor"


def test_a_scope_needs_a_branch() -> None:
    policy = Policy(read_bundle(GRAPH_BUNDLES["protected"], "graph"), "g")
    assert policy.decide("ann", Need("read", "main")).allowed
    assert not policy.decide("ann", Need("read")).allowed
    assert not policy.decide("ann", Need("change")).allowed


def test_the_server_is_a_resource_of_its_own() -> None:
    policy = Policy(read_bundle(LISTERS, "cluster"), None)
    assert policy.decide("ann", Need("graph_list")).rule == "list"
    assert policy.decide('odd "name"\nwith lines', Need("graph_list")).allowed
    assert not policy.decide("bob", Need("graph_list")).allowed


def test_the_rules_of_one_graph_say_nothing_about_another() -> None:
    bundle = read_bundle(TEAM, "graph")
    here, there = Policy(bundle, "here"), Policy(bundle, "there")
    assert here._resource != there._resource
    here._resource = there._resource
    assert not here.decide("ann", Need("read", "main")).allowed


def test_policies_are_parsed_once_and_a_decision_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    import cedarpy

    policy = Policy(read_bundle(TEAM, "graph"), "g")
    asked: list[object] = []
    ask = cedarpy.is_authorized

    def counted(request: dict[str, object], policies: object, entities: object) -> cedarpy.AuthzResult:
        assert isinstance(policies, cedarpy.PolicySet)
        assert isinstance(entities, cedarpy.Entities)
        asked.append(request)
        return ask(request, policies, entities)

    monkeypatch.setattr(cedarpy, "is_authorized", counted)
    needs = [Need("change", f"topic-{number}") for number in range(1000)]
    began = time.process_time()
    for need in needs:
        policy.check("bob", need)
    spent = time.process_time() - began
    assert len(asked) == 1, "all of these are the same question"
    assert spent / len(needs) < 0.0001, f"{spent / len(needs) * 1000:.4f} ms for a decision"
