"""Which commits cleanup keeps: a policy, and what every live thing of the graph still needs whatever the policy says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations

from omnigraph.commit.branch_refs import MANIFEST_PATH, BranchRef, list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import reachable, state_of
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.staging_jobs import list_jobs
from omnigraph.commit.tags import tagged_commits
from omnigraph.errors import BadRequest, CommitNotFound, HistoricalVersionReclaimed
from omnigraph.ids import now_micros
from omnigraph.storage.tables.dataset_files import LineFiles, list_dataset


@dataclass(frozen=True, slots=True)
class Policy:
    """What an operator wants kept: the newest commits of each branch, those younger than this, or both."""

    keep: int | None = None
    older_than: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than is None:
            raise BadRequest("cleanup needs to know what to keep: give keep (a number of commits), older_than, or both")
        if self.keep is not None and type(self.keep) is not int:
            # True is a number to Python, and would keep one commit.
            raise BadRequest(f"keep is a whole number of commits, not {self.keep!r}")
        if self.older_than is not None and not isinstance(self.older_than, timedelta):
            raise BadRequest(f"older_than is a length of time such as '7d', or a timedelta, not {self.older_than!r}")
        if self.keep is not None and self.keep < 1:
            raise BadRequest(f"cleanup keeps at least the newest commit of each branch; keep={self.keep} is too few")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise BadRequest("older_than is a length of time; it can not be negative")


@dataclass(frozen=True, slots=True)
class KeptBranch:
    """A branch and the versions of its manifest that stay: all from `floor` on, and some single ones before it."""

    name: str
    head: ManifestState
    floor: int
    singles: frozenset[int] = field(default_factory=frozenset)


def kept_branches(context: CommitContext, policy: Policy, feed: timedelta) -> list[KeptBranch]:
    """What stays of every live branch."""
    manifest = context.manifest
    refs = {ref.name: ref for ref in list_refs(context.store)}
    jobs = (job for job in list_jobs(context.store) if not job.is_expired())
    needed_since = min([now_micros() - _micros(feed), *(job.started_at for job in jobs)])
    histories = {name: manifest.commits(name) for name in (MAIN, *refs)}
    states = {name: manifest.load(name) for name in (MAIN, *refs)}
    lines = list_dataset(context.store, MANIFEST_PATH).lines
    singles: dict[str, set[int]] = {name: set() for name in states}
    for ref in refs.values():
        singles[ref.name].add(ref.parent_version)
        singles[ref.parent].add(ref.parent_version)
    for commit in (*_tagged(context), *_merge_bases(histories, states)):
        # A commit whose branch is gone, or is another one of the same name by now, has no state to keep.
        if commit.branch in states and _has_state(context, commit):
            singles[commit.branch].add(commit.manifest_version)
    return [
        KeptBranch(
            name=name,
            head=state,
            floor=_floor(
                _own_chain(histories[name], state, refs.get(name)),
                state,
                refs.get(name),
                policy,
                needed_since,
                _versions(lines, name),
            ),
            singles=frozenset(singles[name]),
        )
        for name, state in states.items()
    ]


def _own_chain(known: Mapping[str, Commit], state: ManifestState, ref: BranchRef | None) -> list[Commit]:
    """The commits that were made on a branch, newest first: the first parents from its head back to the fork point."""
    chain = []
    commit = known.get(state.head)
    while commit is not None and commit.branch == state.branch:
        if ref is not None and commit.manifest_version <= ref.parent_version:
            break
        chain.append(commit)
        commit = known.get(commit.parent) if commit.parent is not None else None
    return chain


def _floor(
    chain: Sequence[Commit],
    state: ManifestState,
    ref: BranchRef | None,
    policy: Policy,
    needed_since: int,
    existing: Collection[int],
) -> int:
    """The manifest version from which everything on a branch stays, as far as it is still there."""
    wanted = []
    young_since = None if policy.older_than is None else now_micros() - _micros(policy.older_than)
    for place, commit in enumerate(chain):
        chosen = (policy.keep is not None and place < policy.keep) or (
            young_since is not None and commit.created_at >= young_since
        )
        if chosen or commit.created_at >= needed_since:
            wanted.append(commit.manifest_version)
        if commit.created_at >= needed_since:
            # The feed, and a job that began here, compare with what was there before.
            before = chain[place + 1].manifest_version if place + 1 < len(chain) else _first_version(ref)
            wanted.append(before)
    return min((version for version in wanted if version in existing), default=state.commit_version)


def _versions(lines: Mapping[str | None, LineFiles], branch: str) -> Collection[int]:
    """The versions of a branch's manifest that are there."""
    line = lines.get(None if branch == MAIN else branch)
    return () if line is None else line.versions.keys()


def _first_version(ref: BranchRef | None) -> int:
    return 1 if ref is None else ref.parent_version


def _tagged(context: CommitContext) -> Iterable[Commit]:
    for commit_id in tagged_commits(context).values():
        try:
            yield context.manifest.commit_near(commit_id)
        except CommitNotFound:
            continue


def _merge_bases(
    histories: Mapping[str, Mapping[str, Commit]], states: Mapping[str, ManifestState]
) -> Iterable[Commit]:
    """From where two live branches can be merged: their common ancestors that are no ancestors of another one."""
    ancestors = {
        name: {commit.id: commit for commit in reachable(histories[name], state.head)} for name, state in states.items()
    }
    for one, other in combinations(states, 2):
        common = {id_: commit for id_, commit in ancestors[one].items() if id_ in ancestors[other]}
        below = {parent for commit in common.values() for parent in (commit.parent, commit.merged_parent)}
        yield from (commit for id_, commit in common.items() if id_ not in below)


def _has_state(context: CommitContext, commit: Commit) -> bool:
    try:
        state_of(context.manifest, commit)
    except HistoricalVersionReclaimed:
        return False
    return True


def _micros(length: timedelta) -> int:
    return int(length.total_seconds() * 1_000_000)
