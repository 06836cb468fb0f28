"""Loads that change rows: `update` keeps what is not given, `merge` replaces the whole row and says what that costs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import BadRequest, LoadRejected, PreconditionFailed
from tests.load.conftest import Load
from tests.load.loading import edge, graph_of, lines, node, rows

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  city: String @default("nowhere")
  tags: [String]?
  level: I32
  badge: I32?
  photo: Blob?
  @range(level, 0..9)
  @unique(badge)
}
node Note { text: String  stars: I32? }
edge Knows: Person -> Person { since: I32?  note: String?  @key(src, dst) }
edge Met: Person -> Person { place: String? }
"""
ADA = node("Person", name="ada", age=36, city="London", tags=["x"], level=3, badge=1, photo="base64:aGVsbG8=")
BEN = node("Person", name="ben", level=4)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return graph_of(tmp_path / "g", SCHEMA, ADA, BEN, edge("Knows", "ada", "ben", since=2000, note="n"))


def person(graph: og.Graph, name: str) -> dict[str, Any]:
    return next(row for row in rows(graph, "node:Person") if row["name"] == name)


# --- update -----------------------------------------------------------------------------------------------------------


def test_rows_that_exist_keep_what_is_not_given(graph: og.Graph, load: Load) -> None:
    before = person(graph, "ada")
    done = load(graph, lines([node("Person", name="ada", age=37), edge("Knows", "ada", "ben", since=2001)]), "update")
    assert (done.nodes_loaded, done.edges_loaded, done.mode) == (1, 1, "update")
    assert person(graph, "ada") == {**before, "age": 37}
    assert person(graph, "ada")["photo"] == b"hello"
    (known,) = rows(graph, "edge:Knows")
    assert (known["since"], known["note"]) == (2001, "n")


def test_a_given_null_clears(graph: og.Graph, load: Load) -> None:
    load(graph, lines([node("Person", name="ada", age=None, tags=None)]), "update")
    assert (person(graph, "ada")["age"], person(graph, "ada")["tags"], person(graph, "ada")["badge"]) == (None, None, 1)


def test_new_rows_need_their_required_properties(graph: og.Graph, load: Load) -> None:
    load(graph, lines([node("Person", name="eve", level=1)]), "update")
    assert person(graph, "eve")["city"] == "nowhere"
    with pytest.raises(LoadRejected, match="1: property 'level' of Person is required"):
        load(graph, lines([node("Person", name="fay", age=1)]), "update")


def test_a_required_property_can_not_be_cleared(graph: og.Graph, load: Load) -> None:
    with pytest.raises(LoadRejected, match="property 'level' of Person is required"):
        load(graph, lines([node("Person", name="ada", level=None)]), "update")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([node("Person", name="ada", level=10)], "@range violation"),
        ([node("Person", name="ben", badge=1)], "@unique violation"),
        ([node("Person", name="ada", age=1), node("Person", name="ada", city="x")], "is given twice"),
        ([edge("Knows", "ada", "nobody", since=1)], "not found"),
    ],
)
def test_rules_hold_for_the_whole_row(graph: og.Graph, load: Load, given: list[Any], message: str) -> None:
    with pytest.raises(LoadRejected, match=message):
        load(graph, lines(given), "update")


def test_unique_values_may_move(graph: og.Graph, load: Load) -> None:
    load(graph, lines([node("Person", name="ada", badge=2), node("Person", name="ben", badge=1)]), "update")
    assert (person(graph, "ada")["badge"], person(graph, "ben")["badge"]) == (2, 1)


@pytest.mark.parametrize("kind", ["table", "csv", "parquet", "rows"])
def test_of_a_table_the_columns_that_are_there_are_given(graph: og.Graph, tmp_path: Path, kind: str) -> None:
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    table = pa.table({"name": ["ada", "ben"], "city": ["Rome", "Bonn"]})
    data: Any = table
    if kind == "csv":
        data = tmp_path / "people.csv"
        pacsv.write_csv(table, data)
    elif kind == "parquet":
        data = tmp_path / "people.parquet"
        pq.write_table(table, data)
    elif kind == "rows":
        data = [node("Person", **row) for row in table.to_pylist()]
    graph.load(data, "update", type=None if kind == "rows" else "Person")
    assert (person(graph, "ada")["city"], person(graph, "ada")["age"]) == ("Rome", 36)
    assert (person(graph, "ben")["city"], person(graph, "ben")["level"]) == ("Bonn", 4)


def test_a_row_without_a_key_is_known_by_its_id(graph: og.Graph, load: Load) -> None:
    load(graph, lines([{"type": "Note", "data": {"id": "n1", "text": "t", "stars": 3}}]))
    load(graph, lines([{"type": "Note", "data": {"id": "n1", "text": "u"}}, node("Note", text="new")]), "update")
    assert sorted((row["text"], row["stars"]) for row in rows(graph, "node:Note")) == [("new", None), ("u", 3)]


def test_on_a_branch_that_shares_its_tables(graph: og.Graph, load: Load) -> None:
    graph.create_branch("b")
    load(graph, lines([node("Person", name="ada", age=1)]), "update", branch="b")
    assert person(graph, "ada")["age"] == 36
    (changed,) = [row for row in rows(graph, "node:Person", "b") if row["name"] == "ada"]
    assert (changed["age"], changed["city"]) == (1, "London")


@pytest.mark.parametrize("moment", ["load.read", "load.checked", "load.prepared"])
def test_a_write_in_between_is_not_lost(graph: og.Graph, load: Load, moment: str) -> None:
    """The other one changes the city when the rows are read already; the load reads again and keeps the new one."""
    written: list[og.MutationResult] = []

    def write() -> None:
        if not written:
            written.append(graph.mutate('query q() { update Person set { city: "Oslo" } where name = "ada" }'))

    with failpoints.armed(moment, write):
        done = load(graph, lines([node("Person", name="ada", age=1)]), "update")
    assert done.report.restarts == 1
    assert (person(graph, "ada")["age"], person(graph, "ada")["city"]) == (1, "Oslo")


def test_a_repeat_answers_like_the_first_call(graph: og.Graph) -> None:
    data = lines([node("Person", name="ada", age=1)])
    first = graph.load(data, "update", idempotency_key="k")
    graph.mutate('query q() { update Person set { age: 50 } where name = "ada" }')
    assert graph.load(data, "update", idempotency_key="k").commit == first.commit
    assert person(graph, "ada")["age"] == 50


def test_a_column_that_is_left_out_is_another_request(graph: og.Graph) -> None:
    given = pa.table({"name": ["ada"], "age": pa.nulls(1, pa.int32())})
    graph.load(given, "update", type="Person", idempotency_key="k")
    with pytest.raises(BadRequest, match="was used for another request"):
        graph.load(given.select(["name"]), "update", type="Person", idempotency_key="k")


def test_if_commit(graph: og.Graph) -> None:
    head = graph.head().id
    graph.load([node("Person", name="ada", age=1)], "update", if_commit=head)
    with pytest.raises(PreconditionFailed):
        graph.load([node("Person", name="ada", age=2)], "update", if_commit=head)


# --- merge ------------------------------------------------------------------------------------------------------------


def test_a_merge_says_how_many_values_it_nulls(graph: og.Graph, load: Load) -> None:
    given = [node("Person", name="ada", level=1), node("Person", name="ben", level=2), edge("Knows", "ada", "ben")]
    done = load(graph, lines(given), "merge")
    assert done.report.cleared == {
        "Knows.note": 1,
        "Knows.since": 1,
        "Person.age": 1,
        "Person.badge": 1,
        "Person.photo": 1,
        "Person.tags": 1,
    }
    assert (person(graph, "ada")["age"], person(graph, "ada")["city"]) == (None, "nowhere")


def test_what_was_null_is_not_counted(graph: og.Graph, load: Load) -> None:
    whole = {"age": 1, "tags": ["y"], "badge": 7, "photo": "base64:aGVsbG8="}
    assert load(graph, lines([node("Person", name="ben", level=2)]), "merge").report.cleared == {}
    assert load(graph, lines([node("Person", name="ada", level=2, **whole)]), "merge").report.cleared == {}
    # Only the last line of an id counts.
    twice = [node("Person", name="ada", level=1), node("Person", name="ada", level=2, **whole)]
    assert load(graph, lines(twice), "merge").report.cleared == {}
    assert load(graph, lines([node("Person", name="zoe", level=2)]), "merge").report.cleared == {}


# --- edges without a key ----------------------------------------------------------------------------------------------


def test_edges_that_are_loaded_twice(graph: og.Graph, load: Load) -> None:
    data = lines([edge("Met", "ada", "ben", place="x"), edge("Met", "ben", "ada")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(graph, data).report.edges_again == ()
        assert load(graph, lines([edge("Met", "ada", "ada")])).report.edges_again == ()
    with pytest.warns(UserWarning, match=r"edges of Met .* twice .* declare `@key\(src, dst\)`") as told:
        assert load(graph, data).report.edges_again == ("Met",)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # With a key there is nothing to warn of.
        assert load(graph, lines([edge("Knows", "ada", "ben")]), "merge").report.edges_again == ()
