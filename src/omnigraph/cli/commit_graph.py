"""The commit DAG drawn with characters: one row per commit, one column per line of history.

    *    a merge: its second parent gets a line of its own
    |\\
    | *  a commit on the branch
    * |  a commit on main
    |/   two lines that wait for the same commit become one
    *    where the branch began
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.commit.model import Commit

#: The lines of history from left to right, each as the commit it waits for.
_Lanes = list[str]


def draw(commits: Sequence[Commit], describe: Callable[[Commit], str]) -> Iterator[str]:
    """The rows of the drawing; every commit stands before its parents."""
    shown = {commit.id for commit in commits}
    lanes: _Lanes = []
    for commit in commits:
        yield from _join(lanes, commit.id)
        if commit.id not in lanes:
            lanes.append(commit.id)
        at = lanes.index(commit.id)
        marks = " ".join("*" if lane == at else "|" for lane in range(len(lanes)))
        yield f"{marks}  {describe(commit)}"
        parents = [parent for parent in (commit.parent, commit.merged_parent) if parent is not None and parent in shown]
        yield from _go_on(lanes, at, parents)


def _join(lanes: _Lanes, commit: str) -> Iterator[str]:
    """Bring all lines that wait for a commit together, the rightmost first."""
    first, *others = [at for at, awaited in enumerate(lanes) if awaited == commit] or [0]
    for at in reversed(others):
        yield _closed(len(lanes), at, into=first)
        del lanes[at]


def _go_on(lanes: _Lanes, at: int, parents: Sequence[str]) -> Iterator[str]:
    """Let the line of a commit go on to its first parent, and open another one for a second parent."""
    if not parents:
        if at < len(lanes) - 1:
            yield _closed(len(lanes), at)
        del lanes[at]
        return
    lanes[at] = parents[0]
    for parent in parents[1:]:
        lanes.insert(at + 1, parent)
        yield "".join("|" if lane == 0 else " |" if lane <= at else "\\ " for lane in range(len(lanes))).rstrip()


def _closed(width: int, at: int, into: int | None = None) -> str:
    """A row in which line `at` ends, or runs into a line left of it, and the lines right of it move up."""
    cells = [" "] * (2 * width)
    for lane in range(width):
        if lane < at:
            cells[2 * lane] = "|"
        elif lane > at or into is not None:
            cells[2 * lane - 1] = "/"
    if into is not None:
        for lane in range(into, at - 1):
            cells[2 * lane + 1] = "_"
    return "".join(cells).rstrip()
