"""Where a table lives: a dataset below the graph root, and one of its Lance branches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A table's dataset and line: `branch` is the Lance branch, None is the main line."""

    path: str
    branch: str | None = None

    @property
    def dataset_path(self) -> str:
        """The path Lance opens: a branch is a dataset of its own below `tree/`."""
        return self.path if self.branch is None else branch_path(self.path, self.branch)

    def __str__(self) -> str:
        return self.path if self.branch is None else f"{self.path} (branch {self.branch})"


def branch_path(path: str, branch: str) -> str:
    """Where Lance keeps the files of a branch of the dataset at `path`."""
    return f"{path}/tree/{branch}"
