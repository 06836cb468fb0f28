"""Named places where a test can make the process fail, wait or die.

A failpoint does nothing unless it is armed: in a test with `armed(name, action)`, in a child process with
`OMNIGRAPH_FAILPOINTS=name=error|delay:ms|kill[;…]`. Each name is declared, so that a test can check that all failpoints are
exercised.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError


class FailpointError(OmnigraphError):
    """The error that an armed failpoint raises."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


#: `error`, `kill`, `delay:` with milliseconds, or a function whose result is ignored.
Action = str | Callable[[], object]

NAMES: set[str] = set()
_armed: dict[str, Action] = {}
_hit: set[str] = set()


def declare(*names: str) -> None:
    """Register failpoint names; each module declares its own when it is imported."""
    NAMES.update(names)


def hit(name: str) -> None:
    """Pass a failpoint."""
    if not _armed:
        return
    assert name in NAMES, f"failpoint {name} is not declared"
    action = _armed.get(name)
    if action is None:
        return
    _hit.add(name)
    if callable(action):
        action()
    elif action == "error":
        raise FailpointError(f"failpoint {name}", name=name)
    elif action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action.startswith("delay:"):
        time.sleep(int(action.removeprefix("delay:")) / 1000)
    else:
        raise ValueError(f"unknown failpoint action {action!r} for {name}")


@contextmanager
def armed(name: str, action: Action = "error") -> Iterator[None]:
    """Arm one failpoint for the duration of a block."""
    _armed[name] = action
    try:
        yield
    finally:
        _armed.pop(name, None)


def was_hit(name: str) -> bool:
    """Whether an armed failpoint fired in this process."""
    return name in _hit


def arm_from_environment() -> None:
    """Arm the failpoints in OMNIGRAPH_FAILPOINTS."""
    for entry in os.environ.get("OMNIGRAPH_FAILPOINTS", "").split(";"):
        if entry:
            name, _, action = entry.partition("=")
            _armed[name] = action or "error"


arm_from_environment()
