"""A publish that was staged ahead: used when it is what is to be published, and only then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.commit import rows
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.publisher import draft, publish
from omnigraph.commit.updates import SetTable, SetTag, Update
from omnigraph.storage.tables.commit import append_rows
from tests.commit.org import STAFF, TEAM, again, delete, ids, index, insert, lineage, staff, team


def staged_files(context: CommitContext) -> int:
    """How often rows of a publish were staged."""
    return len(list(Path(context.root.uri, "__manifest/data").iterdir()))


def test_a_draft_that_fits_is_committed_as_it_is(graph: CommitContext) -> None:
    planned, updates = lineage(), [SetTag("t", "x")]
    base = graph.manifest.warm()
    drafted = draft(graph, base, updates, planned)
    staged = staged_files(graph)
    state = publish(graph, MAIN, updates, [], planned, base, drafted)
    assert staged_files(graph) == staged
    assert (state.head, state.tags) == (planned.id, {"t": "x"})
    assert again(graph).manifest.load() == state


def test_a_draft_of_something_else_is_not_published(graph: CommitContext) -> None:
    planned = lineage()
    base = graph.manifest.warm()
    drafted = draft(graph, base, [SetTable(replace(base.state.by_key[STAFF], version=99))], planned)
    updates: list[Update] = [SetTag("t", "x")]
    publish(graph, MAIN, updates, [], planned, base, drafted)
    state = again(graph).manifest.load()
    assert (state.by_key[STAFF].version, state.tags) == (1, {"t": "x"})


def test_a_draft_that_fell_behind_is_made_anew_and_loses_nothing(graph: CommitContext) -> None:
    planned, updates = lineage(), [SetTag("mine", "x")]
    base = graph.manifest.warm()
    drafted = draft(graph, base, updates, planned)
    rival = insert(again(graph), {TEAM: team(["rival"])})
    publish(graph, MAIN, updates, [], planned, base, drafted)
    state = again(graph).manifest.load()
    assert (state.head, state.tags) == (planned.id, {"mine": "x"})
    assert state.by_key[TEAM] == rival.by_key[TEAM]
    commit = again(graph).manifest.find_commit(MAIN, planned.id)
    assert commit is not None
    assert commit.parent == rival.head


def test_a_publish_that_lance_rebased_is_read_back(graph: CommitContext) -> None:
    """A commit that leaves the fence alone does not conflict: the publish lands above it, and its rows count too."""
    planned, updates = lineage(), [SetTag("mine", "x")]
    base = graph.manifest.warm()
    drafted = draft(graph, base, updates, planned)
    theirs = rows.to_arrow([rows.tag_row("theirs", "y")], base.dataset.schema)
    append_rows(graph.root, "__manifest", theirs)
    state = publish(graph, MAIN, updates, [], planned, base, drafted)
    assert state.version == base.state.version + 2
    assert state.tags == {"mine": "x", "theirs": "y"}
    assert state == again(graph).manifest.load() == graph.manifest.load()


def _insert(context: CommitContext) -> None:
    insert(context, {STAFF: staff(["eve"]), TEAM: team(["red"])})


def _upsert(context: CommitContext) -> None:
    insert(context, {STAFF: staff(["ada", "eve"], level=2)}, upsert=True)


def _delete(context: CommitContext) -> None:
    delete(context, STAFF, ["ada"])


def _index(context: CommitContext) -> None:
    index(context, STAFF, "id")


@pytest.mark.parametrize(
    ("write", "rows"),
    [
        pytest.param(_insert, ["ada", "ben", "eve"], id="insert"),
        pytest.param(_upsert, ["ada", "ben", "eve"], id="upsert"),
        pytest.param(_delete, ["ben"], id="delete"),
        pytest.param(_index, ["ada", "ben"], id="index"),
    ],
)
def test_what_a_write_publishes_is_what_its_tables_hold(
    graph: CommitContext, write: Callable[[CommitContext], None], rows: list[str]
) -> None:
    """Versions and row counts are told ahead where they can be, and are right either way."""
    insert(graph, {STAFF: staff(["ada", "ben"])})
    write(graph)
    fresh = again(graph)
    entry = fresh.manifest.load().by_key[STAFF]
    assert entry.version == fresh.tables.head_version(entry.location)
    assert (entry.row_count, ids(fresh, STAFF)) == (len(rows), rows)
