"""The setting `merge.level`: what merges do where they are not told, and that every result tells it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import omnigraph as og
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.rows import Receipt
from omnigraph.errors import MergeConflicts
from tests.merge.graphs import write
from tests.mutation.org_graph import rows

WIDE = "node P { name: String @key a: I32? b: String? }"
LEVEL = "merge.level"


@pytest.fixture
def wide(tmp_path: Path) -> og.Graph:
    """Both sides have changed x, each another property of it."""
    graph = og.init(tmp_path / "wide", WIDE)
    write(graph, "main", 'insert P { name: "x", a: 1, b: "b" }')
    graph.create_branch("feature")
    write(graph, "feature", 'update P set { a: 2 } where name = "x"')
    write(graph, "main", 'update P set { b: "m" } where name = "x"')
    return graph


def x_of(graph: og.Graph, branch: str = "main") -> tuple[Any, Any]:
    (row,) = rows(graph, "node:P", branch)
    return row["a"], row["b"]


def own(graph: og.Graph, branch: str) -> str:
    return graph.head(branch).id


Verb = Callable[..., og.MergeResult]
#: What is called, and the branch that it writes.
VERBS: dict[str, tuple[Verb, str]] = {
    "merge": (lambda g, **asked: g.merge("feature", **asked), "main"),
    "rebase": (lambda g, **asked: g.rebase("feature", **asked), "feature"),
    "cherry-pick": (lambda g, **asked: g.cherry_pick(own(g, "feature"), **asked), "main"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_follow_the_habit(wide: og.Graph, verb: str) -> None:
    call, written = VERBS[verb]
    with pytest.raises(MergeConflicts):
        call(wide)
    wide.set_config(LEVEL, "property")
    foreseen = call(wide, dry_run=True)
    assert (foreseen.level, foreseen.conflicts) == ("property", ())
    result = call(wide)
    assert (result.level, result.to_dict()["level"], next(result.lines())) == (
        "property",
        "property",
        "merge.level: property",
    )
    assert x_of(wide, written) == (2, "m")


def test_a_revert_follows_the_habit(wide: og.Graph) -> None:
    changed = own(wide, "feature")
    write(wide, "feature", 'update P set { b: "later" } where name = "x"')
    with pytest.raises(MergeConflicts):
        wide.revert(changed, "feature")
    wide.set_config(LEVEL, "property")
    assert wide.revert(changed, "feature").level == "property"
    assert x_of(wide, "feature") == (1, "later")


@pytest.mark.parametrize("verb", VERBS)
def test_an_argument_wins_over_the_habit(wide: og.Graph, verb: str) -> None:
    call, written = VERBS[verb]
    wide.set_config(LEVEL, "property")
    foreseen = call(wide, dry_run=True, property_level=False)
    assert (foreseen.level, foreseen.outcome) == ("entity", "conflicts")
    with pytest.raises(MergeConflicts):
        call(wide, property_level=False)
    wide.set_config(LEVEL, "entity")
    assert call(wide, property_level=True).level == "property"
    assert x_of(wide, written) == (2, "m")


def test_every_outcome_tells_the_level(wide: og.Graph) -> None:
    wide.create_branch("other")
    assert (wide.merge("other").outcome, wide.merge("other").level) == ("already_up_to_date", "entity")
    wide.set_config(LEVEL, "property")
    assert wide.merge("other").level == "property"
    write(wide, "other", 'insert P { name: "y" }')
    result = wide.merge("other", delete_branch=True)
    assert (result.outcome, result.level) == ("fast_forward", "property")


def test_a_schema_commit_is_taken_back_by_property(wide: og.Graph) -> None:
    wide.apply_schema(WIDE.replace("b: String?", "b: String? c: I32?"))
    assert wide.revert(wide.head().id, property_level=False).level == "property"


# --- repeated requests ------------------------------------------------------------------------------------------------


def test_a_repeat_after_the_habit_has_changed(wide: og.Graph) -> None:
    wide.set_config(LEVEL, "property")
    first = wide.merge("feature", idempotency_key="k")
    wide.set_config(LEVEL, "entity")
    again = wide.merge("feature", idempotency_key="k")
    assert (again.commit, again.level) == (first.commit, "property")


@pytest.mark.parametrize(("asked", "level"), [({}, "entity"), ({"property_level": True}, "property")])
def test_a_receipt_of_an_earlier_release(
    wide: og.Graph, asked: dict[str, Any], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells no level; the one it was made at is the one that was asked for, whatever the habit is today."""
    strategy: dict[str, Any] = {"strategy": "ours", "idempotency_key": "k", **asked}
    wide.merge("feature", **strategy)
    receipt = Manifest.receipt

    def older(self: Manifest, branch: str, key: str) -> Receipt | None:
        found = receipt(self, branch, key)
        assert found is not None
        told = orjson.loads(orjson.dumps(dict(found.receipt)))
        del told["level"]
        return Receipt(found.commit_id, found.request, told)

    monkeypatch.setattr(Manifest, "receipt", older)
    wide.set_config(LEVEL, "property")
    assert wide.merge("feature", **strategy).level == level
