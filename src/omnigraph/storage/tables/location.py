"""Where a table lives: a dataset below the graph root, and one of its Lance branches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Which rows of a table version count, for a state between two commits of a group.

    `base` and `base_version`: the table before the group. `shown`: the ids of the rows that the counted commits have written or
    removed; `hidden`: the ids of the rows of the later commits. No id is in both.
    """

    base: Location
    base_version: int
    shown: frozenset[str]
    hidden: frozenset[str]


@dataclass(frozen=True)
class Location:
    """A table's dataset and line. `branch`: the Lance branch; None is the main line.

    `part`: which rows count, only for reading; None means all rows of a version.
    """

    path: str
    branch: str | None = None
    part: Part | None = None

    @property
    def whole(self) -> Location:
        """The same location with all rows."""
        return self if self.part is None else Location(self.path, self.branch)

    @property
    def dataset_path(self) -> str:
        """The path that Lance opens: a branch is a dataset of its own below `tree/`."""
        return self.path if self.branch is None else branch_path(self.path, self.branch)

    def __str__(self) -> str:
        return self.path if self.branch is None else f"{self.path} (branch {self.branch})"


def branch_path(path: str, branch: str) -> str:
    """The path where Lance keeps the files of a branch of the dataset at `path`."""
    return f"{path}/tree/{branch}"
