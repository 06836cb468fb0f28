"""Starting the child processes of these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from tests import warm

CHILD = Path(__file__).with_name("changing_child.py")


def start(uri: str, *arguments: str, failpoints: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": failpoints}
    command = [sys.executable, str(CHILD), uri, *arguments]
    return warm.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answer(child: subprocess.Popen[bytes]) -> Any:
    """What a process was told, once it has ended by itself."""
    out, err = child.communicate()
    assert child.returncode == 0, err.decode()
    return orjson.loads(out)


def kill(uri: str, failpoint: str, *arguments: str) -> None:
    """Run a process that dies at a failpoint."""
    child = start(uri, *arguments, failpoints=f"{failpoint}=kill")
    _, err = child.communicate()
    assert child.returncode == -signal.SIGKILL, f"it did not die at {failpoint}: {err.decode()}"
