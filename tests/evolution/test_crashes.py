"""Real schema changes in real processes, killed in every window: the schema and all rows are as before or as after."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import RecoveryRequired
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_open_is_idle
from tests.evolution.people import BEFORE, ROWS, person
from tests.evolution.pictures import picture
from tests.evolution.processes import kill
from tests.evolution.test_migrations import leftovers

#: A default, a renamed type, a new type, and a dropped property on one table; a dropped type; rules of an edge.
MANY = person(
    "n: I32 @default(4)",
    head='node Human @rename_from("Person")',
    without=["bio"],
    rest="node Office { code: String @key } edge Knows: Human -> Human @card(0..9) { since: Date? place: String? }",
)
#: No table moves.
WORDS = BEFORE.replace("node Team {", 'node Team @description("d") {')

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
    "schema_apply.before_promote": True,
    "schema_apply.mid_promote": True,
    "schema_apply.after_promote": True,
    "recovery.sidecar_delete": True,
}
#: What a change that moves no table does not pass.
OF_TABLES = {"table_commit.before_commit", "table_commit.lost_acknowledgement", "schema_apply.mid_phase_b"}
#: Its staged files are all there is of it, so it goes forward once they are there.
FORWARD_WITHOUT_TABLES = {"schema_apply.post_phase_a"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = og.init(tmp_path_factory.mktemp("filled") / "graph", BEFORE)
    graph.mutate(ROWS)
    graph.ensure_indices()
    return Path(graph.uri)


@pytest.fixture
def uri(filled: Path, tmp_path: Path) -> str:
    shutil.copytree(filled, tmp_path / "graph")
    return str(tmp_path / "graph")


def wanted(uri: str, text: str) -> str:
    path = Path(uri).with_name("wanted.pg")
    path.write_text(text)
    return str(path)


@pytest.mark.row("REC-12", "REC-13")
@pytest.mark.parametrize(
    ("failpoint", "flags"),
    [
        *(pytest.param(failpoint, (), id=f"{failpoint}-soft") for failpoint in DEATHS),
        # Until the publish a hard drop is like a soft one.
        *(pytest.param(failpoint, ("hard",), id=f"{failpoint}-hard") for failpoint, done in DEATHS.items() if done),
    ],
)
def test_death(uri: str, filled: Path, tmp_path: Path, failpoint: str, flags: tuple[str, ...], row: list[str]) -> None:
    before = picture(og.open(uri))
    shutil.copytree(filled, tmp_path / "undisturbed")
    undisturbed = og.open(tmp_path / "undisturbed")
    undisturbed.apply_schema(MANY, allow_data_loss=bool(flags))
    kill(uri, failpoint, "apply", wanted(uri, MANY), *flags)

    survivor = og.open(uri)
    happened = DEATHS[failpoint]
    assert picture(survivor) == (picture(undisturbed) if happened else before)
    assert survivor.schema() == (MANY if happened else BEFORE)
    assert survivor.snapshot().state.schema_hash == survivor.contract().ir_hash, "the manifest names another schema"
    assert leftovers(survivor) == []
    assert_open_is_idle(connect(uri))
    if happened:
        assert tables(uri) == tables(undisturbed.uri), "the files of what was dropped for good are gone"
    assert survivor.apply_schema(MANY, allow_data_loss=bool(flags)).applied != happened
    assert picture(survivor) == picture(undisturbed)
    survivor.mutate('query w() { insert Human { name: "dov", code: 8 } insert Knows { from: "dov", to: "ada" } }')
    assert survivor.entity("node", "Human", "dov") is not None


def tables(uri: str) -> int:
    return sum(1 for folder in ("nodes", "edges") for _ in (Path(uri) / folder).iterdir())


@pytest.mark.parametrize("failpoint", [name for name in DEATHS if name not in OF_TABLES])
def test_death_of_a_change_without_tables(uri: str, failpoint: str) -> None:
    before = picture(og.open(uri))
    kill(uri, failpoint, "apply", wanted(uri, WORDS))
    survivor = og.open(uri)
    happened = DEATHS[failpoint] or failpoint in FORWARD_WITHOUT_TABLES
    assert survivor.schema() == (WORDS if happened else BEFORE)
    assert picture(survivor) == before
    assert leftovers(survivor) == []
    assert survivor.apply_schema(WORDS).applied != happened


@pytest.mark.row("REC-22")
@pytest.mark.parametrize(
    ("failpoint", "accepted"),
    [("schema_apply.post_phase_a", False), ("schema_apply.mid_promote", False), ("schema_apply.after_promote", True)],
)
def test_a_read_only_open_of_a_change_that_died(uri: str, failpoint: str, accepted: bool, row: list[str]) -> None:
    kill(uri, failpoint, "apply", wanted(uri, MANY))
    if accepted:
        assert og.open(uri, "ro").schema() == MANY
        return
    with pytest.raises(RecoveryRequired, match="read-write"):
        og.open(uri, "ro")
    og.open(uri)
    og.open(uri, "ro")


@pytest.mark.parametrize(
    "failpoint", ["schema_apply.mid_phase_b", "schema_apply.post_phase_c", "schema_apply.mid_promote"]
)
def test_a_handle_that_was_open_goes_on(uri: str, failpoint: str) -> None:
    """Readers read, and the next write of the same handle settles what the dead change left, and so does an apply."""
    happened = DEATHS[failpoint]
    reader, writer, changer = og.open(uri, "ro"), og.open(uri), og.open(uri)
    before = picture(reader)
    kill(uri, failpoint, "apply", wanted(uri, MANY))
    assert picture(reader).keys() == ({"node:Human", "node:Office", "edge:Knows"} if happened else before.keys())
    type_name = "Human" if happened else "Person"
    writer.mutate(f'query w() {{ insert {type_name} {{ name: "dov", code: 8 }} }}')
    assert writer.schema() == (MANY if happened else BEFORE)
    assert changer.apply_schema(MANY).applied != happened
    assert reader.entity("node", "Human", "dov") is not None


def test_an_apply_settles_what_a_dead_apply_left(uri: str) -> None:
    """It is planned on the schema that recovery leads to, and that is nobody's conflict."""
    changer = og.open(uri)
    changer.schema()
    kill(uri, "schema_apply.post_phase_b_pre_manifest_commit", "apply", wanted(uri, MANY))
    applied = changer.apply_schema(MANY.replace("place: String?", "place: String? mark: I32?"))
    assert [str(step) for step in applied.plan.steps] == ["add property 'Knows.mark' (I32?)"]
