"""Task functions for the runners' tests; workers import this module by name."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from omnigraph.errors import KeyConflict
from omnigraph.storage.files import InputFile
from omnigraph.storage.root import Root


def square(number: int) -> int:
    return number * number


def where(_: int) -> tuple[int, str, str]:
    """The process, its Python and the sign of Lance's quiet log."""
    return os.getpid(), sys.executable, os.environ.get("LANCE_LOG", "")


def conflict_at_two(number: int) -> int:
    if number == 2:
        raise KeyConflict("two is taken", type_key="node:N", entity_id="2")
    return number


def divide(number: int) -> float:
    return 1 / number


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def log_run(spec: tuple[str, int]) -> int:
    """Say when it starts and ends, in a file of its own."""
    folder, number = spec
    started = time.monotonic_ns()
    time.sleep(0.05)
    Path(folder, str(number)).write_text(f"{started} {time.monotonic_ns()}")
    return number


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def read_file(path: str) -> bytes:
    """The contents of a file, as an input of a load is read; slow enough that every executor gets one."""
    time.sleep(0.2)
    return InputFile(path, Root(str(Path(path).parent)), path, 1).read(0, 1)
