"""What is said when the fault is on the workers: which worker, what is wrong there, and what to do."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import KeyConflict, NotFound, SparkFailed
from omnigraph.spark.runner import OnSpark
from omnigraph.spark.session import Session
from tests.cluster.standalone import HOSTS, SECOND, Cluster
from tests.spark import tasks


@pytest.mark.parametrize(
    ("python", "said"),
    [
        pytest.param(
            lambda: str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")),
            "has no module 'omnigraph'; run `pip install omnigraph` on the workers, send it along with --spark-ship-package",
            id="without this package",
            marks=pytest.mark.long,
        ),
        pytest.param(
            lambda: "/nowhere/python",
            "can not start '/nowhere/python'; install it there, or set PYSPARK_PYTHON",
            id="no such Python",
        ),
    ],
)
def test_what_the_workers_lack(
    python: Callable[[], str], said: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.context, "pythonExec", python())
    with pytest.raises(SparkFailed) as raised:
        OnSpark(session).run(tasks.square, [1])
    assert said in str(raised.value)
    assert any(f"the Spark worker {host}" in str(raised.value) for host in HOSTS)
    assert raised.value.kind == "worker"
    assert "\n" not in str(raised.value)


@pytest.mark.long
def test_a_worker_process_that_dies_again_and_again_names_its_host(session: Session) -> None:
    with pytest.raises(SparkFailed, match=r"a Spark worker process died on the worker 127\.0\.0\.[12] while") as raised:
        OnSpark(session).run(tasks.die, [0])
    assert raised.value.kind == "worker"
    assert OnSpark(session).run(tasks.square, [7]) == [49]


def test_an_error_of_a_task_says_where_it_was(cluster: Cluster, session: Session) -> None:
    with pytest.raises(KeyConflict, match=r"^on the Spark worker \S+: two is taken$"):
        OnSpark(session).run(tasks.conflict_at_two, [2])
    (cluster.private / "seen").write_bytes(b"x")
    said: str | None = None
    while said is None:
        # Copies of tasks on the worker that sees the file may do all of them, until the other one is quick enough.
        try:
            OnSpark(session).run(tasks.read_file, [str(cluster.private / "seen")] * 16)
        except NotFound as error:
            said = error.message
    assert said.startswith(f"on the Spark worker {SECOND if cluster.isolated else socket.gethostname()}: ")
