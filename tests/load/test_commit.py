"""How a load becomes a commit: next to other writers, on branches, exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import (
    AlreadyExists,
    BadRequest,
    BranchNotFound,
    Conflict,
    ExpectedVersionMismatch,
    KeyConflict,
    LoadRejected,
    OmnigraphError,
    PreconditionFailed,
)
from tests.commit.limited import limit
from tests.load.loading import content, edge, ends, files, graph_of, ids, lines, node, org, rows


@pytest.fixture(params=[True, False], ids=["held", "staged"])
def holds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """For graphs that the test makes, and for the one that it is given."""
    if not request.param:
        monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
        for name in {"graph", "counted"}.intersection(request.fixturenames):
            limit(request.getfixturevalue(name), held_bytes=0)
    return bool(request.param)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org(tmp_path / "g")


EVE = lines([node("Staff", handle="eve", level=1), edge("Mentors", "eve", "ada")])


def meanwhile(graph: og.Graph, mutation: str, times: int = 1, **options: Any) -> Any:
    """Arm a failpoint so that somebody else writes after the checks, the first times that a load comes by."""
    other, left = og.open(graph.uri), [times]

    def write() -> None:
        if left[0]:
            left[0] -= 1
            other.mutate(f"query q() {{ {mutation} }}", **options)

    return failpoints.armed("load.prepared", write)


# --- next to other writers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "merge"])
@pytest.mark.parametrize("branch", ["main", "feature", "new"])
@pytest.mark.row("OCC-04")
def test_a_base_that_moved(graph: og.Graph, holds: bool, mode: Any, branch: str, row: list[str]) -> None:
    """The checks are made again on the new base, without reading again, and both writes are there."""
    graph.create_branch("feature")
    base = "feature" if branch == "feature" else "main"
    with meanwhile(graph, 'insert Staff { handle: "fay" }', branch=base):
        result = graph.load(EVE, mode, branch=branch, base="main", engine="local")
    assert result.report.restarts == 1
    assert {"eve", "fay"} <= set(ids(graph, "node:Staff", branch))
    assert ("eve", "ada") in ends(graph, "Mentors", branch)
    assert graph.head(branch) == result.commit


def test_what_no_longer_holds(graph: og.Graph, holds: bool) -> None:
    """Somebody else inserts the same key, or deletes a node that an edge needs: no duplicate, no dangling edge."""
    with meanwhile(graph, 'insert Staff { handle: "eve" }'), pytest.raises(KeyConflict):
        graph.load(EVE, engine="local")
    graph.mutate('query q() { delete Staff where handle = "eve" }')
    with meanwhile(graph, 'delete Staff where handle = "ada"'), pytest.raises(LoadRejected, match="'ada' not found"):
        graph.load(EVE, engine="local")
    assert ids(graph, "node:Staff") == ["ben", "cleo", "dov"]


def test_a_merge_next_to_an_update(graph: og.Graph, holds: bool) -> None:
    with meanwhile(graph, 'update Staff set { level: 1 } where handle = "ada"'):
        graph.load(lines([node("Staff", handle="ada", level=2)]), "merge", engine="local")
    assert [row["level"] for row in rows(graph, "node:Staff") if row["id"] == "ada"] == [2]


def test_an_overwrite_reports_the_conflict(graph: og.Graph, holds: bool) -> None:
    before = graph.head()
    with meanwhile(graph, 'insert Staff { handle: "fay" }'), pytest.raises(ExpectedVersionMismatch):
        staff = [node("Staff", handle=handle) for handle in ("ada", "ben", "cleo", "dov")]
        graph.load(lines(staff), "overwrite", engine="local")
    assert "fay" in ids(graph, "node:Staff")
    assert graph.head().parent == before.id


def test_an_overwrite_next_to_an_edge_that_needs_what_goes(graph: og.Graph, holds: bool) -> None:
    """The edge tables that an overwrite of nodes has looked at must not have moved: no edge dangles."""
    graph.mutate('query q() { insert Staff { handle: "fay" } }')
    staff = [node("Staff", handle=handle) for handle in ("ada", "ben", "cleo", "dov")]
    before = ids(graph, "node:Staff")
    with meanwhile(graph, 'insert Mentors { from: "ada", to: "fay" }'), pytest.raises(Conflict):
        graph.load(lines(staff), "overwrite", engine="local")
    assert ids(graph, "node:Staff") == before
    assert ("ada", "fay") in ends(graph, "Mentors")
    with pytest.raises(LoadRejected, match="fay"):
        graph.load(lines(staff), "overwrite", engine="local")


def test_a_load_does_not_start_over_for_ever(graph: og.Graph, holds: bool) -> None:
    """From its second attempt on it is prepared inside the effect window, where nobody else writes."""
    other = og.open(graph.uri)
    seen: list[int] = []

    def write() -> None:
        seen.append(len(seen))
        if len(seen) == 1:
            other.mutate('query q() { insert Staff { handle: "fay" } }')

    with failpoints.armed("load.prepared", write):
        graph.load(EVE, engine="local")
    assert seen == [0, 1]


COUNTED = "node A { name: String @key }\nnode B { name: String @key }\nedge E: A -> B @card(1..2)"


@pytest.fixture
def counted(tmp_path: Path) -> og.Graph:
    """Two sources, a1 with the edges x and w, a2 with the edge y; each must have one or two."""
    graph = og.init(tmp_path / "counted", COUNTED)
    named = [node("A", name="a1"), node("A", name="a2"), node("B", name="b")]
    edges = [edge("E", "a1", "b", id="x"), edge("E", "a1", "b", id="w"), edge("E", "a2", "b", id="y")]
    graph.load([*named, *edges], engine="local")
    return graph


def test_a_merge_that_starts_over_counts_nothing_of_its_first_attempt(counted: og.Graph, holds: bool) -> None:
    """The edge that was to be moved away from a1 is gone with a1: that a1 has no edge now is nobody's fault."""
    with meanwhile(counted, 'delete A where name = "a1"'):
        result = counted.load(lines([edge("E", "a2", "b", id="x")]), "merge", engine="local")
    assert result.report.restarts == 1
    assert ids(counted, "edge:E") == ["x", "y"]
    assert counted.verify().ok


@pytest.mark.parametrize("moved", [False, True], ids=["one more edge", "the edge that is replaced was moved"])
def test_a_merge_that_starts_over_counts_what_came_meanwhile(counted: og.Graph, holds: bool, moved: bool) -> None:
    """Between its attempts somebody else gives the source another edge: then it would have three."""
    if moved:
        other = edge("E", "a2", "b", id="x")
        given = [edge("E", "a2", "b", id="z")]
    else:
        other = edge("E", "a2", "b", id="v")
        given = [edge("E", "a2", "b", id="x")]
    beside, left = og.open(counted.uri), [other]

    def write() -> None:
        if left:
            beside.load([left.pop()], "merge", engine="local")

    with failpoints.armed("load.prepared", write), pytest.raises(LoadRejected, match="a2"):
        counted.load(lines(given), "merge", engine="local")
    assert counted.verify().ok


# --- conditions and repeats -------------------------------------------------------------------------------------------


def test_a_conditional_load(graph: og.Graph, holds: bool) -> None:
    head = graph.head()
    graph.load(EVE, engine="local", if_commit=head.id)
    there = files(graph)
    with pytest.raises(PreconditionFailed):
        graph.load(EVE, "merge", engine="local", if_commit=head.id)
    assert files(graph) == there


@pytest.mark.parametrize("branch", ["main", "new"])
def test_exactly_once(graph: og.Graph, holds: bool, branch: str) -> None:
    options: dict[str, Any] = {"branch": branch, "base": "main", "engine": "local", "idempotency_key": "k"}
    first = graph.load(EVE, **options)
    again = graph.load(EVE, **options)
    assert (again.commit, again.tables, again.branch_created) == (first.commit, first.tables, branch == "new")
    assert len(graph.commits(branch)) == 3
    with pytest.raises(BadRequest, match="was used for another request"):
        graph.load(lines([node("Staff", handle="zoe")]), **options)
    with pytest.raises(BadRequest, match="was used for another request"):
        graph.load(EVE, "merge", **options)


def test_a_repeat_that_overtakes(graph: og.Graph, holds: bool) -> None:
    """The same request, sent twice and carried out at once: one commit, and both callers get it."""
    other = og.open(graph.uri)
    found: list[Any] = []

    def send() -> None:
        if not found:
            found.append(None)
            found.append(other.load(EVE, engine="local", idempotency_key="k"))

    with failpoints.armed("load.prepared", send):
        mine = graph.load(EVE, engine="local", idempotency_key="k")
    assert mine.commit == found[1].commit
    assert ids(graph, "node:Staff").count("eve") == 1


# --- branches ---------------------------------------------------------------------------------------------------------


@pytest.mark.row("BR-03", "BR-06")
def test_first_and_second_load_on_a_branch(graph: og.Graph, holds: bool, row: list[str]) -> None:
    graph.create_branch("feature")
    before = content(graph)
    for name in ("eve", "fay"):
        graph.load(lines([node("Staff", handle=name), node("Staff", handle="ada", level=1)]), "merge", branch="feature",
                   engine="local")  # fmt: skip
    assert ids(graph, "node:Staff", "feature") == ["ada", "ben", "cleo", "dov", "eve", "fay"]
    graph.load(
        lines([node("Team", code=c) for c in ("core", "labs", "new")]),
        "overwrite",
        branch="other",
        base="feature",
        engine="local",
    )
    assert content(graph) == before
    tables = {entry.key: entry.branch for entry in graph.snapshot("feature").entries()}
    assert tables["node:Staff"] is not None
    assert tables["edge:Mentors"] is None


def test_ingest(graph: og.Graph, holds: bool) -> None:
    result = graph.ingest(EVE, "agent/1", engine="local")
    assert (result.branch, result.base_branch, result.branch_created, result.mode) == ("agent/1", "main", True, "merge")
    assert result.commit.parent == graph.head().id
    assert graph.branches() == ["main", "agent/1"]
    again = graph.ingest(EVE, "agent/1", base="main", engine="local")
    assert not again.branch_created
    deeper = graph.ingest(lines([node("Staff", handle="fay")]), "deep", base="agent/1", engine="local")
    assert deeper.base_branch == "agent/1"
    assert "eve" in ids(graph, "node:Staff", "deep")


@pytest.mark.parametrize(
    ("branch", "base", "kind"),
    [
        ("new", "nowhere", BranchNotFound),
        ("bad name", "main", BadRequest),
        ("main", "main", None),
        ("agent/1/x", "main", AlreadyExists),
        ("nowhere", None, BranchNotFound),
    ],
)
def test_branches_that_can_not_be(graph: og.Graph, holds: bool, branch: str, base: str | None, kind: Any) -> None:
    graph.create_branch("agent/1")
    if kind is None:
        assert graph.load(EVE, branch=branch, base=base, engine="local").base_branch is None
        return
    before = graph.branches()
    with pytest.raises(kind):
        graph.load(EVE, branch=branch, base=base, engine="local")
    assert graph.branches() == before


def test_a_failed_ingest_makes_no_branch(graph: og.Graph, holds: bool) -> None:
    there = files(graph)
    with pytest.raises(LoadRejected):
        graph.ingest(lines([edge("Mentors", "ada", "nobody")]), "new", engine="local")
    assert graph.branches() == ["main"]
    assert files(graph) == there


def test_a_branch_that_somebody_else_creates_meanwhile(graph: og.Graph, holds: bool) -> None:
    other = og.open(graph.uri)
    made: list[bool] = []

    def create() -> None:
        if not made:
            made.append(True)
            other.create_branch("new")

    with failpoints.armed("load.prepared", create):
        result = graph.ingest(EVE, "new", engine="local")
    assert not result.branch_created
    assert "eve" in ids(graph, "node:Staff", "new")


# --- vectors ----------------------------------------------------------------------------------------------------------

EMBEDDED = 'node Doc { slug: String @key text: String? emb: Vector(4) @embed("text") note: String? }'


def test_vectors_are_made_at_load(tmp_path: Path, holds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setattr("omnigraph.load.vectors.TEXTS_AT_ONCE", 2)
    graph = graph_of(tmp_path / "g", EMBEDDED.replace("Vector(4)", "Vector(4)?"))
    given = [node("Doc", slug=f"d{n}", text=f"text {n % 3}") for n in range(5)]
    given += [
        node("Doc", slug="e", text="t", emb=[1, 0, 0, 0]),
        node("Doc", slug="f"),
        node("Doc", slug="g", text="t", emb=None),
    ]
    graph.load(lines(given), engine="local")
    found = {row["slug"]: row["emb"] for row in rows(graph, "node:Doc")}
    graph.mutate('query q() { insert Doc { slug: "m", text: "text 0" } }')
    made = {row["slug"]: row["emb"] for row in rows(graph, "node:Doc")}["m"]
    assert found["d0"] == found["d3"] == made
    assert found["d0"] != found["d1"]
    assert (found["e"], found["f"], found["g"]) == ([1, 0, 0, 0], None, None)


def test_a_required_vector(tmp_path: Path, holds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = graph_of(tmp_path / "g", EMBEDDED)
    graph.load(lines([node("Doc", slug="a", text="x")]), engine="local")
    for wrong in (node("Doc", slug="b"), node("Doc", slug="b", text="x", emb=None)):
        with pytest.raises(LoadRejected, match="'emb' of Doc is required"):
            graph.load(lines([wrong]), engine="local")


def test_a_provider_that_fails(tmp_path: Path, holds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only when all checks have passed is it asked; its failure is the load's, and nothing stays."""
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    graph = og.init(tmp_path / "g", EMBEDDED, embedding={"kind": "openai", "base_url": "http://127.0.0.1:9/v1",
        "api_key": "k", "retry_attempts": 1, "deadline_ms": 500})  # fmt: skip
    there = files(graph)
    with pytest.raises(LoadRejected):
        graph.load(lines([node("Doc", slug="a", text="x"), node("Doc", slug="a", text="y")]), engine="local")
    with pytest.raises(og.errors.EmbeddingError):
        graph.load(lines([node("Doc", slug="a", text="x")]), engine="local")
    assert files(graph) == there
    graph.load(lines([node("Doc", slug="a", text="x", emb=[1, 2, 3, 4])]), engine="local")


def test_errors_have_one_root() -> None:
    assert issubclass(LoadRejected, OmnigraphError)
    assert issubclass(KeyConflict, Conflict)
