"""A schema belongs to a branch state: branches change theirs, main changes its own, each reads and writes with its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.schema_files import archive_path
from omnigraph.errors import BadRequest, BranchNotFound, Conflict, TypecheckError
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_open_is_idle
from tests.evolution.people import BEFORE, ROWS, person
from tests.evolution.pictures import picture
from tests.evolution.processes import kill
from tests.evolution.test_migrations import leftovers

NICK = person("nick: String?")
HUMAN = person("n: I32 @default(4)", head='node Human @rename_from("Person")')
WORDS = BEFORE.replace("node Team {", 'node Team @description("d") {')


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", BEFORE)
    made.mutate(ROWS)
    return made


def names(graph: og.Graph, type_name: str, branch: str | None = None, snapshot: str | None = None) -> list[str]:
    text = f"query q() {{ match {{ $p: {type_name} }} return {{ $p.name }} order {{ $p.name }} }}"
    found = graph.query(text, branch=branch, snapshot=snapshot)
    return [row["p.name"] for row in found.to_dicts()]


def test_a_branch_has_a_schema_of_its_own(graph: og.Graph) -> None:
    graph.create_branch("b")
    before = picture(graph)
    applied = graph.apply_schema(HUMAN, branch="b")
    assert applied.applied
    assert applied.commit is not None
    assert applied.commit.branch == "b"
    assert graph.schema() == graph.schema("main") == BEFORE
    assert graph.schema("b") == HUMAN
    assert picture(graph) == before
    assert names(graph, "Human", branch="b") == ["ada", "ben", "cy"]
    with pytest.raises(TypecheckError):
        graph.query("query q() { match { $p: Human } return { $p.name } }")
    with pytest.raises(TypecheckError):
        graph.query("query q() { match { $p: Person } return { $p.name } }", branch="b")
    graph.mutate('query w() { insert Human { name: "dov", code: 8, n: 5 } }', branch="b")
    graph.mutate('query w() { insert Person { name: "eve", code: 9 } }')
    assert names(graph, "Human", branch="b") == ["ada", "ben", "cy", "dov"]
    assert names(graph, "Person") == ["ada", "ben", "cy", "eve"]
    assert leftovers(graph) == []
    assert graph.verify(deep=True).ok


def test_the_files_at_the_root_describe_main(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.apply_schema(HUMAN, branch="b")
    root = Path(graph.uri)
    assert (root / "_schema.pg").read_text() == BEFORE
    assert og.open(graph.uri).schema() == BEFORE
    assert og.open(graph.uri).at("b").schema() == HUMAN
    assert og.open(graph.uri, "ro").schema("b") == HUMAN


def test_main_changes_while_branches_exist(graph: og.Graph) -> None:
    graph.create_branch("b")
    branch = og.open(graph.uri).at("b")
    branch.mutate('query w() { insert Person { name: "dov", code: 8 } }')
    assert graph.apply_schema(HUMAN).applied
    assert graph.schema() == HUMAN
    assert branch.schema() == BEFORE
    assert graph.schema("b") == BEFORE
    branch.mutate('query w() { insert Person { name: "eve", code: 9 } insert Team { slug: "new" } }')
    branch.load([{"type": "Person", "data": {"name": "fay", "code": 10}}])
    assert names(branch, "Person") == ["ada", "ben", "cy", "dov", "eve", "fay"]
    assert names(graph, "Human") == ["ada", "ben", "cy"]
    assert og.open(graph.uri).at("b").schema() == BEFORE
    branch.optimize()
    branch.ensure_indices()
    graph.optimize()
    graph.cleanup(keep=1)
    assert names(branch, "Person") == ["ada", "ben", "cy", "dov", "eve", "fay"]
    assert graph.verify(deep=True).ok


@pytest.mark.parametrize("wanted", [NICK, HUMAN, person(without=["bio"]), person("n: I32 @default(4)"), WORDS])
def test_a_shared_table_is_forked_when_the_change_moves_it(graph: og.Graph, wanted: str) -> None:
    graph.create_branch("b")
    at_main = {entry.path: (entry.version, entry.branch) for entry in graph.snapshot().entries()}
    graph.apply_schema(wanted, branch="b")
    assert {entry.path: (entry.version, entry.branch) for entry in graph.snapshot().entries()} == at_main
    moved = [entry for entry in graph.snapshot("b").entries() if (entry.version, entry.branch) != at_main[entry.path]]
    assert all(entry.branch is not None for entry in moved)
    assert len(moved) == (0 if wanted is WORDS else 1)
    graph.mutate('query w() { update Person set { code: 7 } where name = "ada" }')
    assert graph.verify(deep=True).ok
    graph.delete_branch("b")
    assert graph.verify(deep=True).ok
    assert names(graph, "Person") == ["ada", "ben", "cy"]


def test_a_new_type_of_a_branch_is_its_own(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.apply_schema(BEFORE + "node Office { code: String @key }", branch="b")
    graph.mutate('query w() { insert Office { code: "x" } }', branch="b")
    graph.apply_schema(BEFORE + "node Depot { code: String @key }")
    graph.mutate('query w() { insert Depot { code: "y" } }')
    assert graph.snapshot().entries()[0].key == "node:Depot"
    assert graph.entity("node", "Office", "x", branch="b") is not None
    assert graph.entity("node", "Depot", "y") is not None
    assert graph.verify(deep=True).ok
    graph.delete_branch("b")
    graph.cleanup(keep=1)
    assert graph.verify(deep=True).ok


def test_what_two_branches_add_has_different_numbers(graph: og.Graph) -> None:
    wanted = person("nick: String?", rest=person().partition("}")[2] + "node Office { code: String @key }")
    found = []
    for name in ("a", "b"):
        graph.create_branch(name)
        graph.apply_schema(wanted, branch=name)
        catalog = graph.contract(name).catalog
        found.append((catalog.nodes["Person"].properties["nick"].id, catalog.nodes["Office"].id))
    graph.apply_schema(wanted)
    catalog = graph.contract().catalog
    found.append((catalog.nodes["Person"].properties["nick"].id, catalog.nodes["Office"].id))
    assert len({number for number, _ in found}) == 3
    assert len({number for _, number in found}) == 3


def test_snapshots_name_their_schema(graph: og.Graph) -> None:
    first = graph.head().id
    graph.create_branch("b")
    graph.apply_schema(HUMAN, branch="b")
    on_branch = graph.head("b").id
    graph.tag("v", on_branch)
    graph.apply_schema(person("m: I32 @default(4)", head='node Human @rename_from("Person")'), branch="b")
    assert graph.schema(snapshot=first) == BEFORE
    assert graph.schema(snapshot=on_branch) == graph.schema(snapshot="v") == HUMAN
    assert names(graph, "Human", snapshot=on_branch) == ["ada", "ben", "cy"]
    assert graph.query("query q() { match { $p: Human } return { $p.n } }", snapshot="v", schema="then").to_dicts()
    with pytest.raises(BadRequest, match="exclude"):
        graph.schema("b", snapshot="v")
    with pytest.raises(BranchNotFound):
        graph.schema("nobody")


def test_plans_are_made_for_a_branch(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.apply_schema(NICK, branch="b")
    assert [str(step) for step in graph.plan_schema(NICK).steps] == ["add property 'Person.nick' (String?)"]
    assert graph.plan_schema(NICK, branch="b").steps == ()
    assert not graph.at("b").apply_schema(NICK).applied


def test_an_open_handle_adopts_the_schema_of_its_branch(graph: og.Graph) -> None:
    graph.create_branch("b")
    other = og.open(graph.uri).at("b")
    assert names(other, "Person") == ["ada", "ben", "cy"]
    graph.apply_schema(HUMAN, branch="b")
    assert names(other, "Human") == ["ada", "ben", "cy"]
    other = og.open(graph.uri).at("b")
    other.query("query q() { match { $p: Human } return { $p.name } }")
    graph.apply_schema(HUMAN.replace("n: I32 @default(4)", "n: I32 @default(4)\nm: I32?"), branch="b")
    other.mutate('query w() { insert Human { name: "dov", code: 8, m: 1 } }')
    graph.apply_schema(HUMAN.replace("n: I32 @default(4)", "n: I32 @default(4)\nm: I32?\nk: I32?"), branch="b")
    other.load([{"type": "Human", "data": {"name": "eve", "code": 9, "k": 1}}])
    assert other.entity("node", "Human", "eve")["k"] == 1  # type: ignore[index]


def test_a_hard_drop_is_refused_while_another_branch_has_the_data(graph: og.Graph) -> None:
    graph.create_branch("b")
    with pytest.raises(Conflict, match="branch 'b' still has it"):
        graph.apply_schema(person(without=["bio"]), allow_data_loss=True)
    with pytest.raises(Conflict, match="branch 'main' still has it"):
        graph.apply_schema(person(without=["bio"]), branch="b", allow_data_loss=True)
    graph.apply_schema(BEFORE + "node Office { code: String @key }", branch="b")
    assert graph.apply_schema(BEFORE, branch="b", allow_data_loss=True).applied
    graph.delete_branch("b")
    assert graph.apply_schema(person(without=["bio"]), allow_data_loss=True).applied
    assert graph.verify(deep=True).ok


def test_a_branch_made_from_another_keeps_its_schema(graph: og.Graph) -> None:
    graph.create_branch("a")
    graph.apply_schema(HUMAN, branch="a")
    graph.create_branch("b", "a")
    graph.apply_schema(HUMAN.replace("n: I32 @default(4)", ""), branch="a")
    assert graph.schema("b") == HUMAN
    graph.mutate('query w() { insert Human { name: "dov", code: 8, n: 2 } }', branch="b")
    assert names(graph, "Human", branch="b") == ["ada", "ben", "cy", "dov"]
    graph.ingest([{"type": "Human", "data": {"name": "eve", "code": 9, "n": 2}}], "c", "b")
    assert graph.schema("c") == HUMAN
    assert graph.verify(deep=True).ok


# --- it dies ----------------------------------------------------------------------------------------------------------

#: Renamed, filled, dropped, a new type, a dropped type, rules: with forks of what main has.
MANY = person(
    "n: I32 @default(4)",
    head='node Human @rename_from("Person")',
    without=["bio"],
    rest="node Office { code: String @key } edge Knows: Human -> Human @card(0..9) { since: Date? place: String? }",
)
#: Every window, and whether the change is found done afterwards.
DEATHS = {
    "schema_apply.prepared": False,
    "schema_apply.pre_phase_a": False,
    "recovery.sidecar_write": False,
    "schema_apply.post_phase_a": False,
    "table_commit.before_commit": False,
    "table_commit.lost_acknowledgement": False,
    "schema_apply.mid_phase_b": False,
    "schema_apply.post_phase_b_pre_manifest_commit": True,
    "publisher.before_commit": True,
    "publisher.after_commit": True,
    "schema_apply.post_phase_c": True,
    "recovery.sidecar_delete": True,
}


@pytest.fixture(scope="module")
def branched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = og.init(tmp_path_factory.mktemp("branched") / "graph", BEFORE)
    graph.mutate(ROWS)
    return Path(graph.uri)


@pytest.mark.parametrize("failpoint", DEATHS)
def test_death_on_a_branch_with_forks(branched: Path, tmp_path: Path, failpoint: str) -> None:
    shutil.copytree(branched, tmp_path / "graph")
    uri = str(tmp_path / "graph")
    graph = og.open(uri)
    graph.create_branch("b")
    before = picture(graph)
    wanted = tmp_path / "wanted.pg"
    wanted.write_text(MANY)
    kill(uri, failpoint, "apply", str(wanted), "on", "b")
    survivor, happened = og.open(uri), DEATHS[failpoint]
    assert survivor.schema() == BEFORE
    assert picture(survivor) == before, "main has not noticed"
    assert survivor.schema("b") == (MANY if happened else BEFORE)
    on_branch = survivor.at("b")
    assert names(on_branch, "Human" if happened else "Person") == ["ada", "ben", "cy"]
    assert leftovers(survivor) == []
    assert_open_is_idle(connect(uri))
    assert on_branch.apply_schema(MANY).applied != happened
    on_branch.mutate('query w() { insert Human { name: "dov", code: 8 } insert Knows { from: "dov", to: "ada" } }')
    assert names(on_branch, "Human") == ["ada", "ben", "cy", "dov"]
    assert survivor.verify(deep=True).ok


def test_a_schema_that_is_not_kept_is_not_published(graph: og.Graph) -> None:
    """Recovery goes forward only when the archive has the schema."""
    graph.create_branch("b")
    fresh = og.open(graph.uri)

    def lose() -> None:
        for path in (Path(graph.uri) / "_schemas").glob("*.ir.json"):
            if path.name != f"{graph.contract().ir_hash}.ir.json":
                path.unlink()
        raise og.errors.StorageError("lost", kind="transient", path="x")

    with (
        failpoints.armed("schema_apply.post_phase_b_pre_manifest_commit", lose),
        pytest.raises(og.errors.OmnigraphError),
    ):
        fresh.apply_schema(NICK, branch="b")
    assert graph.schema("b") == BEFORE
    assert graph.apply_schema(NICK, branch="b").applied
    assert (Path(graph.uri) / archive_path(graph.contract("b").ir_hash)).exists()
