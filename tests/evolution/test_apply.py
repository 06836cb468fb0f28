"""Applying a schema: what it leaves in place, what older snapshots show, what stands in its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.schema_files import ARCHIVE
from omnigraph.errors import (
    BadRequest,
    CatalogError,
    Conflict,
    DriftNeedsRepair,
    HistoricalVersionReclaimed,
    NotFound,
    OmnigraphError,
    ParseError,
    RecoveryRequired,
    SchemaChanged,
    SchemaContractError,
    TypecheckError,
    ValidationError,
)
from omnigraph.graph.evolution import Evolution
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.staged import stage_append
from tests.evolution.people import BEFORE, PEOPLE, ROWS, person
from tests.evolution.pictures import picture

PEOPLE_NOW = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", BEFORE)
    made.mutate(ROWS)
    return made


def names(graph: og.Graph, query: str, **options: Any) -> list[Any]:
    return [row[next(iter(row))] for row in graph.query(query, **options)]


def files_of(graph: og.Graph, folder: str) -> set[str]:
    root = Path(graph.uri)
    return {str(path.relative_to(root)) for path in (root / folder).rglob("*") if path.is_file()}


# --- nothing is written again -----------------------------------------------------------------------------------------

CHEAP = [
    pytest.param(person("nick: String?"), id="add"),
    pytest.param(person(without=["bio"]), id="drop"),
    pytest.param(person('about: String? @rename_from("bio")', without=["bio"]), id="rename"),
    pytest.param(person("code: I64?"), id="relax"),
    pytest.param(person("mood: enum(glad, sad, calm)?", "bio: String? @index"), id="rules"),
    pytest.param(person(head='node Human @rename_from("Person")'), id="rename-type"),
]


@pytest.mark.parametrize("after", CHEAP)
def test_no_data_is_written(graph: og.Graph, after: str) -> None:
    before = {path for path in files_of(graph, "nodes") | files_of(graph, "edges") if "/data/" in path}
    graph.apply_schema(after)
    assert {path for path in files_of(graph, "nodes") | files_of(graph, "edges") if "/data/" in path} == before


def test_a_default_is_written_beside_what_is_there(graph: og.Graph) -> None:
    before = {path for path in files_of(graph, "nodes") if "/data/" in path}
    graph.apply_schema(person("n: I32 @default(4)"))
    after = {path for path in files_of(graph, "nodes") if "/data/" in path}
    assert before < after
    assert len(after - before) == 1, "one file for the one fragment"


@pytest.mark.parametrize("after", [*CHEAP, pytest.param(person("n: I32 @default(4)"), id="default")])
def test_indexes_survive(graph: og.Graph, after: str) -> None:
    graph.ensure_indices()
    before = {index.name for index in graph.snapshot().open("node:Person").indices()}
    graph.apply_schema(after)
    renamed = "node:Human" if "Human" in after else "node:Person"
    table = graph.snapshot().open(renamed)
    kept = {index.name for index in table.indices()}
    assert kept == before, "no index is lost, and none is built inline"
    assert table.take_ids(table.read(["id"])["id"], ["id"]).num_rows == len(PEOPLE)


def test_a_new_index_is_built_by_the_reconciler(graph: og.Graph) -> None:
    graph.ensure_indices()
    graph.apply_schema(person("age: I32? @index"))
    assert "age" not in {column for index in graph.snapshot().open("node:Person").indices() for column in index.columns}
    assert [(status.type_key, status.column) for status in graph.ensure_indices().built] == [("node:Person", "age")]


# --- older snapshots --------------------------------------------------------------------------------------------------


@pytest.mark.row("TT-14")
def test_a_renamed_type_is_found_in_older_snapshots(graph: og.Graph) -> None:
    old = graph.head().id
    human = person(head='node Human @rename_from("Person")')
    graph.apply_schema(human)
    graph.apply_schema(f"{human} node Person {{ name: String @key }}")
    everyone = "query q() { match { $p: Human } return { $p.name } order { $p.name } }"
    assert names(graph, everyone, snapshot=old) == ["ada", "ben", "cy"]
    for read in (
        lambda: graph.query(PEOPLE_NOW, snapshot=old),
        lambda: graph.entity("node", "Person", "ada", snapshot=old),
    ):
        with pytest.raises(NotFound, match="node:Person does not exist at this snapshot"):
            read()
    assert names(graph, PEOPLE_NOW) == []
    assert names(graph, PEOPLE_NOW, snapshot=old, schema="then") == ["ada", "ben", "cy"]
    with pytest.raises(TypecheckError):
        graph.query(everyone, snapshot=old, schema="then")


def test_a_renamed_property_is_found_in_older_snapshots(graph: og.Graph) -> None:
    old = graph.head().id
    graph.apply_schema(person('years: I32? @rename_from("age")', "nick: String?", without=["age"]))
    graph.apply_schema(person("years: I32?", "age: String?", "nick: String?"))
    years = 'query q() { match { $p: Person { name: "ada" } } return { $p.years } }'
    assert names(graph, years, snapshot=old) == [30]
    ages = 'query q() { match { $p: Person { name: "ada" } } return { $p.age } }'
    assert names(graph, ages, snapshot=old) == [None], "another property of the old name did not exist then"
    assert names(graph, ages, snapshot=old, schema="then") == [30]


def test_what_was_dropped_is_read_with_the_schema_of_then(graph: og.Graph) -> None:
    old, before = graph.head().id, picture(graph)
    graph.apply_schema("node Person { name: String @key }")
    assert picture(graph, old, "then") == before
    bios = "query q() { match { $p: Person } return { $p.bio } order { $p.name } }"
    assert names(graph, bios, snapshot=old, schema="then") == ["one", None, "one"]
    with pytest.raises(TypecheckError):
        graph.query(bios, snapshot=old)
    teams = "query q() { match { $t: Team } return { $t.slug } }"
    assert names(graph, teams, snapshot=old, schema="then") == ["core"]
    shown = graph.snapshot(at=old, schema="then")
    assert names(graph, teams, snapshot=shown) == ["core"], "a snapshot remembers which schema it is read with"
    assert graph.explain(teams, snapshot=old, schema="then") is not None


def test_the_schema_of_then_of_a_graph_that_never_changed(graph: og.Graph) -> None:
    assert picture(graph, graph.head().id, "then") == picture(graph)


def test_a_property_that_did_not_exist_yet_is_null(graph: og.Graph) -> None:
    old = graph.head().id
    graph.apply_schema(person("n: I32 @default(4)"))
    assert {row["n"] for row in picture(graph, old)["node:Person"]} == {None}
    assert {row["n"] for row in picture(graph)["node:Person"]} == {4}


def test_every_accepted_schema_is_kept(graph: og.Graph) -> None:
    graph.apply_schema(person("nick: String?"))
    graph.apply_schema(person("nick: String?", without=["bio"]))
    assert len(files_of(graph, ARCHIVE)) == 3
    versions = [graph.snapshot(at=commit.id).state.schema_hash for commit in graph.commits()]
    assert [f"{ARCHIVE}/{version}.ir.json" for version in versions if version] == [
        path for version in versions for path in files_of(graph, ARCHIVE) if str(version) in path
    ]


def test_an_archived_schema_that_is_lost_is_named(graph: og.Graph) -> None:
    old = graph.snapshot()
    graph.apply_schema(person("nick: String?"))
    (Path(graph.uri) / ARCHIVE / f"{old.state.schema_hash}.ir.json").unlink()
    with pytest.raises(SchemaContractError, match=f"{ARCHIVE}/.* is missing"):
        graph.query(PEOPLE_NOW, snapshot=old.commit, schema="then")
    assert names(graph, PEOPLE_NOW, snapshot=old.commit) == ["ada", "ben", "cy"]


def test_a_schema_is_of_now_or_of_then(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="schema is 'now' or 'then', not 'later'"):
        graph.query(PEOPLE_NOW, schema="later")  # type: ignore[arg-type]  # wrong on purpose


def test_a_dropped_blob(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "blobs", "node Doc { title: String @key body: Blob? }")
    graph.mutate('query w($b: Blob) { insert Doc { title: "a", body: $b } }', params={"b": "base64:AAEC"})
    old = graph.head().id
    graph.apply_schema('node Doc { title: String @key text: Blob? @rename_from("body") more: Blob? }')
    assert graph.read_blob("node", "Doc", "a", "text").read() == b"\x00\x01\x02"
    assert graph.read_blob("node", "Doc", "a", "text", snapshot=old).read() == b"\x00\x01\x02"
    with pytest.raises(NotFound):
        graph.read_blob("node", "Doc", "a", "more", snapshot=old)
    graph.apply_schema("node Doc { title: String @key }")
    assert graph.read_blob("node", "Doc", "a", "body", snapshot=old, schema="then").read() == b"\x00\x01\x02"


def test_a_blob_is_carried_when_a_table_is_rewritten(tmp_path: Path) -> None:
    """A filled column and a newly allowed null together make Lance write the table again."""
    graph = og.init(tmp_path / "blobs", "node Doc { title: String @key body: Blob? pages: I32 }")
    insert = "query w($t: String, $b: Blob?, $n: I32) { insert Doc { title: $t, body: $b, pages: $n } }"
    for number, (title, data) in enumerate({"a": "base64:AAEC", "b": None, "c": "base64:"}.items(), 1):
        graph.mutate(insert, params={"t": title, "b": data, "n": number})
    graph.apply_schema("node Doc { title: String @key body: Blob? more: Blob? pages: I32? n: I32 @default(1) }")
    assert graph.read_blob("node", "Doc", "a", "body").read() == b"\x00\x01\x02"
    assert graph.read_blob("node", "Doc", "c", "body").read() == b""
    with pytest.raises(NotFound, match="body is null"):
        graph.read_blob("node", "Doc", "b", "body")
    found = graph.query("query q() { match { $d: Doc } return { $d.pages $d.n } order { $d.title } }")
    assert [tuple(row.values()) for row in found] == [(1, 1), (2, 1), (3, 1)]


# --- hard drops -------------------------------------------------------------------------------------------------------


def test_a_hard_drop_of_a_type_removes_its_files(graph: og.Graph) -> None:
    old = graph.head().id
    path = graph.snapshot().entry("node:Team").path
    graph.apply_schema(person(rest="edge Knows: Person -> Person { since: Date? }"), allow_data_loss=True)
    assert not (Path(graph.uri) / path).exists()
    with pytest.raises(HistoricalVersionReclaimed):
        graph.query("query q() { match { $t: Team } return { $t.slug } }", snapshot=old, schema="then")
    assert names(graph, PEOPLE_NOW, snapshot=old, schema="then") == ["ada", "ben", "cy"]


def test_a_hard_drop_of_a_property_removes_what_the_table_was(graph: og.Graph) -> None:
    old, before = graph.head().id, picture(graph)["edge:Knows"]
    graph.apply_schema(person(without=["bio"]), allow_data_loss=True)
    with pytest.raises(HistoricalVersionReclaimed):
        graph.query(PEOPLE_NOW, snapshot=old, schema="then")
    assert names(graph, PEOPLE_NOW) == ["ada", "ben", "cy"]
    assert picture(graph)["edge:Knows"] == before
    graph.mutate('query w() { insert Person { name: "dov", code: 8 } }')
    assert names(og.open(graph.uri), PEOPLE_NOW) == ["ada", "ben", "cy", "dov"]


def test_what_is_tagged_is_not_dropped_for_good(graph: og.Graph) -> None:
    graph.tag("v1")
    head, before = graph.head(), files_of(graph, ".")
    for wanted, key in (
        (person(without=["bio"]), "node:Person"),
        (person(rest="edge Knows: Person -> Person"), "Team"),
    ):
        with pytest.raises(Conflict, match=rf"{key}.* tag 'v1' could not be read any more; delete it first"):
            graph.apply_schema(wanted, allow_data_loss=True)
    assert (graph.head(), files_of(graph, ".")) == (head, before)
    graph.apply_schema(person(without=["bio"]))
    assert names(graph, PEOPLE_NOW, snapshot="v1", schema="then") == ["ada", "ben", "cy"]
    graph.delete_tag("v1")
    graph.apply_schema(person(without=["bio", "age"]), allow_data_loss=True)


def test_a_tag_of_other_tables_is_not_in_the_way(graph: og.Graph) -> None:
    graph.tag("v1")
    graph.apply_schema(person() + "node Later { k: String @key v: I32? }")
    graph.apply_schema(person() + "node Later { k: String @key }", allow_data_loss=True)
    assert names(graph, PEOPLE_NOW, snapshot="v1") == ["ada", "ben", "cy"]


def test_a_tag_that_comes_before_the_window_is_kept(graph: og.Graph) -> None:
    other = og.open(graph.uri)
    with (
        failpoints.armed("schema_apply.prepared", lambda: other.tag("v1")),
        pytest.raises(Conflict, match="tag 'v1'"),
    ):
        graph.apply_schema(person(without=["bio"]), allow_data_loss=True)
    assert names(graph, PEOPLE_NOW, snapshot="v1") == ["ada", "ben", "cy"]


def test_a_soft_drop_removes_nothing(graph: og.Graph) -> None:
    before = files_of(graph, "nodes") | files_of(graph, "edges")
    graph.apply_schema("node Person { name: String @key }")
    assert before <= files_of(graph, "nodes") | files_of(graph, "edges")


def test_a_type_that_is_dropped_and_declared_again_starts_anew(graph: og.Graph) -> None:
    """The setup of CHG-13: another life of the same name."""
    old = graph.snapshot()
    without = BEFORE.replace("edge MemberOf: Person -> Team\n", "").replace("node Team {\n  slug: String @key\n}\n", "")
    graph.apply_schema(without)
    graph.apply_schema(BEFORE)
    assert picture(graph)["node:Team"] == []
    assert graph.snapshot().entry("node:Team").identity != old.entry("node:Team").identity
    with pytest.raises(NotFound, match="node:Team does not exist at this snapshot"):
        graph.entity("node", "Team", "core", snapshot=old.commit)
    graph.mutate('query w() { insert Team { slug: "core" } }')
    assert len(picture(graph)["node:Team"]) == 1


# --- what stands in the way -------------------------------------------------------------------------------------------


def test_other_branches_that_a_hard_drop_would_harm_are_named(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.create_branch("a/x")
    with pytest.raises(Conflict, match="branches 'a/x', 'b' still have it"):
        graph.apply_schema(person(without=["bio"]), allow_data_loss=True)
    assert graph.apply_schema(person("nick: String?")).applied, "nothing else is in their way"
    graph.delete_branch("b")
    graph.delete_branch("a/x")
    assert graph.apply_schema(person(without=["bio"]), allow_data_loss=True).applied


def test_a_read_only_handle_plans_and_does_not_apply(graph: og.Graph) -> None:
    reader = og.open(graph.uri, "ro")
    assert reader.plan_schema(person("nick: String?")).supported
    with pytest.raises(BadRequest, match="read-only"):
        reader.apply_schema(person("nick: String?"))


BAD = [
    pytest.param("node Person {", ParseError, id="grammar"),
    pytest.param("edge R: A -> B", CatalogError, id="unknown-endpoint"),
    pytest.param(person("_rowid: String?"), ParseError, id="reserved"),
    pytest.param(person("id: String?"), ParseError, id="id"),
    pytest.param(person('nick: String? @rename_from("bio")'), CatalogError, id="renamed-and-kept"),
    pytest.param(
        person('a: String? @rename_from("bio")', 'b: String? @rename_from("bio")', without=["bio"]),
        CatalogError,
        id="renamed-twice",
    ),
    pytest.param(
        person(rest='node Squad @rename_from("Team") { slug: String @key } edge R: Team -> Team'),
        CatalogError,
        id="endpoint-gone",
    ),
    pytest.param(person("bio: String? @rename_from()"), ParseError, id="empty-rename"),
    pytest.param(person('n: I32 @default("x")'), ParseError, id="bad-default"),
    pytest.param(person("v: Vector(0)?"), ParseError, id="no-dimension"),
    pytest.param("\x00", ParseError, id="nul"),
]


@pytest.mark.parametrize(("text", "error"), BAD)
def test_bad_schemas(graph: og.Graph, text: str, error: type[OmnigraphError]) -> None:
    head, before = graph.head(), files_of(graph, ".")
    for ask in (graph.plan_schema, graph.apply_schema):
        with pytest.raises(error):
            ask(text)
    assert (graph.head(), files_of(graph, ".")) == (head, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: I32? b: I32?", 'a: I32? @rename_from("b") b: I32? @rename_from("a")'),
        ("a: I32? b: I32? c: I32?", 'a: I32? @rename_from("c") b: I32? @rename_from("a") c: I32? @rename_from("b")'),
    ],
)
def test_names_are_not_exchanged_at_once(tmp_path: Path, before: str, after: str) -> None:
    """Such a schema looks the same before and after, so the next apply would exchange them again."""
    graph = og.init(tmp_path / "graph", f"node N {{ k: String @key {before} }}")
    for ask in (graph.plan_schema, graph.apply_schema):
        with pytest.raises(CatalogError, match="third name"):
            ask(f"node N {{ k: String @key {after} }}")
    for wanted in ("a: I32? @rename_from(a) b: I32?", "a: I32? @rename_from(b) b: I32?"):
        assert not graph.apply_schema(f"node N {{ k: String @key {wanted} {before[15:]} }}").applied


def test_types_do_not_exchange_names_at_once(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", "node A { k: String @key } node B { k: String @key x: I32? }")
    with pytest.raises(CatalogError, match="third name"):
        graph.apply_schema(
            'node B @rename_from("A") { k: String @key } node A @rename_from("B") { k: String @key x: I32? }'
        )


def test_examples_of_the_rows_in_the_way(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", "node N { k: String @key v: I32? }")
    inserts = " ".join(f'insert N {{ k: "k{number}", v: {number} }}' for number in range(20))
    graph.mutate(f"query w() {{ {inserts} }}")
    with pytest.raises(ValidationError) as broken:
        graph.apply_schema("node N { k: String @key v: I32? @range(v, 100..) }")
    assert broken.value.message.count("is not in 100..") == 5, "some examples, not all"
    assert all(f"(row 'k{number}')" in broken.value.message for number in range(5)), "each by its id"
    assert broken.value.message.endswith("change them first")
    assert (broken.value.kind, broken.value.type_key, broken.value.property) == ("range", "node:N", "v")


def test_a_drifted_table_is_not_planned_on(graph: og.Graph) -> None:
    """REC-27 for a schema change: a head that no record explains is for `repair`."""
    context = graph._context
    entry = context.manifest.load(MAIN).by_key["node:Person"]
    table = context.tables.open(entry.location, entry.version)
    rows = table.read(blobs="values")
    commit_staged(context.tables, stage_append(table, rows), expected_version=entry.version, transaction_id="x")
    with pytest.raises(DriftNeedsRepair, match="omnigraph repair"):
        graph.apply_schema(person("nick: String?"))
    assert graph.schema() == BEFORE


# --- handles that are open --------------------------------------------------------------------------------------------


def test_open_handles_follow(graph: og.Graph) -> None:
    other, reader = og.open(graph.uri), og.open(graph.uri, "ro")
    bound = other.at(MAIN)
    for handle in (other, reader, bound):
        assert names(handle, PEOPLE_NOW) == ["ada", "ben", "cy"]
    pinned = other.snapshot()
    graph.apply_schema(person("nick: String?", head='node Human @rename_from("Person")'))
    humans = "query q() { match { $p: Human } return { $p.name $p.nick } order { $p.name } }"
    for handle in (graph, other, reader, bound):
        assert names(handle, humans) == ["ada", "ben", "cy"]
        with pytest.raises(TypecheckError):
            handle.query(PEOPLE_NOW)
    assert names(other, humans, snapshot=pinned) == ["ada", "ben", "cy"]
    other.mutate('query w() { insert Human { name: "dov", code: 9, nick: "d" } }')
    assert names(graph, humans) == ["ada", "ben", "cy", "dov"]


def test_a_write_of_another_handle_is_judged_by_the_new_rules(graph: og.Graph) -> None:
    other = og.open(graph.uri)
    other.mutate('query w() { update Person set { bio: "two" } where name = "cy" }')
    graph.apply_schema(person("bio: String? @unique"))
    with pytest.raises(ValidationError, match="@unique"):
        other.mutate('query w() { insert Person { name: "dov", code: 9, bio: "two" } }')


# --- failures on the way ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failpoint", "happens"),
    [
        pytest.param("schema_apply.prepared", False, id="prepared"),
        pytest.param("schema_apply.pre_phase_a", False, id="before-A"),
        pytest.param("recovery.sidecar_write", False, id="A"),
        pytest.param("schema_apply.post_phase_a", False, id="after-A"),
        pytest.param("schema_apply.mid_phase_b", False, id="in-B"),
        pytest.param("schema_apply.post_phase_b_pre_manifest_commit", True, id="after-B"),
        pytest.param("schema_apply.post_phase_c", True, id="after-C"),
        pytest.param("schema_apply.before_promote", True, id="before-promote"),
        pytest.param("schema_apply.after_promote", True, id="after-promote"),
    ],
)
def test_a_failure_is_settled_at_once(graph: og.Graph, failpoint: str, happens: bool) -> None:
    """The same handle goes on: the change has happened as a whole, or nothing has."""
    before = picture(graph)
    wanted = person("n: I32 @default(4)", head='node Human @rename_from("Person")')
    wanted += "node Office { code: String @key }"
    with failpoints.armed(failpoint):
        if happens:
            assert graph.apply_schema(wanted).applied
        else:
            with pytest.raises(OmnigraphError):
                graph.apply_schema(wanted)
            assert (graph.schema(), picture(graph)) == (BEFORE, before)
            assert not graph.pending_operations()
    assert graph.apply_schema(wanted).applied != happens
    assert {row["n"] for row in picture(graph)["node:Human"]} == {4}
    assert graph.schema() == wanted
    assert picture(og.open(graph.uri)) == picture(graph)


def test_an_apply_settles_a_write_that_could_not_be_settled(graph: og.Graph) -> None:
    """The tables have moved and are not published: it is not planned on them, they are published first."""
    with (
        failpoints.armed("mutation.post_phase_b_pre_manifest_commit"),
        failpoints.armed("recovery.before_roll_forward"),
        pytest.raises(RecoveryRequired),
    ):
        graph.mutate('query w() { insert Person { name: "dov", code: 1 } }')
    assert len(graph.pending_operations()) == 1
    with pytest.raises(ValidationError, match="@unique violation on Person.code"):
        graph.apply_schema(person("code: I64 @unique"))
    assert graph.apply_schema(person("n: I32 @default(4)")).applied
    assert {row["name"]: row["n"] for row in picture(graph)["node:Person"]} == dict.fromkeys(
        ["ada", "ben", "cy", "dov"], 4
    )


def test_a_property_that_an_interface_renames(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", "interface I { x: I32? } node A implements I { k: String @key }")
    graph.mutate('query w() { insert A { k: "a", x: 1 } }')
    wanted = 'interface I { y: I32? @rename_from("x") } node A implements I { k: String @key }'
    applied = graph.apply_schema(wanted)
    assert [step.kind for step in applied.plan.steps] == ["update_type_metadata", "rename_property"]
    assert graph.entity("node", "A", "a") == {"id": "a", "k": "a", "y": 1}


# --- one request, sent twice at once ----------------------------------------------------------------------------------


def test_a_sending_that_an_earlier_one_overtook_gets_its_answer(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is published after this one has looked for a receipt, so this one finds nothing to change."""
    wanted, other = person("nick: String?"), og.open(graph.uri)
    done: list[Any] = []
    receipt = Manifest.receipt

    def overtaken(manifest: Manifest, branch: str, key: str) -> Any:
        found = receipt(manifest, branch, key)
        if not done:
            done.append(None)
            done[0] = other.apply_schema(wanted, idempotency_key="once")
        return found

    monkeypatch.setattr(Manifest, "receipt", overtaken)
    told = graph.apply_schema(wanted, idempotency_key="once")
    assert told == done[0]
    assert told.commit is not None
    assert [commit.kind for commit in graph.commits()].count("schema") == 1
    with pytest.raises(BadRequest, match="was used for another request"):
        graph.apply_schema(person("nick: String?", "name2: String?"), idempotency_key="once")


def test_a_change_that_another_one_overtook(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the accepted schema and the look at the tables another process renames a column."""
    other, planned = og.open(graph.uri), Evolution._change
    added = BEFORE.replace("name: String @key", "name: String @key\n  added: I64?", 1)
    renamed = BEFORE.replace("age: I32?", 'years: I32? @rename_from("age")', 1)
    assert BEFORE not in (added, renamed)

    def overtaken(self: og.Graph, *arguments: Any) -> Any:
        monkeypatch.undo()
        change = planned(self, *arguments)
        other.apply_schema(renamed)
        return change

    monkeypatch.setattr(Evolution, "_change", overtaken)
    with pytest.raises(SchemaChanged):
        graph.apply_schema(added)
    assert other.schema() == renamed
    assert graph.apply_schema(renamed.replace("name: String @key", "name: String @key\n  added: I64?", 1)).applied
