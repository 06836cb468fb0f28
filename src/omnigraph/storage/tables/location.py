"""Where a table lives: a dataset below the graph root, and one of its Lance branches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Which rows of a table version count, where several commits were published with it and only the first of them are meant.

    `base` and `base_version`: the table before all of them. `shown`: the ids of the rows that the commits that count have
    written or removed; `hidden`: those of the commits that do not. No id is in both.
    """

    base: Location
    base_version: int
    shown: frozenset[str]
    hidden: frozenset[str]


@dataclass(frozen=True)
class Location:
    """A table's dataset and line: `branch` is the Lance branch, None is the main line.

    `part`: only for reading; None means all rows of a version.
    """

    path: str
    branch: str | None = None
    part: Part | None = None

    @property
    def whole(self) -> Location:
        """The same place with all rows."""
        return self if self.part is None else Location(self.path, self.branch)

    @property
    def dataset_path(self) -> str:
        """The path Lance opens: a branch is a dataset of its own below `tree/`."""
        return self.path if self.branch is None else branch_path(self.path, self.branch)

    def __str__(self) -> str:
        return self.path if self.branch is None else f"{self.path} (branch {self.branch})"


def branch_path(path: str, branch: str) -> str:
    """Where Lance keeps the files of a branch of the dataset at `path`."""
    return f"{path}/tree/{branch}"
