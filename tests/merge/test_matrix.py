"""Seven operations on the source against seven on the target: every pair, as a fast-forward, a merge or one conflict."""

from __future__ import annotations

import pytest

import omnigraph as og
from tests.merge.graphs import do, everything, named, shown

OPERATIONS = ("noop", "addNode", "removeNode", "addEdge", "removeEdge", "setProp", "netZero")

#: By row of the catalogue, source operation first. A conflict is `kind type_key id`, the id only where there is one to know.
EXPECTED = """
01 noop       noop        already_up_to_date 4/1/30/no
02 noop       addNode     already_up_to_date 5/1/30/yes
03 noop       removeNode  already_up_to_date 3/1/absent/no
04 noop       addEdge     already_up_to_date 4/2/30/no
05 noop       removeEdge  already_up_to_date 4/0/30/no
06 noop       setProp     already_up_to_date 4/1/31/no
07 noop       netZero     already_up_to_date 4/1/30/no
08 addNode    noop        fast_forward 5/1/30/yes
09 addNode    addNode     conflict DivergentInsert node:Staff eli
10 addNode    removeNode  merged 4/1/absent/yes
11 addNode    addEdge     merged 5/2/30/yes
12 addNode    removeEdge  merged 5/0/30/yes
13 addNode    setProp     merged 5/1/31/yes
14 addNode    netZero     merged 5/1/30/yes
15 removeNode noop        fast_forward 3/1/absent/no
16 removeNode addNode     merged 4/1/absent/yes
17 removeNode removeNode  merged 3/1/absent/no
18 removeNode addEdge     conflict OrphanEdge edge:Mentors
19 removeNode removeEdge  merged 3/0/absent/no
20 removeNode setProp     conflict DeleteVsUpdate node:Staff ada
21 removeNode netZero     merged 3/1/absent/no
22 addEdge    noop        fast_forward 4/2/30/no
23 addEdge    addNode     merged 5/2/30/yes
24 addEdge    removeNode  conflict OrphanEdge edge:Mentors
25 addEdge    addEdge     merged 4/3/30/no
26 addEdge    removeEdge  merged 4/1/30/no
27 addEdge    setProp     merged 4/2/31/no
28 addEdge    netZero     merged 4/2/30/no
29 removeEdge noop        fast_forward 4/0/30/no
30 removeEdge addNode     merged 5/0/30/yes
31 removeEdge removeNode  merged 3/0/absent/no
32 removeEdge addEdge     merged 4/1/30/no
33 removeEdge removeEdge  merged 4/0/30/no
34 removeEdge setProp     merged 4/0/31/no
35 removeEdge netZero     merged 4/0/30/no
36 setProp    noop        fast_forward 4/1/31/no
37 setProp    addNode     merged 5/1/31/yes
38 setProp    removeNode  conflict DeleteVsUpdate node:Staff ada
39 setProp    addEdge     merged 4/2/31/no
40 setProp    removeEdge  merged 4/0/31/no
41 setProp    setProp     conflict DivergentUpdate node:Staff ada
42 setProp    netZero     merged 4/1/31/no
43 netZero    noop        fast_forward 4/1/30/no
44 netZero    addNode     merged 5/1/30/yes
45 netZero    removeNode  merged 3/1/absent/no
46 netZero    addEdge     merged 4/2/30/no
47 netZero    removeEdge  merged 4/0/30/no
48 netZero    setProp     merged 4/1/31/no
49 netZero    netZero     merged 4/1/30/no
"""
CELLS = [line.split(maxsplit=3) for line in EXPECTED.strip().splitlines()]


def operate(graph: og.Graph, branch: str, operation: str, *, both: bool) -> None:
    """Carry out one operation on one side; `both`: the other side does the same one."""
    on_source = branch == "feature"
    match operation:
        case "addNode":
            do(graph, branch, "put", "eli", 21 if both and on_source else 22)
        case "removeNode":
            do(graph, branch, "drop", "ada")
        case "addEdge":
            do(graph, branch, "link", "ada", "cleo")
        case "removeEdge":
            do(graph, branch, "unlink", "ben")
        case "setProp":
            do(graph, branch, "relevel", "ada", 32 if both and not on_source else 31)
        case "netZero":
            do(graph, branch, "link", "ada", "cleo")
            do(graph, branch, "unlink", "ada")


def test_the_matrix_is_whole() -> None:
    assert [(source, target) for _, source, target, _ in CELLS] == [
        (source, target) for source in OPERATIONS for target in OPERATIONS
    ]


def check_cell(graph: og.Graph, source: str, target: str, expected: str) -> None:
    operate(graph, "feature", source, both=source == target)
    operate(graph, "main", target, both=source == target)
    before, head = everything(graph), graph.head()
    foreseen = graph.merge("feature", dry_run=True)
    assert graph.head() == head
    outcome, _, wanted = expected.partition(" ")
    if outcome == "conflict":
        with pytest.raises(og.errors.MergeConflicts) as raised:
            graph.merge("feature")
        (found,) = named(raised.value.conflicts)
        assert " ".join(str(part) for part in found[: len(wanted.split())]) == wanted
        assert found[2] is not None
        assert foreseen.conflicts == tuple(raised.value.conflicts)
        assert (everything(graph), graph.head()) == (before, head)
        return
    result = graph.merge("feature")
    assert (result.outcome, shown(graph)) == (outcome, wanted)
    assert (foreseen.outcome, foreseen.conflicts) == (outcome, ())
    if outcome == "already_up_to_date":
        assert (result.commit, graph.head()) == (None, head)
    else:
        assert result.commit == graph.head()
        assert (graph.head().parent, graph.head().merged_parent) == (head.id, graph.head("feature").id)
        assert graph.head().manifest_version == head.manifest_version + 1
    # Once more is nothing, and main brings the source everything.
    assert graph.merge("feature").outcome == "already_up_to_date"
    graph.merge("main", into="feature")
    assert everything(graph, "feature") == everything(graph)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [pytest.param(*cell[1:], id=f"MRG-{cell[0]} {cell[1]}-{cell[2]}") for cell in CELLS],
)
def test_cell(graph: og.Graph, source: str, target: str, expected: str) -> None:
    check_cell(graph, source, target, expected)
