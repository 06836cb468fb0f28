"""Which commits cleanup keeps: by a policy, and because live parts of the graph need them in any case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import combinations
from typing import Any, Literal, get_args

from omnigraph.commit.branch_refs import MANIFEST_PATH, BranchRef, list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import made_on, reachable, state_of
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.staging_jobs import list_jobs
from omnigraph.commit.tags import tagged_commits
from omnigraph.errors import BadRequest, CommitNotFound, HistoricalVersionReclaimed
from omnigraph.ids import now_micros
from omnigraph.storage.tables.dataset_files import LineFiles, list_dataset


@dataclass(frozen=True, slots=True)
class Policy:
    """The commits an operator wants kept: the newest `keep` of each branch, those younger than `older_than`, or both."""

    keep: int | None = None
    older_than: timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than is None:
            raise BadRequest("cleanup needs to know what to keep: give keep (a number of commits), older_than, or both")
        if self.keep is not None and type(self.keep) is not int:
            # In Python True is an int, and would keep one commit.
            raise BadRequest(f"keep is a whole number of commits, not {self.keep!r}")
        if self.older_than is not None and not isinstance(self.older_than, timedelta):
            raise BadRequest(f"older_than is a length of time such as '7d', or a timedelta, not {self.older_than!r}")
        if self.keep is not None and self.keep < 1:
            raise BadRequest(f"cleanup keeps at least the newest commit of each branch; keep={self.keep} is too few")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise BadRequest("older_than is a length of time; it can not be negative")


#: Why a commit stays although the policy lets it go: it is its branch's head, the change feed may need it, a running job
#: may read it, a tag names it, it is the merge base of two live branches, or a live branch was made at it.
Reason = Literal["head", "feed", "job", "tag", "merge_base", "fork_point"]
_REASONS: tuple[Reason, ...] = get_args(Reason)


@dataclass(frozen=True, slots=True)
class KeptFor:
    """How many commits of a branch keep their state for one reason, not counting commits that the policy keeps.

    A commit kept for two reasons counts for both.
    """

    reason: Reason
    branch: str
    commits: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class KeptBranch:
    """A branch and its kept manifest versions: all from `floor` on, and single ones below.

    `reasons`: why commits stay although the policy lets them go.
    """

    name: str
    head: ManifestState
    floor: int
    singles: frozenset[int] = field(default_factory=frozenset)
    reasons: tuple[KeptFor, ...] = ()


def kept_branches(context: CommitContext, policy: Policy, feed: timedelta) -> list[KeptBranch]:
    """The kept versions of every live branch."""
    manifest = context.manifest
    refs = {ref.name: ref for ref in list_refs(context.store)}
    jobs = [job.started_at for job in list_jobs(context.store) if not job.is_expired()]
    since: dict[Reason, int] = {"feed": now_micros() - micros_of(feed)}
    if jobs:
        since["job"] = min(jobs)
    histories = {name: manifest.commits(name) for name in (MAIN, *refs)}
    states = {name: manifest.load(name) for name in (MAIN, *refs)}
    lines = list_dataset(context.store, MANIFEST_PATH).lines
    singles: dict[str, dict[Reason, set[int]]] = {name: {} for name in states}
    for ref in refs.values():
        singles[ref.parent].setdefault("fork_point", set()).add(ref.parent_version)
    wanted: Iterable[tuple[Reason, Iterable[Commit]]] = (
        ("tag", _tagged(context)),
        ("merge_base", merge_bases(histories, states)),
    )
    for reason, commits in wanted:
        for commit in commits:
            # If the branch of a commit is deleted, or was created again, there is no state to keep here.
            if commit.branch in states and _has_state(context, commit):
                singles[commit.branch].setdefault(reason, set()).update(_versions_of(commit, histories[commit.branch]))
    return [
        _kept_branch(
            state,
            made_on(histories[name], state, refs.get(name)),
            refs.get(name),
            policy,
            since,
            singles[name],
            _versions(lines, name),
        )
        for name, state in states.items()
    ]


def _versions_of(commit: Commit, known: Mapping[str, Commit]) -> Iterator[int]:
    """The versions of its branch's manifest from which the state of a commit is read.

    The state of a commit within a group, except the last, is built from the states before and after the group.
    """
    yield commit.manifest_version
    before: Commit | None = commit
    if commit.group is not None and commit.group.place < commit.group.size:
        while before is not None and before.group is not None and before.group.id == commit.group.id:
            before = known.get(before.parent) if before.parent is not None else None
        if before is not None and before.branch == commit.branch:
            yield before.manifest_version


def _kept_branch(
    state: ManifestState,
    chain: Sequence[Commit],
    ref: BranchRef | None,
    policy: Policy,
    since: Mapping[Reason, int],
    singles: Mapping[Reason, Collection[int]],
    existing: Collection[int],
) -> KeptBranch:
    """The kept versions of one branch, and the reasons.

    `chain`: the commits made on it, newest first. `since`: by reason, the time in microseconds from which all commits stay.
    `singles`: by reason, single manifest versions to keep. `existing`: the manifest versions that still exist.
    """
    asked_for = _policy_floor(chain, policy, existing)
    floors: dict[Reason, int] = {"head": state.commit_version} if asked_for is None else {}
    for reason, moment in since.items():
        floor = _floor_since(chain, ref, moment, existing)
        if floor is not None:
            floors[reason] = floor
    own = [commit.manifest_version for commit in chain]
    needed: dict[Reason, Iterable[int]] = {
        **singles,
        **{reason: [version for version in own if version >= floor] for reason, floor in floors.items()},
    }
    spared = {
        reason: sum(version in existing and (asked_for is None or version < asked_for) for version in versions)
        for reason, versions in needed.items()
    }
    return KeptBranch(
        name=state.branch,
        head=state,
        floor=min(floor for floor in (asked_for, *floors.values()) if floor is not None),
        singles=frozenset(() if ref is None else (ref.parent_version,)).union(*singles.values()),
        reasons=tuple(KeptFor(reason, state.branch, spared[reason]) for reason in _REASONS if spared.get(reason)),
    )


def _policy_floor(chain: Sequence[Commit], policy: Policy, existing: Collection[int]) -> int | None:
    """The existing manifest version from which the policy keeps all versions of a branch; None: it keeps none."""
    young_since = None if policy.older_than is None else now_micros() - micros_of(policy.older_than)
    wanted = (
        commit.manifest_version
        for place, commit in enumerate(chain)
        if (policy.keep is not None and place < policy.keep)
        or (young_since is not None and commit.created_at >= young_since)
    )
    return min((version for version in wanted if version in existing), default=None)


def _floor_since(chain: Sequence[Commit], ref: BranchRef | None, moment: int, existing: Collection[int]) -> int | None:
    """The version from which all versions stay, so that all commits since a moment can be compared with their parents.

    None when there is no such commit, or none of these versions exists.
    """
    wanted = []
    for place, commit in enumerate(chain):
        if commit.created_at >= moment:
            before = chain[place + 1].manifest_version if place + 1 < len(chain) else _first_version(ref)
            wanted += [commit.manifest_version, before]
    return min((version for version in wanted if version in existing), default=None)


def _versions(lines: Mapping[str | None, LineFiles], branch: str) -> Collection[int]:
    """The existing versions of a branch's manifest."""
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


def merge_bases(histories: Mapping[str, Mapping[str, Commit]], states: Mapping[str, ManifestState]) -> Iterable[Commit]:
    """The merge bases of all pairs of live branches: common ancestors that are no ancestor of another common ancestor."""
    ancestors = {
        name: {commit.id: commit for commit in reachable(histories[name], state.head)} for name, state in states.items()
    }
    for one, other in combinations(states, 2):
        common = {id_: commit for id_, commit in ancestors[one].items() if id_ in ancestors[other]}
        below = {parent for commit in common.values() for parent in (commit.parent, commit.merged_parent)}
        yield from (commit for id_, commit in common.items() if id_ not in below)


def _has_state(context: CommitContext, commit: Commit) -> bool:
    try:
        # The retired state of a deleted branch is not one to keep on a live branch.
        return not state_of(context.manifest, commit).retired
    except HistoricalVersionReclaimed:
        return False


def micros_of(length: timedelta) -> int:
    """A duration in microseconds."""
    return int(length.total_seconds() * 1_000_000)
