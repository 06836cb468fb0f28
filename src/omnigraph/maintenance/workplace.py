"""Where the long work on a table is done: in this process, or in Spark tasks; and how its progress is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.runner import Inline, Runner, choose_runner
from omnigraph.storage.root import Root

#: Below this number of rows a Spark job takes longer than the work, even in a running session.
ROWS_FOR_A_JOB = 1_000_000
#: From this number of rows on it pays to start Spark.
ROWS_FOR_SPARK = 5_000_000

#: Called with the stage, the rows that are done, and the total number of rows.
UpkeepProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Workplace:
    """The settings for one graph. `engine`: "local", "spark", or "auto": Spark for a large table or in a running session."""

    root: Root
    engine: str = "local"
    options: SparkOptions = field(default_factory=SparkOptions)
    progress: UpkeepProgress | None = None

    def __post_init__(self) -> None:
        refuse_unknown_engine(self.engine)

    def runner(self, rows: int, most_tasks: int) -> Runner:
        """The runner for work on this many rows that can be cut into at most `most_tasks` tasks."""
        if self.engine == "auto" and (most_tasks < 2 or rows < ROWS_FOR_A_JOB):
            return Inline()
        return choose_runner(self.engine, self.options, is_large=lambda: rows >= ROWS_FOR_SPARK)

    def counter(self, stage: str, total: int) -> Callable[[int], None]:
        """A function to be called with the number of rows of each finished piece; reports the progress of the stage."""
        done = 0

        def count(rows: int) -> None:
            nonlocal done
            done += rows
            if self.progress is not None:
                self.progress(stage, done, total)

        count(0)
        return count
