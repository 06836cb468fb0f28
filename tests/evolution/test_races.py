"""Schema changes next to other work: other changes, inserts, new branches, readers, in threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import (
    Conflict,
    LoadRejected,
    SchemaChanged,
    TypecheckError,
    ValidationError,
)
from tests.evolution.people import BEFORE, ROWS, person
from tests.evolution.pictures import picture
from tests.evolution.processes import answer, start
from tests.evolution.test_migrations import leftovers

HUMAN = person("n: I32 @default(4)", head='node Human @rename_from("Person")')


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", BEFORE)
    made.mutate(ROWS)
    return made


def once(action: Callable[[], object]) -> Callable[[], None]:
    """An action of a failpoint that happens at its first passing only."""
    waiting = [action]

    def act() -> None:
        if waiting:
            waiting.pop()()

    return act


# --- in between -------------------------------------------------------------------------------------------------------


def test_a_row_that_comes_before_the_window_is_judged(graph: og.Graph) -> None:
    """Prepared again, inside the window: the new row breaks the rule that the old ones kept."""
    other = og.open(graph.uri)

    def insert() -> None:
        other.mutate('query w() { insert Person { name: "dov", code: 1 } }')

    with (
        failpoints.armed("schema_apply.prepared", once(insert)),
        pytest.raises(ValidationError, match="@unique violation on Person.code"),
    ):
        graph.apply_schema(person("code: I64 @unique"))
    assert graph.schema() == BEFORE
    assert leftovers(graph) == []


def test_a_row_that_comes_before_the_window_is_kept(graph: og.Graph) -> None:
    other = og.open(graph.uri)

    def insert() -> None:
        other.mutate('query w() { insert Person { name: "dov", code: 9 } }')

    with failpoints.armed("schema_apply.prepared", once(insert)):
        graph.apply_schema(HUMAN)
    rows = {row["name"]: row["n"] for row in picture(graph)["node:Human"]}
    assert rows == {"ada": 4, "ben": 4, "cy": 4, "dov": 4}


#: A wider type, a computed property, ids from a key.
REWRITTEN = "node T { k: String n: I64 slug: String @key } edge E: T -> T { w: F64? }"
PLAIN = "node T { k: String n: I32 } edge E: T -> T { w: I32? }"
SLUGS = {"T.slug": 'concat("t-", k)'}


@pytest.mark.parametrize("shared", [False, True], ids=["main", "shared"])
def test_a_row_that_comes_while_columns_are_rewritten_has_its_values(tmp_path: Path, shared: bool) -> None:
    """What was prepared without the row is prepared again, inside the window, with it; and with files that were compacted."""
    graph = og.init(tmp_path / "graph", PLAIN)
    for number in range(3):
        graph.mutate(f'query w() {{ insert T {{ k: "{number}", n: {number} }} }}')
    first = graph.snapshot().open("node:T").read(["id"])["id"][0].as_py()
    branch = "b" if shared else None
    if shared:
        graph.create_branch("b")
    other = og.open(graph.uri)

    def write() -> None:
        other.mutate('query w() { insert T { k: "late", n: 9 } }', branch=branch)
        other.load([{"edge": "E", "from": first, "to": first, "data": {"w": 3}}], branch=branch)
        other.optimize(branch)

    with failpoints.armed("schema_apply.prepared", once(write)):
        graph.apply_schema(REWRITTEN, branch=branch, backfill=SLUGS)
    rows = graph.snapshot(branch).open("node:T").read(["id", "k", "n", "slug"]).to_pylist()
    assert sorted((row["id"], row["slug"], row["n"]) for row in rows) == [
        ("t-0", "t-0", 0),
        ("t-1", "t-1", 1),
        ("t-2", "t-2", 2),
        ("t-late", "t-late", 9),
    ]
    (edge,) = graph.snapshot(branch).open("edge:E").read(["src", "dst", "w"]).to_pylist()
    assert edge == {"src": edge["src"], "dst": edge["src"], "w": 3.0}
    assert edge["src"] in {row["id"] for row in rows}
    assert leftovers(graph) == []
    assert graph.verify(deep=True).ok


def test_a_row_that_comes_late_and_breaks_a_backfill_refuses_it(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", PLAIN)
    graph.mutate('query w() { insert T { k: "a", n: 1 } }')
    other = og.open(graph.uri)
    with (
        failpoints.armed(
            "schema_apply.prepared", once(lambda: other.mutate('query w() { insert T { k: "a", n: 2 } }'))
        ),
        pytest.raises(ValidationError, match="@key violation on T.slug"),
    ):
        graph.apply_schema(REWRITTEN, backfill=SLUGS)
    assert graph.schema() == PLAIN
    assert leftovers(graph) == []


def test_a_backfill_that_somebody_else_has_done_meanwhile_does_nothing(tmp_path: Path) -> None:
    schema = "node T { k: String @key x: String? }"
    graph = og.init(tmp_path / "graph", schema)
    graph.mutate('query w() { insert T { k: "a" } }')
    other = og.open(graph.uri)
    with failpoints.armed(
        "schema_apply.prepared", once(lambda: other.mutate('query w() { update T set { x: "mine" } where k = "a" }'))
    ):
        applied = graph.apply_schema(schema, backfill={"T.x": "k"})
    assert not applied.applied
    assert graph.entity("node", "T", "a")["x"] == "mine"  # type: ignore[index]


def test_a_change_that_lost_to_another_is_a_conflict(graph: og.Graph) -> None:
    other = og.open(graph.uri)
    with (
        failpoints.armed("schema_apply.prepared", once(lambda: other.apply_schema(person("nick: String?")))),
        pytest.raises(SchemaChanged, match="repeat"),
    ):
        graph.apply_schema(person(without=["bio"]))
    assert graph.schema() == person("nick: String?")
    assert leftovers(graph) == []


def test_a_branch_that_comes_before_the_window_of_a_hard_drop_is_named(graph: og.Graph) -> None:
    with (
        failpoints.armed("schema_apply.prepared", once(lambda: og.open(graph.uri).create_branch("late"))),
        pytest.raises(Conflict, match="'late'"),
    ):
        graph.apply_schema(person(without=["bio"]), allow_data_loss=True)
    assert graph.schema() == BEFORE


def test_a_branch_that_comes_before_the_window_keeps_the_schema_before(graph: og.Graph) -> None:
    with failpoints.armed("schema_apply.prepared", once(lambda: og.open(graph.uri).create_branch("late"))):
        graph.apply_schema(HUMAN)
    assert graph.schema() == HUMAN
    assert graph.schema("late") == BEFORE
    assert graph.entity("node", "Person", "ada", branch="late") is not None


@pytest.mark.parametrize(
    ("change", "query", "error"),
    [
        pytest.param(HUMAN, 'query w() { insert Person { name: "dov", code: 9 } }', TypecheckError, id="renamed"),
        pytest.param(
            person("code: I64 @unique"),
            'query w() { insert Person { name: "dov", code: 1 } }',
            ValidationError,
            id="rule",
        ),
        pytest.param(
            person("code: I64 @unique"),
            'query w() { update Person set { code: 1 } where name = "ben" }',
            ValidationError,
            id="update",
        ),
        pytest.param(
            person("nick: String?"), 'query w() { insert Person { name: "dov", code: 9 } }', None, id="insert"
        ),
        pytest.param(
            person("nick: String?"), 'query w() { update Person set { code: 9 } where name = "ben" }', None, id="update"
        ),
        pytest.param(person("nick: String?"), 'query w() { delete Person where name = "ben" }', None, id="delete"),
        pytest.param(
            person(without=["bio"]), 'query w() { insert Person { name: "dov", code: 9 } }', None, id="dropped"
        ),
    ],
)
def test_a_mutation_that_lost_to_a_change_starts_over_under_the_new_schema(
    graph: og.Graph, change: str, query: str, error: type[Exception] | None
) -> None:
    writer = og.open(graph.uri)
    writer.query("query q() { match { $p: Person } return { $p.name } }")
    with failpoints.armed("mutation.prepared", once(lambda: graph.apply_schema(change))):
        if error is None:
            assert writer.mutate(query).commit is not None
        else:
            with pytest.raises(error):
                writer.mutate(query)
    assert graph.schema() == change
    assert leftovers(graph) == []
    kinds = [commit.kind for commit in graph.commits()]
    assert kinds[: 1 if error else 2] == (["schema"] if error else ["mutation", "schema"])


@pytest.mark.parametrize("failpoint", ["load.read", "load.checked", "load.prepared"])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_load_that_lost_to_a_change_starts_over_under_the_new_schema(
    graph: og.Graph, failpoint: str, mode: Literal["append", "merge", "overwrite"]
) -> None:
    writer = og.open(graph.uri)
    # An edge needs `core`, so an overwrite brings it along.
    slugs = ["labs", "ops", *(["core"] if mode == "overwrite" else [])]
    change = person(rest='node Team { slug: String @key motto: String @default("go") } edge R: Person -> Team')
    with failpoints.armed(failpoint, once(lambda: graph.apply_schema(change))):
        writer.load([{"type": "Team", "data": {"slug": slug}} for slug in slugs], mode)
    shown = {row["slug"]: row["motto"] for row in picture(graph)["node:Team"]}
    assert shown == {"core": "go", "labs": "go", "ops": "go"}
    assert leftovers(graph) == []


def test_a_load_that_lost_to_a_rename_is_told_that_the_type_is_unknown(graph: og.Graph) -> None:
    writer = og.open(graph.uri)
    change = BEFORE.replace("node Team {", 'node Squad @rename_from("Team") {').replace("-> Team", "-> Squad")
    with (
        failpoints.armed("load.checked", once(lambda: graph.apply_schema(change))),
        pytest.raises(LoadRejected),
    ):
        writer.load([{"type": "Team", "data": {"slug": "labs"}}])
    assert [row["slug"] for row in picture(graph)["node:Squad"]] == ["core"]
    assert leftovers(graph) == []


def test_indexes_that_lost_to_a_change_are_built_under_the_new_schema(graph: og.Graph) -> None:
    """Built for a column that was renamed before they were committed."""
    graph.apply_schema(person("age: I32? @index"))
    builder = og.open(graph.uri)
    renamed = person('years: I32? @index @rename_from("age")', without=["age"])
    with failpoints.armed("staging.job_written", once(lambda: graph.apply_schema(renamed))):
        report = builder.ensure_indices()
    assert "years" in {status.column for status in report.built if status.type_key == "node:Person"}
    assert "age" not in {status.column for status in report.built}


@pytest.mark.parametrize("verb", ["optimize", "ensure_indices"])
@pytest.mark.parametrize(
    "after",
    [person(without=["age"]), person('years: I32? @index @rename_from("age")', without=["age"]), person("age: I32?")],
    ids=["dropped", "renamed", "no longer indexed"],
)
def test_maintenance_that_lost_to_a_change_leaves_no_index_of_the_schema_before(
    graph: og.Graph, verb: str, after: str
) -> None:
    """The indexed property goes, from another handle, while the index on it is being built."""
    graph.apply_schema(person("age: I32? @index"))
    builder, changed = og.open(graph.uri), once(lambda: graph.apply_schema(after))
    getattr(builder, verb)(progress=lambda *_: changed())
    declared = set(graph.contract().catalog.nodes["Person"].properties)
    table = graph.snapshot().open("node:Person")
    indexed = {column for index in table.indices() for column in index.columns}
    assert indexed <= {"id", *declared}
    assert ("years" in indexed) == ("years" in declared)
    assert "age" not in indexed
    graph.mutate('query q() { insert Person { name: "zoe", code: 4 } }')
    assert graph.entity("node", "Person", "zoe") is not None
    assert leftovers(graph) == []


def test_a_merge_that_lost_to_a_change_starts_over_under_the_new_schema(graph: og.Graph) -> None:
    graph.create_branch("feature")
    graph.at("feature").mutate('query w() { insert Person { name: "dov", code: 9 } }')
    with failpoints.armed("branch_merge.prepared", once(lambda: og.open(graph.uri).apply_schema(HUMAN))):
        assert graph.merge("feature").outcome == "merged"
    assert graph.schema() == HUMAN
    assert {row["name"] for row in picture(graph)["node:Human"]} == {"ada", "ben", "cy", "dov"}
    assert leftovers(graph) == []


@pytest.mark.parametrize("verb", ["revert", "cherry_pick"])
def test_a_picked_commit_that_lost_to_a_change_starts_over_under_the_new_schema(graph: og.Graph, verb: str) -> None:
    commit = graph.mutate('query w() { insert Team { slug: "labs" } }').commit
    assert commit is not None
    if verb == "cherry_pick":
        graph.mutate('query w() { delete Team where slug = "labs" }')
    before = {row["slug"] for row in picture(graph)["node:Team"]}
    change = person(rest="node Team { slug: String @key motto: String? } edge R: Person -> Team")
    picker = og.open(graph.uri)
    with failpoints.armed("branch_merge.prepared", once(lambda: graph.apply_schema(change))):
        assert getattr(picker, verb)(commit.id).outcome == "merged"
    after = {row["slug"] for row in picture(graph)["node:Team"]}
    assert after == (before - {"labs"} if verb == "revert" else before | {"labs"})
    assert graph.schema() == change
    assert leftovers(graph) == []


# --- readers in the window --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failpoint", "published"),
    [
        ("schema_apply.mid_phase_b", False),
        ("schema_apply.post_phase_c", True),
        ("schema_apply.before_promote", True),
        ("schema_apply.mid_promote", True),
        ("schema_apply.after_promote", True),
    ],
)
def test_a_reader_sees_the_whole_change_or_nothing(graph: og.Graph, failpoint: str, published: bool) -> None:
    reader, before, seen = og.open(graph.uri, "ro"), picture(graph), []
    fresh = og.open(graph.uri)

    def read() -> None:
        seen.append(picture(reader))
        seen.append(picture(fresh))

    wanted = f"{HUMAN} node Office {{ code: String @key }}"
    with failpoints.armed(failpoint, read):
        graph.apply_schema(wanted)
    after = picture(graph)
    assert seen
    assert all(shown == (after if published else before) for shown in seen)
    assert picture(reader) == picture(fresh) == after


def test_opening_waits_for_a_change_that_is_under_way(graph: og.Graph) -> None:
    opened: list[Any] = []
    thread = threading.Thread(target=lambda: opened.append(og.open(graph.uri).schema()))

    def open_meanwhile() -> None:
        thread.start()
        # It can not get far: it meets files that do not fit together, and waits for their lock.
        thread.join(0.5)

    with failpoints.armed("schema_apply.mid_promote", once(open_meanwhile)):
        graph.apply_schema(f"{HUMAN} node Office {{ code: String @key }}")
    thread.join()
    assert opened == [graph.schema()]


def test_writers_in_threads(graph: og.Graph) -> None:
    """Whatever is acknowledged is there, under the name it has at the end."""
    done: list[str] = []
    stop = threading.Event()

    def write(writer: og.Graph, prefix: str) -> None:
        number = 0
        while not stop.is_set() or number < 3:
            number += 1
            for type_name in ("Person", "Human"):
                try:
                    writer.mutate(f'query w() {{ insert {type_name} {{ name: "{prefix}{number}", code: {number} }} }}')
                except TypecheckError:
                    continue
                done.append(f"{prefix}{number}")
                break

    threads = [threading.Thread(target=write, args=(og.open(graph.uri), name)) for name in "xy"]
    for thread in threads:
        thread.start()
    graph.apply_schema(HUMAN)
    stop.set()
    for thread in threads:
        thread.join()
    shown = {row["name"] for row in picture(graph)["node:Human"]}
    assert shown == {"ada", "ben", "cy", *done}
    assert {row["n"] for row in picture(graph)["node:Human"]} == {4}
    assert leftovers(graph) == []


# --- processes --------------------------------------------------------------------------------------------------------


def test_two_processes_change_the_schema_at_once(graph: og.Graph, tmp_path: Path) -> None:
    texts = {name: person(f"{name}: String?") for name in ("left", "right")}
    for name, text in texts.items():
        (tmp_path / f"{name}.pg").write_text(text)
    children = [
        start(graph.uri, "apply", str(tmp_path / f"{name}.pg"), failpoints="schema_apply.prepared=delay:300")
        for name in texts
    ]
    told = [answer(child) for child in children]
    assert told.count(True) >= 1
    assert set(map(str, told)) <= {"True", "SchemaChanged"}
    schemas = [commit for commit in graph.commits() if commit.kind == "schema"]
    assert len(schemas) == told.count(True)
    assert graph.schema() in texts.values()
    assert leftovers(graph) == []


def test_one_process_inserts_while_another_changes_the_schema(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "wanted.pg").write_text(HUMAN)
    inserting = start(graph.uri, "insert", "1", "25")
    changing = start(graph.uri, "apply", str(tmp_path / "wanted.pg"))
    assert answer(changing) is True
    done = answer(inserting)
    assert len(done) == 25
    rows = picture(graph)["node:Human"]
    assert {row["name"] for row in rows} == {"ada", "ben", "cy", *done}
    assert {row["n"] for row in rows} == {4}
    assert leftovers(graph) == []


def test_a_branch_and_a_change_at_once(graph: og.Graph, tmp_path: Path) -> None:
    """The branch is made of main before or after the change, as a whole: its tables are those of its schema."""
    (tmp_path / "wanted.pg").write_text(HUMAN)
    branching = start(graph.uri, "branch", "late")
    changing = start(graph.uri, "apply", str(tmp_path / "wanted.pg"))
    changed, made = answer(changing), answer(branching)
    assert changed is True
    assert str(made).startswith("manifest:late:v")
    assert graph.schema() == HUMAN
    before = graph.schema("late") == BEFORE
    assert before or graph.schema("late") == HUMAN
    assert graph.entity("node", "Person" if before else "Human", "ada", branch="late") is not None
    graph.at("late").query("query q() { match { $t: Team } return { $t.slug } }")
