"""docs/format.md is enough to read a graph: a reader with Lance, PyArrow and the page's words, and nothing of ours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lance
import pyarrow.compute as pc
import pytest

import omnigraph as og
from tests.mutation.org_graph import call, commit_of, ids, org_graph

#: A table of a state: its path, its Lance branch and its version, by type key.
State = dict[str, tuple[str, str | None, int]]


@dataclass
class Reader:
    """A graph as the page describes it."""

    root: Path

    def manifest(self, branch: str, version: int | None = None) -> Any:
        line = self.root / "__manifest" if branch == "main" else self.root / "__manifest" / "tree" / branch
        return lance.dataset(str(line), version=version)

    def branches(self) -> list[str]:
        refs = self.root / "__manifest" / "_refs" / "branches"
        return ["main", *sorted(path.name.removesuffix(".json") for path in refs.glob("*.json"))]

    def commits(self, branch: str) -> dict[str, dict[str, Any]]:
        columns = ["object_id", "metadata", "_row_created_at_version"]
        table = self.manifest(branch).to_table(columns=columns, filter=pc.field("object_type") == "graph_commit")
        found = {}
        for row in table.to_pylist():
            commit = json.loads(row["metadata"])
            found[row["object_id"]] = {"manifest_version": row["_row_created_at_version"], **commit}
        return found

    def head(self, branch: str) -> str:
        (fence,) = self.manifest(branch).to_table(filter=pc.field("object_type") == "fence").to_pylist()
        head: str = json.loads(fence["metadata"])["head"]
        return head

    def state_at(self, branch: str, version: int) -> tuple[str, State]:
        """The newest commit of a version of a manifest, and its tables."""
        rows = self.manifest(branch, version).to_table().to_pylist()
        paths = {row["object_id"].removeprefix("table:"): row for row in rows if row["object_type"] == "table"}
        dropped = {
            row["object_id"].removeprefix("tombstone:") for row in rows if row["object_type"] == "table_tombstone"
        }
        state = {}
        for row in rows:
            name = row["object_id"].removeprefix("version:")
            if row["object_type"] == "table_version" and name not in dropped:
                registered = paths[name]
                state[registered["table_key"]] = (registered["location"], row["table_branch"], row["table_version"])
        (fence,) = (json.loads(row["metadata"]) for row in rows if row["object_type"] == "fence")
        return fence["head"], state

    def state_of(self, commit_id: str, commit: dict[str, Any]) -> State:
        """The state of a commit: on its branch, or as it was written down when that went."""
        if commit["branch"] in self.branches():
            head, state = self.state_at(commit["branch"], commit["manifest_version"])
            if head == commit_id:
                return state
        for path in sorted((self.root / "__retired" / quote(commit["branch"], safe="")).glob("*.json")):
            tables: dict[tuple[int, int], dict[str, Any]] = {}
            for publish in json.loads(path.read_bytes())["publishes"]:
                for identity in publish["dropped"]:
                    tables.pop(tuple(identity))
                tables |= {tuple(table["identity"]): table for table in publish["tables"]}
                if commit_id in publish["commits"]:
                    return {
                        table["key"]: (table["path"], table["branch"], table["version"]) for table in tables.values()
                    }
        raise LookupError(commit_id)

    def ids(self, state: State, type_key: str) -> list[str]:
        path, branch, version = state[type_key]
        place = self.root / path if branch is None else self.root / path / "tree" / branch
        return sorted(lance.dataset(str(place), version=version).to_table(columns=["id"])["id"].to_pylist())


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """A graph with a live branch, a name that was used three times, and commits on all of them."""
    graph = org_graph(tmp_path / "g")
    for person in ("eve", "fay", "gus"):
        graph.create_branch("again")
        call(graph, "put", person, 1, branch="again", message=f"hire {person}")
        call(graph, "put", f"{person}-too", 1, branch="again")
        graph.merge("again", delete_branch=True)
    graph.create_branch("live")
    commit_of(call(graph, "put", "hal", 1, branch="live"))
    return graph


def test_a_graph_is_read_by_the_words_of_the_page(graph: og.Graph) -> None:
    reader = Reader(Path(graph.uri))
    assert reader.branches() == graph.branches() == ["main", "live"]
    for branch in graph.branches():
        assert reader.head(branch) == graph.head(branch).id
        told = reader.commits(branch)
        history = graph.commits(branch)
        assert set(told) == {commit.id for commit in history}
        for commit in history:
            one = told[commit.id]
            shared = ("parent", "merged_parent", "actor", "created_at", "branch", "kind", "manifest_version")
            assert {name: one[name] for name in shared} == {name: getattr(commit, name) for name in shared}
            assert one.get("message") == commit.message
            if commit.kind != "init":
                assert reader.ids(reader.state_of(commit.id, one), "node:Staff") == ids(
                    graph, "node:Staff", at=commit.id
                )
