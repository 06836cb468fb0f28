"""Verbs that make no commit, or that maintain, under an idempotency key: each call counts once, whatever dies or races."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit import receipts
from omnigraph.commit.exactly_once import Once
from omnigraph.commit.receipts import FOLDER
from omnigraph.errors import AlreadyExists, BadRequest, BranchNotFound, Conflict, NotFound, StorageError
from tests import warm
from tests.s3 import S3Server

SCHEMA = "node P { name: String @key\n age: I32? @index }"
WIDER = "node P { name: String @key\n age: I32? @index\n nick: String? }"
LEVEL = "merge.level"

Call = Callable[[og.Graph, str | None], Any]

#: Every verb: how it is called with a key, and what must be there before.
VERBS: dict[str, tuple[Call, Call]] = {
    "create_branch": (lambda g, key: g.create_branch("b", idempotency_key=key), lambda g, _: None),
    "delete_branch": (lambda g, key: g.delete_branch("b", idempotency_key=key), lambda g, _: g.create_branch("b")),
    "tag": (lambda g, key: g.tag("t", idempotency_key=key), lambda g, _: None),
    "delete_tag": (lambda g, key: g.delete_tag("t", idempotency_key=key), lambda g, _: g.tag("t")),
    "set_config": (lambda g, key: g.set_config(LEVEL, "property", idempotency_key=key), lambda g, _: None),
    "apply_schema": (lambda g, key: g.apply_schema(WIDER, idempotency_key=key), lambda g, _: None),
    "ensure_indices": (lambda g, key: g.ensure_indices(idempotency_key=key), lambda g, _: None),
    "optimize": (lambda g, key: g.optimize(idempotency_key=key), lambda g, _: None),
    "cleanup": (lambda g, key: g.cleanup(keep=1, idempotency_key=key), lambda g, _: None),
}


def make(uri: str | Path, verb: str, **options: Any) -> og.Graph:
    """A graph with some commits on which the verb has something to do."""
    graph = og.init(uri, SCHEMA, **options)
    for number in range(3):
        graph.load(json.dumps({"type": "P", "data": {"name": f"p{number}", "age": number}}).encode())
    VERBS[verb][1](graph, None)
    return graph


def told(answer: Any) -> Any:
    """An answer as plain data."""
    return answer.to_dict() if hasattr(answer, "to_dict") else getattr(answer, "id", answer)


def seen(graph: og.Graph) -> Any:
    """All that these verbs change."""
    fresh = og.open(graph.uri, mode="ro")
    return (
        fresh.branches(),
        fresh.tags(),
        fresh.config(),
        fresh.schema(),
        [commit.id for commit in fresh.commits()],
    )


def killed(graph: og.Graph, verb: str, failpoint: str) -> None:
    """Call the verb with the key `k` in a process that dies at a failpoint."""
    program = (
        "import omnigraph as og; from tests.commit.test_receipts import VERBS; "
        f"VERBS[{verb!r}][0](og.open({graph.uri!r}), 'k')"
    )
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    child = warm.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()


@pytest.mark.parametrize("verb", VERBS)
def test_a_repeat_returns_the_first_answer(tmp_path: Path, verb: str) -> None:
    graph, call = make(tmp_path / "g", verb), VERBS[verb][0]
    first = call(graph, "k")
    after = seen(graph)
    # By another handle, as by another worker, or after a restart.
    assert told(call(og.open(graph.uri), "k")) == told(first)
    assert seen(graph) == after
    assert graph.verify(deep=True).ok


@pytest.mark.parametrize("verb", ["create_branch", "delete_branch", "tag", "set_config", "cleanup"])
def test_a_repeat_returns_the_first_answer_on_s3(s3_server: S3Server, verb: str) -> None:
    root = s3_server.new_root().uri
    graph, call = make(root, verb, storage_options=s3_server.options), VERBS[verb][0]
    first = call(graph, "k")
    assert told(call(og.open(root, storage_options=s3_server.options), "k")) == told(first)


OTHERS: dict[str, Call] = {
    "create_branch": lambda g, key: g.create_branch("c", idempotency_key=key),
    "delete_branch": lambda g, key: g.delete_branch("c", idempotency_key=key),
    "tag": lambda g, key: g.tag("u", idempotency_key=key),
    "delete_tag": lambda g, key: g.delete_tag("u", idempotency_key=key),
    "set_config": lambda g, key: g.set_config(LEVEL, None, idempotency_key=key),
    "apply_schema": lambda g, key: g.apply_schema(SCHEMA, idempotency_key=key),
    "ensure_indices": lambda g, key: g.ensure_indices(types="node:P", idempotency_key=key),
    "optimize": lambda g, key: g.cleanup(keep=1, idempotency_key=key),
    "cleanup": lambda g, key: g.cleanup(keep=2, idempotency_key=key),
}


@pytest.mark.parametrize("verb", VERBS)
def test_another_request_under_the_key_is_refused(tmp_path: Path, verb: str) -> None:
    graph = make(tmp_path / "g", verb)
    VERBS[verb][0](graph, "k")
    before = seen(graph)
    with pytest.raises(BadRequest, match="idempotency key 'k' was used for another request"):
        OTHERS[verb](graph, "k")
    with pytest.raises(BadRequest, match="an idempotency key is a text"):
        OTHERS[verb](graph, 7)  # type: ignore[arg-type]
    assert seen(graph) == before


FILES = ("create_branch", "delete_branch", "set_config", "ensure_indices", "optimize", "cleanup")
DEATHS = [
    *((verb, point) for verb in FILES for point in ("receipt.begun", "receipt.before_kept", "receipt.kept")),
    ("create_branch", "branch_create.before_ref"),
    ("delete_branch", "branch_delete.before_ref"),
    ("delete_branch", "branch_delete.after_ref"),
    ("set_config", "config.before_put"),
    ("set_config", "config.after_put"),
    ("ensure_indices", "ensure_indices.post_phase_c"),
    ("optimize", "optimize.post_phase_b_pre_manifest_commit"),
    *((verb, f"publisher.{when}_commit") for verb in ("tag", "delete_tag") for when in ("before", "after")),
    ("apply_schema", "schema_apply.post_phase_a"),
    ("apply_schema", "schema_apply.post_phase_c"),
]


@pytest.mark.parametrize(("verb", "point"), DEATHS, ids=[f"{verb}-{point}" for verb, point in DEATHS])
def test_a_call_that_died_is_done_once(tmp_path: Path, verb: str, point: str) -> None:
    """The repeat gives the answer of a call that lived, and leaves what one call leaves."""
    graph, lived, call = make(tmp_path / "g", verb), make(tmp_path / "lived", verb), VERBS[verb][0]
    commits = len(graph.commits())
    killed(graph, verb, point)
    again = call(og.open(graph.uri), "k")
    wanted = call(lived, "k")
    branches, tags, *rest = seen(graph)[:4]
    assert (branches, list(tags), rest) == (lived.branches(), list(lived.tags()), [lived.config(), lived.schema()])
    made = len(lived.commits()) - commits
    assert len(og.open(graph.uri).commits()) - commits == made
    if hasattr(wanted, "commit"):
        assert (again.commit is None) == (wanted.commit is None), "the commit is named also when it was made before"
    after = seen(graph)
    assert told(call(og.open(graph.uri), "k")) == told(again)
    assert seen(graph) == after
    assert graph.verify(deep=True).ok


def test_what_others_do_after_a_death_is_not_taken_for_the_dead_call(tmp_path: Path) -> None:
    """A branch that somebody else has made is not reported as made by the call that died before it made one."""
    graph = make(tmp_path / "g", "create_branch")
    killed(graph, "create_branch", "branch_create.before_ref")
    graph.create_branch("b")
    with pytest.raises(AlreadyExists):
        graph.create_branch("b", idempotency_key="k")
    killed(graph, "delete_branch", "branch_delete.before_ref")
    graph.delete_branch("b")
    with pytest.raises(BranchNotFound):
        graph.delete_branch("b", idempotency_key="k")


def test_what_others_undo_after_a_death_stays_undone(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", "create_branch")
    killed(graph, "create_branch", "receipt.before_kept")
    graph.delete_branch("b")
    first = graph.create_branch("b", idempotency_key="k")
    assert (first.id, graph.branches()) == (graph.snapshot().id, ["main"])
    graph.create_branch("b", idempotency_key="other")
    assert graph.set_config(LEVEL, "property", idempotency_key="set") == {LEVEL: "property"}
    graph.set_config(LEVEL, None)
    assert graph.set_config(LEVEL, "property", idempotency_key="set") == {LEVEL: "property"}
    assert graph.config() == {LEVEL: "entity"}


def test_a_setting_of_a_dead_call_that_was_set_again_by_others(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", "set_config")
    killed(graph, "set_config", "config.after_put")
    graph.set_config(LEVEL, None)
    assert graph.set_config(LEVEL, "property", idempotency_key="k") == {LEVEL: "property"}
    assert graph.config() == {LEVEL: "entity"}


def test_a_load_that_makes_the_branch_settles_what_a_dead_call_left(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", "create_branch")
    killed(graph, "create_branch", "branch_create.before_ref")
    graph.load(b'{"type":"P","data":{"name":"x"}}', branch="b", base="main")
    with pytest.raises(AlreadyExists):
        graph.create_branch("b", idempotency_key="k")


@pytest.mark.parametrize("verb", VERBS)
def test_calls_at_once_with_one_key(tmp_path: Path, verb: str) -> None:
    """One of them does it, and all get the same answer."""
    graph, call = make(tmp_path / "g", verb), VERBS[verb][0]
    before = len(graph.commits())
    lived = make(tmp_path / "lived", verb)
    call(lived, "k")
    handles = [og.open(graph.uri) for _ in range(4)]
    gate = threading.Barrier(4)

    def run(handle: og.Graph) -> Any:
        gate.wait()
        return told(call(handle, "k"))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(run, handles))
    assert all(answer == answers[0] for answer in answers), answers
    assert len(og.open(graph.uri).commits()) - before == len(lived.commits()) - before


@pytest.mark.parametrize("verb", ["create_branch", "delete_branch"])
def test_a_store_that_fails_after_the_step(tmp_path: Path, verb: str) -> None:
    """The caller is told that it failed; the repeat finds that it was done."""
    graph, call = make(tmp_path / "g", verb), VERBS[verb][0]
    with failpoints.armed("receipt.before_kept"), pytest.raises(failpoints.FailpointError):
        call(graph, "k")
    assert ("b" in graph.branches()) == (verb == "create_branch")
    call(graph, "k")
    assert ("b" in graph.branches()) == (verb == "create_branch")


def test_a_refused_call_keeps_nothing(tmp_path: Path) -> None:
    """The key is free for the same call when what stood in the way is gone."""
    graph = make(tmp_path / "g", "delete_branch")
    with pytest.raises(AlreadyExists):
        graph.create_branch("b", idempotency_key="k")
    with pytest.raises(NotFound):
        graph.delete_tag("none", idempotency_key="l")
    graph.delete_branch("b")
    graph.create_branch("b", idempotency_key="k")
    graph.tag("none")
    graph.delete_tag("none", idempotency_key="l")
    assert graph.tags() == {}


def test_a_key_whose_call_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = make(tmp_path / "g", "optimize")
    asked = Once("k", "")
    with graph._context.locks.hold(receipts._lock(asked)):
        other = og.open(graph.uri)
        locks = other._context.locks
        monkeypatch.setattr(locks, "hold", partial(type(locks).hold, locks, timeout=0.1))

        def run() -> None:
            with pytest.raises(Conflict, match="a call with idempotency key 'k' is under way"):
                other.optimize(idempotency_key="k")

        with ThreadPoolExecutor(1) as pool:
            pool.submit(run).result()


def test_cleanup_removes_old_receipts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = make(tmp_path / "g", "create_branch")
    graph.create_branch("b", idempotency_key="k")
    folder = Path(graph.uri) / FOLDER
    graph.cleanup(keep=1)
    assert len(list(folder.rglob("*.json"))) == 1
    monkeypatch.setattr(receipts, "KEPT_FOR", timedelta(0))
    graph.cleanup(keep=1)
    assert not list(folder.rglob("*.json"))


def test_receipts_are_no_part_of_a_backup(tmp_path: Path) -> None:
    """A graph that is restored is another graph, at another moment."""
    graph = make(tmp_path / "g", "create_branch")
    graph.create_branch("b", idempotency_key="k")
    graph.backup(tmp_path / "backup")
    assert not (tmp_path / "backup" / FOLDER).exists()


def test_a_receipt_that_can_not_be_read(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", "create_branch")
    graph.create_branch("b", idempotency_key="k")
    next((Path(graph.uri) / FOLDER).glob("*.json")).write_text("{")
    with pytest.raises(StorageError, match="is no receipt that can be read"):
        graph.create_branch("b", idempotency_key="k")
