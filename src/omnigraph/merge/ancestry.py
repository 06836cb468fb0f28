"""How two commits are related: who is an ancestor of whom, and from which common ancestors a merge can start. Pure."""

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
    """What a merge of `theirs` into `ours` amounts to.

    `best`: the common ancestors that no other one descends from, the latest by (generation, id) first. That one is the
    base; there are others after criss-cross merges.
    """

    outcome: str
    best: tuple[Commit, ...] = ()
    commits: Mapping[str, Commit] = field(default_factory=dict, repr=False)

    def bases(self) -> Iterator[Commit]:
        """All common ancestors, the base first, then ever older ones; most are never asked for."""
        if not self.best:
            return
        yield self.best[0]
        common = {commit.id: commit for best in self.best for commit in reachable(self.commits, best.id)}
        yield from _latest_first(self.commits, list(common.values()))[1:]

    def crossed(self) -> Iterator[tuple[Commit, Commit]]:
        """The other best ancestors, each with the best ancestor that it and the base have in common."""
        for other in self.best[1:]:
            root = next(relate(self.commits, self.best[0].id, other.id).bases(), None)
            if root is not None:
                yield other, root


def relate(commits: Mapping[str, Commit], ours: str, theirs: str) -> Relation:
    """Compare two heads over the whole DAG, merged parents included; the base is the same in both directions."""
    of_ours = {commit.id for commit in reachable(commits, ours)}
    if theirs in of_ours:
        return Relation(ALREADY_UP_TO_DATE)
    # Whatever lies behind a common ancestor is common too, so the walk ends at the first one on each way.
    met = [commits[name] for name in dict.fromkeys(_met(commits, theirs, of_ours))]
    if any(commit.id == ours for commit in met):
        return Relation(FAST_FORWARD, (commits[ours],), commits)
    return Relation(MERGED, tuple(_best(commits, met)), commits)


def _met(commits: Mapping[str, Commit], head: str, known: set[str]) -> Iterator[str]:
    """The first known commits on all ways back from a head."""
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
    """Those of some commits that are no ancestor of another one, the latest first."""
    if len(common) <= 1:
        yield from common
        return
    covered: set[str] = set()
    for commit in _latest_first(commits, common):
        # An ancestor has a lower generation, so what descends from it came before.
        if commit.id not in covered:
            yield commit
            covered |= {ancestor.id for ancestor in reachable(commits, commit.id)}


def _latest_first(commits: Mapping[str, Commit], wanted: Sequence[Commit]) -> list[Commit]:
    depth = generations(commits, wanted)
    return sorted(wanted, key=lambda commit: (depth[commit.id], commit.id), reverse=True)


def generations(commits: Mapping[str, Commit], wanted: Sequence[Commit]) -> dict[str, int]:
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
