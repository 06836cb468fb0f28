"""How far a long command is: a bar on a terminal, now and then a line elsewhere, nothing with `--quiet`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph.load.model import Progress
    from omnigraph.maintenance.workplace import UpkeepProgress


_WIDTH = 30
#: What is over sooner needs no account of its progress.
_PATIENCE = 0.5
_BETWEEN_LINES = 5.0
_BETWEEN_DRAWINGS = 0.1


class _Shown:
    def __init__(self) -> None:
        self.is_terminal = output.is_terminal(sys.stderr)
        self.started = self.last = time.monotonic()
        self.drawn = False
        #: Which engine was chosen and why; said before anything else is.
        self.engine = ""

    def __call__(self, progress: Progress) -> None:
        if progress.stage == "engine":
            self.engine = f"engine {progress.note}"
            return
        now = time.monotonic()
        wait = _BETWEEN_DRAWINGS if self.is_terminal else _BETWEEN_LINES
        over = progress.done >= progress.total and self.drawn
        if now - self.started < _PATIENCE or (now - self.last < wait and not over):
            return
        self.last = now
        if self.engine:
            output.note(self.engine)
            self.engine = ""
        text = _text(progress, now - self.started)
        if self.is_terminal:
            output.redraw(text)
        else:
            output.note(text)
        self.drawn = True

    def end(self) -> None:
        if self.drawn and self.is_terminal:
            output.redraw("")


def _text(progress: Progress, seconds: float) -> str:
    part = progress.done / progress.total if progress.total else 1.0
    full = int(part * _WIDTH)
    bar = "█" * full + "░" * (_WIDTH - full)
    return f"{progress.stage:<6} {bar} {part:4.0%}  {progress.rows:,} rows  {progress.rows / seconds:,.0f} rows/s"


@contextmanager
def shown_progress(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A call that shows how far a load is, for a block; None when nothing is to be shown."""
    if quiet:
        yield None
        return
    shown = _Shown()
    try:
        yield shown
    finally:
        shown.end()


@contextmanager
def counted_progress(quiet: bool) -> Iterator[UpkeepProgress | None]:
    """A call that shows how many rows of a stage are done, for a block; None when nothing is to be shown."""
    from omnigraph.load.model import Progress

    with shown_progress(quiet) as shown:
        yield None if shown is None else lambda stage, done, total: shown(Progress(stage, done, total, done))
