"""A load whose commit could not be settled is finished or undone later; what it staged is still there for that."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import CommitStateUnknown, RecoveryRequired
from omnigraph.graph.loading import Mode as LoadMode
from tests.commit.org import SCHEMA
from tests.query.fixtures import ORG_ROWS

STAFF = "query q() { match { $s: Staff } return { $s.handle } order { $s.handle } }"


@pytest.mark.parametrize("branch", ["main", "side"])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_what_was_staged_survives_an_unsettled_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: LoadMode, branch: str
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    graph = og.init(tmp_path / "g", SCHEMA)
    if branch != "main":
        graph.create_branch(branch)
    source = tmp_path / "org.jsonl"
    source.write_text(ORG_ROWS)
    with (
        failpoints.armed("load.post_phase_b_pre_manifest_commit"),
        failpoints.armed("publisher.before_commit"),
        pytest.raises((CommitStateUnknown, RecoveryRequired)),
    ):
        graph.load(source, mode, branch=branch)
    again = og.open(tmp_path / "g")
    assert [row["s.handle"] for row in again.query(STAFF, branch=branch).rows] in ([], ["ada", "ben", "cleo", "dov"])
    assert again.pending_operations() == []
    again.load(source, "merge", branch=branch)
    assert len(again.query(STAFF, branch=branch).rows) == 4


def test_an_interrupt_leaves_what_recovery_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle of the commit is no failure that anybody settles at once."""
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    graph = og.init(tmp_path / "g", SCHEMA)
    source = tmp_path / "org.jsonl"
    source.write_text(ORG_ROWS)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.commit.protocol.publish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        graph.load(source, "append")
    monkeypatch.undo()
    again = og.open(tmp_path / "g")
    assert len(again.query(STAFF).rows) == 4, "all tables had moved, so the load is finished"
