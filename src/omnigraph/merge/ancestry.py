"""How two commits are related: who is an ancestor of whom, and from which common ancestors a merge can start. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnigraph.commit.history import parents, reachable
from omnigraph.commit.model import Commit

ALREADY_UP_TO_DATE = "already_up_to_date"
FAST_FORWARD = "fast_forward"
MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Relation:
    """What a merge of `theirs` into `ours` amounts to, and its possible bases, the best first.

    `crossed`: after criss-cross merges, the other common ancestors that are no ancestor of a common one, each with the
    best ancestor that it has in common with the base.
    """

    outcome: str
    bases: tuple[Commit, ...]
    crossed: tuple[tuple[Commit, Commit], ...] = ()


def relate(commits: Mapping[str, Commit], ours: str, theirs: str) -> Relation:
    """Compare two heads over the whole DAG, merged parents included; the bases are the same in both directions."""
    of_ours = {commit.id for commit in reachable(commits, ours)}
    if theirs in of_ours:
        return Relation(ALREADY_UP_TO_DATE, ())
    common = [commit for commit in reachable(commits, theirs) if commit.id in of_ours]
    depth = generations(commits, common)
    bases = tuple(sorted(common, key=lambda commit: (depth[commit.id], commit.id), reverse=True))
    if bases and bases[0].id == ours:
        return Relation(FAST_FORWARD, bases)
    return Relation(MERGED, bases, tuple(_crossed(commits, bases)))


def _crossed(commits: Mapping[str, Commit], bases: tuple[Commit, ...]) -> Iterator[tuple[Commit, Commit]]:
    covered = {commit.id for commit in reachable(commits, bases[0].id)} if bases else set()
    for commit in bases[1:]:
        if commit.id in covered:
            continue
        # Bases come the best first, so whatever is an ancestor of one has been met before.
        roots = relate(commits, bases[0].id, commit.id).bases
        if roots:
            yield commit, roots[0]
        covered |= {ancestor.id for ancestor in reachable(commits, commit.id)}


def generations(commits: Mapping[str, Commit], wanted: list[Commit]) -> dict[str, int]:
    """The length of the longest way from each wanted commit back to a root. An ancestor is always lower."""
    depth: dict[str, int] = {}
    waiting = [commit.id for commit in wanted]
    while waiting:
        commit = commits[waiting[-1]]
        open_parents = [parent for parent in parents(commit) if parent in commits and parent not in depth]
        if open_parents:
            waiting += open_parents
            continue
        waiting.pop()
        depth[commit.id] = 1 + max((depth[parent] for parent in parents(commit) if parent in depth), default=-1)
    return depth
