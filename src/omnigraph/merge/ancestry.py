"""How two commits are related: whether one is an ancestor of the other, and where a merge of them can start. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.commit.history import parents, reachable
from omnigraph.commit.model import Commit

ALREADY_UP_TO_DATE = "already_up_to_date"
FAST_FORWARD = "fast_forward"
MERGED = "merged"
REBASED = "rebased"


@dataclass(frozen=True)
class Relation:
    """The relation of two heads for a merge of `theirs` into `ours`.

    `best`: the common ancestors that are no ancestor of another common ancestor, the latest by (generation, id) first. The
    first is the base; there are more only after criss-cross merges.
    """

    outcome: str
    best: tuple[Commit, ...] = ()
    commits: Mapping[str, Commit] = field(default_factory=dict, repr=False)

    def bases(self) -> Iterator[Commit]:
        """All common ancestors, the base first, then from late to early; computed lazily, as most are never needed."""
        if not self.best:
            return
        yield self.best[0]
        common = {commit.id: commit for best in self.best for commit in reachable(self.commits, best.id)}
        yield from _latest_first(self.commits, list(common.values()))[1:]

    def crossed(self) -> Iterator[tuple[Commit, Commit]]:
        """The other best ancestors, each with the best common ancestor of it and the base."""
        for other in self.best[1:]:
            root = next(relate(self.commits, self.best[0].id, other.id).bases(), None)
            if root is not None:
                yield other, root


def relate(commits: Mapping[str, Commit], ours: str, theirs: str) -> Relation:
    """Relate two heads over the whole DAG, including merged parents; swapping the heads gives the same base."""
    of_ours = {commit.id for commit in reachable(commits, ours)}
    if theirs in of_ours:
        return Relation(ALREADY_UP_TO_DATE)
    # Ancestors of a common ancestor are common too, so each path of the walk ends at its first common ancestor.
    met = [commits[name] for name in dict.fromkeys(_met(commits, theirs, of_ours))]
    if any(commit.id == ours for commit in met):
        return Relation(FAST_FORWARD, (commits[ours],), commits)
    return Relation(MERGED, tuple(_best(commits, met)), commits)


def _met(commits: Mapping[str, Commit], head: str, known: set[str]) -> Iterator[str]:
    """The first known commits on all paths back from a head."""
    waiting, seen = [head], {head}
    while waiting:
        commit = commits.get(waiting.pop())
        for parent in () if commit is None else parents(commit):
            if parent in known:
                yield parent
            elif parent not in seen:
                seen.add(parent)
                waiting.append(parent)


def _best(commits: Mapping[str, Commit], common: list[Commit]) -> Iterator[Commit]:
    """The commits that are no ancestor of another commit in `common`, the latest first."""
    if len(common) <= 1:
        yield from common
        return
    covered: set[str] = set()
    for commit in _latest_first(commits, common):
        # An ancestor has a lower generation, so its descendants come earlier in this order.
        if commit.id not in covered:
            yield commit
            covered |= {ancestor.id for ancestor in reachable(commits, commit.id)}


def _latest_first(commits: Mapping[str, Commit], wanted: Sequence[Commit]) -> list[Commit]:
    depth = generations(commits, wanted)
    return sorted(wanted, key=lambda commit: (depth[commit.id], commit.id), reverse=True)


def generations(commits: Mapping[str, Commit], wanted: Sequence[Commit]) -> dict[str, int]:
    """The length of the longest path from each wanted commit to a root. An ancestor's is always lower."""
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
