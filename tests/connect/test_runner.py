"""Tasks over Spark Connect: what every runner promises, and what this one survives."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from omnigraph.errors import KeyConflict, SparkFailed
from omnigraph.spark.connect import ConnectSession
from omnigraph.spark.over_connect import OverConnect
from omnigraph.spark.runner import Display, choose_runner
from omnigraph.spark.session import is_running, spark_session
from omnigraph.spark.settings import SQL_SETTINGS
from tests.connect.events import jobs_with_tag
from tests.connect.server import ConnectServer
from tests.spark import tasks


@pytest.fixture
def runner(session: ConnectSession) -> OverConnect:
    return OverConnect(session)


def test_the_environment_names_a_server_and_runners_go_through_it(session: ConnectSession) -> None:
    from omnigraph.spark.options import SparkOptions

    assert is_running()
    assert spark_session() is session
    assert isinstance(choose_runner("auto", SparkOptions(), is_large=lambda: False), OverConnect)
    given = choose_runner("spark", SparkOptions(given=session.sql), is_large=lambda: False)
    assert isinstance(given, OverConnect)
    assert not given.session.is_own
    assert given.run(tasks.square, [4]) == [16]
    assert {name: session.sql.conf.get(name) for name in SQL_SETTINGS} == SQL_SETTINGS
    assert (OverConnect(session).parallelism, OverConnect(session, at_once=1).parallelism) == (2, 1)
    assert OverConnect(session).shares_disk


def test_results_are_in_the_order_of_the_specs_and_are_shown(runner: OverConnect) -> None:
    shown: list[int] = []
    assert runner.run(tasks.square, [3, 1, 2, 5, 4], display=Display(int, shown.append)) == [9, 1, 4, 25, 16]
    assert sorted(shown) == [1, 4, 9, 16, 25]
    assert runner.run(tasks.square, []) == []


def test_errors_of_tasks_arrive_as_one_line(runner: OverConnect) -> None:
    done: list[int] = []
    with pytest.raises(KeyConflict, match="^two is taken$") as raised:
        runner.run(tasks.conflict_at_two, [1, 2, 3], unused=done.append)
    assert raised.value.entity_id == "2"
    assert sorted(done) == [1, 3]
    with pytest.raises(SparkFailed) as other:
        runner.run(tasks.divide, [1, 0])
    assert str(other.value) == "tests.spark.tasks.divide failed: ZeroDivisionError: division by zero"
    assert "Traceback" in (other.value.detail or "")


def test_a_killed_worker_is_a_clear_error_and_the_session_goes_on(runner: OverConnect) -> None:
    with pytest.raises(SparkFailed, match="a Spark worker process died while it ran tests.spark.tasks.die") as raised:
        runner.run(tasks.die, [0])
    assert raised.value.kind == "worker"
    assert "\n" not in str(raised.value)
    assert runner.run(tasks.square, [7]) == [49]


def test_at_most_so_many_tasks_at_once(session: ConnectSession, tmp_path: Path) -> None:
    OverConnect(session, at_once=1).run(tasks.log_run, [(str(tmp_path), number) for number in range(4)])
    spans = sorted(tuple(map(int, path.read_text().split())) for path in tmp_path.iterdir())
    assert len(spans) == 4
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What a shell runs in the background ignores interrupts; here they count."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_job_and_nothing_else(runner: OverConnect) -> None:
    runner.run(tasks.square, [1])
    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        # Both places of the server are taken until the job is cancelled.
        runner.run(tasks.nap, [300.0] * 2)
    assert runner.run(tasks.square, [7, 8, 9]) == [49, 64, 81]


def test_jobs_have_the_tags_of_the_caller_and_say_what_they_do(
    runner: OverConnect, connect_server: ConnectServer
) -> None:
    sql = runner.session.sql
    sql.addTag("nightly")
    try:
        labelled = runner.labelled("load people.jsonl → main")
        assert labelled.run(tasks.square, [1, 2, 3], stage="check") == [1, 4, 9]
        assert set(sql.getTags()) == {"nightly"}
    finally:
        sql.clearTags()
    [tags] = jobs_with_tag(connect_server.events, "nightly")
    assert any("load people.jsonl → main: check (3 tasks)" in tag for tag in tags)
