"""Schema changes of graphs that are not new and local: of an older format, and on an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.schema_files import ARCHIVE
from omnigraph.storage.root import Root
from tests.commit.old_format import old_graph
from tests.evolution.people import BEFORE, ROWS, person
from tests.evolution.pictures import picture

STAFF = """
node Human @rename_from("Staff") { handle: String @key rank: I32? @rename_from("level") }
node Team { code: String @key }
edge Mentors: Human -> Human { began: Date? }
edge MemberOf: Human -> Team
"""


@pytest.mark.parametrize("stamp", [2, 3])
@pytest.mark.parametrize("archived", [True, False], ids=["archived", "not-archived"])
def test_a_graph_of_an_older_format(tmp_path: Path, stamp: int, archived: bool) -> None:
    """Its states do not name their schema until the first change; they are read with the first one all the same."""
    uri = str(tmp_path / "graph")
    old = old_graph(uri, stamp)
    old.commit(["ada", "ben"])
    if not archived:
        for path in (tmp_path / "graph" / ARCHIVE).iterdir():
            path.unlink()
    graph = og.open(uri)
    before, head = picture(graph), graph.head()
    assert graph.snapshot().state.schema_hash is None
    graph.apply_schema(STAFF)
    graph.apply_schema(STAFF.replace("rank: I32?", "nick: String? rank: I32?"))
    assert graph.snapshot().state.schema_hash is not None
    assert [row["handle"] for row in picture(graph)["node:Human"]] == ["ada", "ben"]
    assert picture(graph, head.id, "then") == before
    assert [row["rank"] for row in picture(graph, head.id)["node:Human"]] == [1, 1]
    graph.mutate('query w() { insert Human { handle: "cy", nick: "c" } }')
    assert picture(og.open(uri)) == picture(graph)


def test_on_an_object_store(s3_root: Root) -> None:
    graph = og.init(s3_root.uri, BEFORE, storage_options=s3_root.storage_options)
    graph.mutate(ROWS)
    old, before = graph.head().id, picture(graph)
    reader = og.open(s3_root.uri, "ro", storage_options=s3_root.storage_options)
    wanted = person(
        "n: I32 @default(4)",
        "nick: String?",
        head='node Human @rename_from("Person")',
        without=["bio"],
        rest="node Office { code: String @key } edge Knows: Human -> Human @card(0..2) { since: Date? }",
    )
    graph.apply_schema(wanted)
    assert {row["n"] for row in picture(graph)["node:Human"]} == {4}
    assert picture(reader) == picture(graph)
    assert picture(graph, old, "then") == before
    graph.apply_schema("node Human { name: String @key }", allow_data_loss=True)
    assert [row["name"] for row in picture(graph)["node:Human"]] == ["ada", "ben", "cy"]
    graph.mutate('query w() { insert Human { name: "dov" } }')
    assert picture(og.open(s3_root.uri, storage_options=s3_root.storage_options)) == picture(graph)
