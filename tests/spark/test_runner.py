"""What every runner promises, and what the Spark one survives."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import KeyConflict, SparkFailed
from omnigraph.spark.jobs import Outcome, exactly_once
from omnigraph.spark.runner import Display, Inline, OnSpark, Runner
from tests.spark import tasks
from tests.spark.classic import classic_session


@pytest.fixture(params=["inline", "spark", "spark, one at once"])
def runner(request: pytest.FixtureRequest) -> Runner:
    if request.param == "inline":
        return Inline()
    return OnSpark(classic_session(), at_once=None if request.param == "spark" else 1)


@pytest.fixture
def on_spark() -> OnSpark:
    return OnSpark(classic_session())


def test_results_are_in_the_order_of_the_specs(runner: Runner) -> None:
    arrived: list[int] = []
    assert runner.run(tasks.square, [3, 1, 2, 5, 4], display=Display(int, arrived.append)) == [9, 1, 4, 25, 16]
    assert sorted(arrived) == [1, 4, 9, 16, 25]
    assert runner.run(tasks.square, []) == []


def test_a_display_that_raises_is_heard_after_the_job_and_changes_nothing(runner: Runner) -> None:
    """It is told no more, the error reaches the caller, and later jobs have all their results."""
    told: list[int] = []

    def once(number: int) -> None:
        told.append(number)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        runner.run(tasks.square, [1, 2, 3, 4], display=Display(int, once))
    assert len(told) == 1
    shown: list[int] = []
    for _ in range(3):
        assert runner.run(tasks.square, [1, 2, 3, 4], display=Display(int, shown.append)) == [1, 4, 9, 16]
    assert sorted(shown) == sorted([1, 4, 9, 16] * 3)


@pytest.mark.parametrize("places", [[0, 1], [0, 1, 1], [0, 1, 2, 2], [1, 2, 3]])
def test_results_that_are_not_one_for_each_task_fail_the_job(places: list[int]) -> None:
    with pytest.raises(SparkFailed, match="results for 3 tasks of it, or one of them twice") as raised:
        exactly_once([Outcome(place) for place in places], 3, "it")
    assert raised.value.kind == "results"


def test_our_errors_arrive_as_they_were_raised(runner: Runner) -> None:
    with pytest.raises(KeyConflict, match="two is taken") as raised:
        runner.run(tasks.conflict_at_two, [1, 2, 3])
    assert raised.value.entity_id == "2"


def test_another_error_of_a_task_is_one_line_that_names_it(on_spark: OnSpark) -> None:
    with pytest.raises(SparkFailed) as raised:
        on_spark.run(tasks.divide, [1, 0])
    assert str(raised.value) == "tests.spark.tasks.divide failed: ZeroDivisionError: division by zero"
    assert raised.value.kind == "task"
    assert "Traceback" in (raised.value.detail or "")


def test_tasks_run_in_workers_of_the_same_python(on_spark: OnSpark) -> None:
    [(pid, python, lance_log)] = on_spark.run(tasks.where, [0])
    assert pid != os.getpid()
    assert (python, lance_log) == (sys.executable, "error")


def test_at_most_so_many_tasks_at_once(tmp_path: Path) -> None:
    OnSpark(classic_session(), at_once=1).run(tasks.log_run, [(str(tmp_path), number) for number in range(4)])
    spans = sorted(tuple(map(int, path.read_text().split())) for path in tmp_path.iterdir())
    assert len(spans) == 4
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


def test_the_limit_is_the_parallelism(on_spark: OnSpark) -> None:
    most = on_spark.parallelism
    assert most >= 1
    assert OnSpark(on_spark.session, at_once=most + 5).parallelism == most
    assert OnSpark(on_spark.session, at_once=1).parallelism == 1


def test_a_killed_worker_is_a_clear_error_and_the_session_goes_on(on_spark: OnSpark) -> None:
    with pytest.raises(SparkFailed, match="a Spark worker process died while it ran tests.spark.tasks.die") as raised:
        on_spark.run(tasks.die, [0])
    assert raised.value.kind == "worker"
    assert "\n" not in str(raised.value)
    assert on_spark.session.is_alive()
    assert on_spark.run(tasks.square, [7]) == [49]


def test_a_dead_java_is_a_clear_error_and_the_next_need_starts_another(on_spark: OnSpark) -> None:
    gateway = on_spark.session.gateway
    assert gateway is not None
    gateway.process.kill()
    gateway.process.wait()
    with pytest.raises(SparkFailed, match="Spark's Java process was lost") as raised:
        on_spark.run(tasks.square, [7])
    assert raised.value.kind == "lost"
    revived = classic_session()
    assert revived is not on_spark.session
    assert not gateway.scratch.path.exists()
    assert OnSpark(revived).run(tasks.square, [7]) == [49]


def test_a_stopped_context_is_a_clear_error_and_the_next_need_starts_another() -> None:
    session = classic_session()
    session.context.stop()
    with pytest.raises(SparkFailed) as raised:
        OnSpark(session).run(tasks.square, [7])
    assert raised.value.kind == "lost"
    assert OnSpark(classic_session()).run(tasks.square, [7]) == [49]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What a shell runs in the background ignores interrupts; here they count."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_job_and_nothing_else(on_spark: OnSpark) -> None:
    on_spark.run(tasks.square, [1])
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        on_spark.run(tasks.nap, [300.0])
    assert on_spark.run(tasks.square, [7]) == [49]
    tracker = on_spark.session.context.statusTracker()
    while tracker.getActiveJobsIds():
        time.sleep(0.05)


def test_jobs_belong_to_the_group_tags_and_pool_of_the_caller_and_say_what_they_do(on_spark: OnSpark) -> None:
    context: Any = on_spark.session.context
    context.setJobGroup("mine", "my work")
    context.addJobTag("nightly")
    context.setLocalProperty("spark.scheduler.pool", "slow")
    try:
        labelled = OnSpark(on_spark.session, label="load people.jsonl → main")
        assert labelled.run(tasks.square, [1, 2, 3], stage="check") == [1, 4, 9]
        [job] = context.statusTracker().getJobIdsForGroup("mine")[-1:]
        data = context._jsc.sc().statusStore().job(job)
        assert data.description().get() == "load people.jsonl → main: check (3 tasks)"
        assert data.jobGroup().get() == "mine"
        assert data.jobTags().contains("nightly")
        # What was lent is the caller's as it was.
        assert context.getLocalProperty("spark.job.description") == "my work"
        assert set(context.getJobTags()) == {"nightly"}
    finally:
        context.clearJobTags()
        for name in (
            "spark.jobGroup.id",
            "spark.job.description",
            "spark.scheduler.pool",
            "spark.job.interruptOnCancel",
        ):
            context.setLocalProperty(name, None)
