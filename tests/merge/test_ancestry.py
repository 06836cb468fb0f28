"""How two heads are related, over any commit DAG: outcome, base, and the bases of criss-cross merges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.commit.history import reachable
from omnigraph.commit.model import Commit
from omnigraph.merge.ancestry import ALREADY_UP_TO_DATE, FAST_FORWARD, MERGED, generations, relate

Dag = dict[str, Commit]


def dag(text: str) -> Dag:
    """Commits from `child:parent` and `child:parent+merged`; the root is `child:`."""
    commits = {}
    for item in text.split():
        name, _, parents = item.partition(":")
        first, _, merged = parents.partition("+")
        commits[name] = Commit(name, "main", first or None, merged or None, None, 0, 0, "mutation")
    return commits


LINE = "a: b:a c:b"
FORK = "a: b:a c:a"
#: x and y have merged each other's m and n.
CROSS = "a: m:a n:a x:m+n y:n+m"
#: A repeated merge: s was merged into the line at 3.
AGAIN = "0: s:0 2:0 3:2+s 4:3 t:s"


@pytest.mark.parametrize(
    ("commits", "ours", "theirs", "outcome", "base", "crossed"),
    [
        pytest.param(LINE, "c", "c", ALREADY_UP_TO_DATE, None, [], id="the same head"),
        pytest.param(LINE, "c", "a", ALREADY_UP_TO_DATE, None, [], id="an ancestor"),
        pytest.param(LINE, "a", "c", FAST_FORWARD, "a", [], id="a descendant"),
        pytest.param(FORK, "b", "c", MERGED, "a", [], id="a fork"),
        pytest.param(AGAIN, "4", "s", ALREADY_UP_TO_DATE, None, [], id="merged before"),
        pytest.param(AGAIN, "4", "t", MERGED, "s", [], id="through a merged parent"),
        pytest.param(AGAIN, "t", "4", MERGED, "s", [], id="through a merged parent, the other way"),
        pytest.param(CROSS, "x", "y", MERGED, "n", [("m", "a")], id="criss-cross"),
        pytest.param(CROSS, "y", "x", MERGED, "n", [("m", "a")], id="criss-cross, the other way"),
        pytest.param("a: b:", "a", "b", MERGED, None, [], id="nothing in common"),
        # The later generation counts, whatever the ids are.
        pytest.param("z: m:z y:z b:y x:m+b w:b+m", "x", "w", MERGED, "b", [("m", "z")], id="generation before id"),
    ],
)
def test_relation(
    commits: str, ours: str, theirs: str, outcome: str, base: str | None, crossed: list[tuple[str, str]]
) -> None:
    found = relate(dag(commits), ours, theirs)
    assert found.outcome == outcome
    assert next((commit.id for commit in found.bases()), None) == base
    assert [(one.id, root.id) for one, root in found.crossed()] == crossed


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    """Any history: each commit has one or two earlier ones as its parents."""
    commits: Dag = {}
    for number in range(draw(st.integers(2, 14))):
        earlier = list(commits)
        name = f"{draw(st.integers(0, 9))}-{number}"
        first = draw(st.sampled_from(earlier)) if earlier else None
        merged = draw(st.sampled_from([None, *earlier])) if earlier else None
        commits[name] = Commit(name, "main", first, None if merged == first else merged, None, 0, 0, "mutation")
    return commits


@given(dags(), st.data())
def test_laws_of_bases(commits: Dag, data: st.DataObject) -> None:
    heads = st.sampled_from(list(commits))
    ours, theirs = data.draw(heads), data.draw(heads)
    there, back = relate(commits, ours, theirs), relate(commits, theirs, ours)
    ancestors = {name: {commit.id for commit in reachable(commits, name)} for name in commits}
    assert (there.outcome == ALREADY_UP_TO_DATE) == (theirs in ancestors[ours])
    if ALREADY_UP_TO_DATE in (there.outcome, back.outcome):
        return
    assert (there.outcome, back.outcome) == (MERGED, MERGED)
    assert [*there.bases()] == [*back.bases()]
    assert [*there.crossed()] == [*back.crossed()]
    common = ancestors[ours] & ancestors[theirs]
    assert {commit.id for commit in there.bases()} == common
    # The best ones are those that no other common ancestor descends from, and all of them are looked at.
    best = {name for name in common if not any(name in ancestors[other] for other in common - {name})}
    assert {commit.id for commit in there.best} == best
    depth = generations(commits, list(commits.values()))
    assert [depth[commit.id] for commit in there.bases()] == sorted((depth[name] for name in common), reverse=True)
    assert all(depth[parent] < depth[name] for name, commit in commits.items() for parent in [commit.parent] if parent)


def test_a_long_history() -> None:
    """Not by recursion: a branch may have more commits than Python has frames."""
    commits = dag(" ".join(["0:", *(f"{number}:{number - 1}" for number in range(1, 20_000)), "side:5"]))
    found = relate(commits, "19999", "side")
    assert (found.outcome, next(found.bases()).id) == (MERGED, "5")
