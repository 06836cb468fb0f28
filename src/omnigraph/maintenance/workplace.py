"""Where the long work on a table is done: in this process, or as tasks of Spark; and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.runner import Inline, Runner, choose_runner
from omnigraph.storage.root import Root

#: Below this many rows a job of Spark takes longer than the work, even where a session runs.
ROWS_FOR_A_JOB = 1_000_000
#: From so many rows on it is worth while to start Spark.
ROWS_FOR_SPARK = 5_000_000

#: Is told the stage, how many rows of it are done, and how many there are.
UpkeepProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Workplace:
    """Of one graph. `engine`: "local", "spark", or "auto" for Spark where a table is large, or a session runs anyway."""

    root: Root
    engine: str = "local"
    options: SparkOptions = field(default_factory=SparkOptions)
    progress: UpkeepProgress | None = None

    def __post_init__(self) -> None:
        refuse_unknown_engine(self.engine)

    def runner(self, rows: int, most_tasks: int) -> Runner:
        """What carries out work on so many rows that can be cut into so many tasks at most."""
        if self.engine == "auto" and (most_tasks < 2 or rows < ROWS_FOR_A_JOB):
            return Inline()
        return choose_runner(self.engine, self.options, is_large=lambda: rows >= ROWS_FOR_SPARK)

    def counter(self, stage: str, total: int) -> Callable[[int], None]:
        """What is told of rows that are done, one piece after the other."""
        done = 0

        def count(rows: int) -> None:
            nonlocal done
            done += rows
            if self.progress is not None:
                self.progress(stage, done, total)

        count(0)
        return count
