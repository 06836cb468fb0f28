"""How far maintenance is: the progress of `cli.progress` for work that is counted in rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.cli.progress import shown_progress

if TYPE_CHECKING:
    from omnigraph.maintenance.workplace import UpkeepProgress


@contextmanager
def counted_progress(quiet: bool) -> Iterator[UpkeepProgress | None]:
    """A call that shows how many rows of a stage are done, for a block; None when nothing is to be shown."""
    from omnigraph.load.model import Progress

    with shown_progress(quiet) as shown:
        yield None if shown is None else lambda stage, done, total: shown(Progress(stage, done, total, done))
