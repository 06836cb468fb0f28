"""Laws that every merge obeys, over random histories of two branches, checked against a model and against each other."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import omnigraph as og
from tests.merge.graphs import everything, named, write
from tests.merge.model import State, three_way

SCHEMA = """
node Staff { handle: String @key level: I32? note: String? }
edge Mentors: Staff -> Staff
edge Follows: Staff -> Staff { w: I32? @key(src, dst) }
"""
BASE = (
    *(f'insert Staff {{ handle: "{name}", level: {level}, note: "n" }}' for level, name in enumerate("abc")),
    'insert Mentors { from: "a", to: "b" }',
    'insert Follows { from: "a", to: "b", w: 1 }',
    'insert Follows { from: "b", to: "c", w: 1 }',
)

HANDLES = st.sampled_from("abcd")
NUMBERS = st.integers(0, 2)
PUTS = st.builds('insert Staff {{ handle: "{}", level: {}, note: "n" }}'.format, HANDLES, NUMBERS)
LEVELS = st.builds('update Staff set {{ level: {1} }} where handle = "{0}"'.format, HANDLES, NUMBERS)
NOTES = st.builds('update Staff set {{ note: "m{1}" }} where handle = "{0}"'.format, HANDLES, NUMBERS)
DROPS = st.builds('delete Staff where handle = "{}"'.format, HANDLES)
FOLLOWS = st.builds('insert Follows {{ from: "{}", to: "{}", w: {} }}'.format, HANDLES, HANDLES, NUMBERS)
UNFOLLOWS = st.builds('delete Follows where from = "{}"'.format, HANDLES)
LINKS = st.builds('insert Mentors {{ from: "{}", to: "{}" }}'.format, HANDLES, HANDLES)
UNLINKS = st.builds('delete Mentors where from = "{}"'.format, HANDLES)
KEYED = st.one_of(PUTS, LEVELS, NOTES, DROPS, FOLLOWS, UNFOLLOWS)
WRITES = st.one_of(KEYED, LINKS, UNLINKS)
SOME = st.lists(WRITES, min_size=1, max_size=4)

LONG = bool(os.environ.get("OMNIGRAPH_TEST_LONG"))

# Thousands of examples take longer than any other test.
pytestmark = [pytest.mark.timeout(0)] if LONG else []


def examples(short: int, long: int) -> settings:
    """300 examples in all in the short run, 10,000 in the long one."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(max_examples=long if LONG else short, deadline=None, suppress_health_check=checks)


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("laws") / "g", SCHEMA)
    write(graph, "main", *BASE)
    return graph


NUMBER = count()


class Branches:
    """Branches of one example, made when they are needed and gone afterwards."""

    def __init__(self, graph: og.Graph) -> None:
        self._graph = graph
        self._number = next(NUMBER)
        self._made: list[str] = []

    def make(self, name: str, base: str = "main") -> str:
        """A branch from main, or from another one as it is now."""
        branch = f"{name}{self._number}"
        self._graph.create_branch(branch, base=base)
        self._made.append(branch)
        return branch

    def __enter__(self) -> Branches:
        return self

    def __exit__(self, *_: object) -> None:
        for branch in reversed(self._made):
            self._graph.delete_branch(branch)


def apply(graph: og.Graph, branch: str, statements: list[str]) -> None:
    """One commit for each statement; one that a rule refuses is left out."""
    for statement in statements:
        try:
            write(graph, branch, statement)
        except og.errors.ValidationError:
            continue


def state(graph: og.Graph, branch: str) -> State:
    return {(key, row["id"]): row for key, rows in everything(graph, branch).items() for row in rows}


Outcome = tuple[State | None, set[tuple[str, str, str | None]]]


def merged(graph: og.Graph, source: str, into: str, **options: Any) -> Outcome:
    """What a merge leads to: the graph, or the conflicts."""
    before = state(graph, into)
    try:
        graph.merge(source, into=into, **options)
    except og.errors.MergeConflicts as error:
        assert state(graph, into) == before, "a conflict changes nothing"
        conflicts = named(error.conflicts)
        assert len(set(conflicts)) == len(conflicts), "an entity is named once"
        return None, set(conflicts)
    return state(graph, into), set()


@examples(120, 5000)
@given(on_a=SOME, on_b=SOME)
def test_a_merge_is_what_the_model_says_in_both_directions(laws: og.Graph, on_a: list[str], on_b: list[str]) -> None:
    """Both ways the same graph or the same conflicts; what neither side touched stays; twice is nothing; back is all."""
    with Branches(laws) as branches:
        a, b = branches.make("a"), branches.make("b")
        apply(laws, a, on_a)
        apply(laws, b, on_b)
        into_a, into_b = branches.make("b-into", a), branches.make("a-into", b)
        base, ours, theirs = (state(laws, name) for name in ("main", a, b))
        expected, conflicts = three_way(base, ours, theirs)

        one, other = merged(laws, b, into_a), merged(laws, a, into_b)
        assert one == other == ((None, conflicts) if conflicts else (expected, set()))
        if one[0] is None:
            return
        untouched = {key for key, row in base.items() if ours.get(key) == row and theirs.get(key) == row}
        assert all(one[0][key] == base[key] for key in untouched)
        for source, into in ((b, into_a), (a, into_b), ("main", into_a), (a, into_a)):
            assert laws.merge(source, into=into).outcome == "already_up_to_date"
        assert laws.merge(into_a, into=into_b).outcome in ("merged", "fast_forward", "already_up_to_date")
        assert state(laws, into_b) == one[0]


@examples(60, 1500)
@given(on_a=SOME, on_b=SOME, later_a=SOME, later_b=SOME)
def test_criss_cross(laws: og.Graph, on_a: list[str], on_b: list[str], later_a: list[str], later_b: list[str]) -> None:
    """After each side has merged the other's earlier head, the base is the same both ways, and so is the outcome."""
    with Branches(laws) as branches:
        a, b = branches.make("a"), branches.make("b")
        apply(laws, a, on_a)
        apply(laws, b, on_b)
        a_then, b_then = branches.make("a-then", a), branches.make("b-then", b)
        assume(merged(laws, b_then, a)[0] is not None)
        assume(merged(laws, a_then, b)[0] is not None)
        crossed = state(laws, a)
        assert crossed == state(laws, b)
        apply(laws, a, later_a)
        apply(laws, b, later_b)
        into_a, into_b = branches.make("b-into", a), branches.make("a-into", b)
        ours, theirs = state(laws, a), state(laws, b)
        foreseen = laws.merge(b, into=into_a, dry_run=True), laws.merge(a, into=into_b, dry_run=True)
        if all("base" in result.stats for result in foreseen):
            assert foreseen[0].stats["base"] == foreseen[1].stats["base"]
        one, other = merged(laws, b, into_a), merged(laws, a, into_b)
        assert one == other
        # Both sides were the same once: that is where everything they did since is compared from.
        expected, conflicts = three_way(crossed, ours, theirs)
        assert one == ((None, conflicts) if conflicts else (expected, set()))


@examples(60, 1500)
@given(on_a=st.lists(KEYED, min_size=1, max_size=4), on_b=st.lists(KEYED, min_size=1, max_size=4), data=st.data())
def test_only_the_final_states_count(laws: og.Graph, on_a: list[str], on_b: list[str], data: st.DataObject) -> None:
    """The same final state by other commits, in another order, gives the same graph or the same conflicts."""
    with Branches(laws) as branches:
        a, b, c = branches.make("a"), branches.make("b"), branches.make("c")
        apply(laws, a, on_a)
        apply(laws, b, on_b)
        into = branches.make("into", b)
        _reach(laws, c, state(laws, a), data)
        assert state(laws, c) == state(laws, a)
        assert merged(laws, a, into) == merged(laws, c, b)


def _reach(graph: og.Graph, branch: str, wanted: State, data: st.DataObject) -> None:
    """Bring a branch to a state by writes in an order that is drawn; edges without a key can only go."""
    here = state(graph, branch)
    gone = [key for key in here if key not in wanted]
    for key in data.draw(st.permutations(gone)):
        row = here[key]
        if key[0] == "node:Staff":
            write(graph, branch, f'delete Staff where handle = "{row["handle"]}"')
        elif key in state(graph, branch):
            source = f"query q($a: String) {{ delete {key[0].removeprefix('edge:')} where from = $a }}"
            graph.mutate(source, None, {"a": row["src"]}, branch=branch)
    changed = [key for key, row in wanted.items() if state(graph, branch).get(key) != row]
    nodes = data.draw(st.permutations([key for key in changed if key[0] == "node:Staff"]))
    for key in nodes:
        row = wanted[key]
        put = f'insert Staff {{ handle: "{row["handle"]}", level: {row["level"]}, note: "{row["note"]}" }}'
        write(graph, branch, put)
    for key in data.draw(st.permutations([key for key in changed if key[0] == "edge:Follows"])):
        row = wanted[key]
        write(graph, branch, f'insert Follows {{ from: "{row["src"]}", to: "{row["dst"]}", w: {row["w"]} }}')


@examples(60, 2000)
@given(on_a=SOME, on_b=SOME, strategy=st.sampled_from([None, "ours", "theirs"]))
def test_property_by_property(laws: og.Graph, on_a: list[str], on_b: list[str], strategy: str | None) -> None:
    """Combining never conflicts more, never invents a value, and a strategy leaves only broken rules."""
    with Branches(laws) as branches:
        a, b = branches.make("a"), branches.make("b")
        apply(laws, a, on_a)
        apply(laws, b, on_b)
        base, ours, theirs = (state(laws, name) for name in ("main", a, b))
        plain = set(named(laws.merge(b, into=a, dry_run=True).conflicts))
        options: dict[str, Any] = {"property_level": True, "strategy": strategy}
        graph, conflicts = merged(laws, b, a, **options)
        if strategy is None:
            assert conflicts <= plain
        else:
            assert {kind for kind, _, _ in conflicts} <= {"OrphanEdge"}
        for key, row in (graph or {}).items():
            images = [image[key] for image in (base, ours, theirs) if key in image]
            assert all(value in [image[name] for image in images] for name, value in row.items())
