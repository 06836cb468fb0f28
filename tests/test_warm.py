"""Processes that start warm are like those of subprocess, except that their imports were done before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm

TELLS = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['WHO'], sys.stdin.read(), file=sys.stderr); sys.exit(3)"
LOADED = "import sys; print('lance' in sys.modules)"


def test_arguments_folder_environment_streams_and_code(tmp_path: Path) -> None:
    environment = {**os.environ, "WHO": "me"}
    command = [sys.executable, "-c", TELLS, "a b"]
    with (tmp_path / "in").open("w+") as given:
        given.write("said")
        for start in (subprocess.run, warm.run):
            given.seek(0)
            done = start(command, env=environment, cwd=tmp_path, stdin=given, capture_output=True, text=True)
            assert (done.returncode, done.stdout, done.stderr) == (3, "", f"['a b'] {tmp_path} me said\n")


def test_a_module_and_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import beside, sys; print(__name__, sys.argv, beside.HERE)")
    (tmp_path / "beside.py").write_text("HERE = 1")
    for start in (subprocess.run, warm.run):
        done = start([sys.executable, str(script), "x"], stdout=subprocess.PIPE, text=True)
        assert done.stdout == f"__main__ {[str(script), 'x']} 1\n"
        done = start([sys.executable, "-m", "omnigraph", "version"], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0
        assert done.stdout.startswith("omnigraph ")


def test_an_error_is_told_as_ever() -> None:
    done = warm.run([sys.executable, "-c", "1 / 0"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_it_is_waited_for_and_killed() -> None:
    command = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(600)"]
    with warm.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert child.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.01)
        assert Path("/proc", str(child.pid)).exists() or sys.platform != "linux"
        child.kill()
        assert child.wait() == -signal.SIGKILL


def test_failpoints_are_those_of_its_environment() -> None:
    passes = "from omnigraph import failpoints; failpoints.hit('init.after_claim')"
    armed = {**os.environ, "OMNIGRAPH_FAILPOINTS": "init.after_claim=kill"}
    assert warm.run([sys.executable, "-c", passes], env=armed).returncode == -signal.SIGKILL
    assert warm.run([sys.executable, "-c", passes]).returncode == 0


def test_the_imports_were_done_before_and_only_in_them() -> None:
    asked = [start([sys.executable, "-c", LOADED], stdout=subprocess.PIPE) for start in (subprocess.run, warm.run)]
    assert [done.stdout for done in asked] == [b"False\n", b"True\n"]
