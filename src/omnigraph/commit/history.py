"""The commit DAG: which commits are reachable from a head, in which order, and which commits a branch lacks."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from omnigraph.commit.branch_refs import BranchRef, list_refs
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, Group, ManifestState, identity_text
from omnigraph.commit.retired import Publish, find_publish
from omnigraph.errors import HistoricalVersionReclaimed, NotFound
from omnigraph.storage.tables.location import Part


def parents(commit: Commit) -> tuple[str, ...]:
    """The parents of a commit, first parent first."""
    return tuple(parent for parent in (commit.parent, commit.merged_parent) if parent is not None)


def reachable(commits: Mapping[str, Commit], head: str, until: Container[str] = ()) -> Iterator[Commit]:
    """The commits reachable from a head, each once, the head first. The walk stops before the commits in `until`."""
    waiting, seen = [head], {head}
    while waiting:
        commit = commits.get(waiting.pop())
        if commit is None or commit.id in until:
            continue
        yield commit
        for parent in parents(commit):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)


def first_parents(commits: Mapping[str, Commit], head: str) -> Iterator[Commit]:
    """The commits from a head back along first parents, the head first: the successive heads of one branch."""
    commit = commits.get(head)
    while commit is not None:
        yield commit
        commit = commits.get(commit.parent) if commit.parent is not None else None


def made_on(known: Mapping[str, Commit], state: ManifestState, ref: BranchRef | None) -> list[Commit]:
    """The commits made on a branch, newest first: from its head back along first parents to its fork point.

    `ref`: the ref of the branch, None for main. Commits of an earlier branch of the same name are left out, even if a merge or
    the fork has brought them here.
    """
    made = []
    for commit in first_parents(known, state.head):
        if commit.branch != state.branch or (ref is not None and commit.manifest_version <= ref.parent_version):
            break
        made.append(commit)
    return made


def history(manifest: Manifest, branch: str = MAIN) -> list[Commit]:
    """The commits reachable from a branch's head, newest first."""
    state = manifest.load(branch)
    return newest_first(manifest.commits(branch), state.head)


def newest_first(known: Mapping[str, Commit], head: str) -> list[Commit]:
    """The commits reachable from a head, each before its parents."""
    return children_first({commit.id: commit for commit in reachable(known, head)})


def children_first(commits: Mapping[str, Commit]) -> list[Commit]:
    """Commits in the order of a log: each before its parents, otherwise newest first."""
    children = dict.fromkeys(commits, 0)
    for commit in commits.values():
        for parent in parents(commit):
            if parent in children:
                children[parent] += 1
    ordered: list[Commit] = []
    # Of the commits whose children are all listed, the newest is next; the id breaks ties.
    ready = [commit for commit in commits.values() if children[commit.id] == 0]
    while ready:
        ready.sort(key=lambda commit: (commit.created_at, commit.id))
        commit = ready.pop()
        ordered.append(commit)
        for parent in parents(commit):
            if parent in children:
                children[parent] -= 1
                if children[parent] == 0:
                    ready.append(commits[parent])
    return ordered


def state_of(manifest: Manifest, commit: Commit) -> ManifestState:
    """The state that a commit led to. Its branch may have been deleted, or the name may belong to a later branch."""
    found = _publish_of(manifest, commit)
    if found is None:
        raise HistoricalVersionReclaimed(
            f"the state of commit {commit.id} is gone with branch '{commit.branch}' it was made on "
            "(incarnation witness: that branch was deleted or created anew)",
            version=commit.id,
        )
    if commit.group is not None and commit.group.place < commit.group.size:
        return _state_within(manifest, commit, commit.group, found)
    return found.state


def published_state(manifest: Manifest, commit: Commit) -> ManifestState | None:
    """The state after the publish of a commit, alone or in a group; None when it is gone."""
    found = _publish_of(manifest, commit)
    return None if found is None else found.state


def _publish_of(manifest: Manifest, commit: Commit) -> Publish | None:
    """The publish of a commit, as its branch knows it, else as it was written down when the branch was deleted."""
    try:
        found = _on_branch(manifest, commit)
    except HistoricalVersionReclaimed:
        # The missing version may belong to a later branch of the same name, which says nothing about this commit.
        found = find_publish(manifest.store, commit)
        if found is None:
            raise
        return found
    return found or find_publish(manifest.store, commit)


def _on_branch(manifest: Manifest, commit: Commit) -> Publish | None:
    """The publish of a commit as known on the branch it was made on; None if that branch is gone or was created again."""
    try:
        state = manifest.load_at(commit.branch, commit.manifest_version)
    except NotFound:
        return None
    if commit.group is None or commit.group.place == commit.group.size:
        return Publish(state, (commit.id,)) if state.head == commit.id else None
    members = manifest.members_of(commit, commit.group.id)
    if len(members) != commit.group.size or state.version != commit.manifest_version:
        return None
    return Publish(state, (commit.id,), tuple(members))


def _state_within(manifest: Manifest, commit: Commit, group: Group, publish: Publish) -> ManifestState:
    """The state between two commits of one group.

    A table that only commits up to this commit have touched is as after the group. A table that only later commits have touched
    is as before the group. Of any other table some rows count (`Part`): no two commits of a group touch the same row.
    """
    members, after = publish.touched, publish.state
    before = state_of(manifest, _parent_of_group(manifest, commit, group))
    tables = {}
    for identity, entry in after.tables.items():
        name, old = identity_text(identity), before.tables.get(identity)
        shown, hidden = (
            [touched[name] for touched in some if name in touched]
            for some in (members[: group.place], members[group.place :])
        )
        if old is None or not hidden:
            tables[identity] = entry
        elif not shown:
            tables[identity] = old
        else:
            shown_ids, hidden_ids = (frozenset(id_ for one in some for id_ in one.ids) for some in (shown, hidden))
            part = Part(old.location, old.version, shown_ids, hidden_ids)
            tables[identity] = replace(entry, row_count=old.row_count + sum(one.rows for one in shown), part=part)
    return replace(after, head=commit.id, tables=tables, addresses={}, newest=None)


def _parent_of_group(manifest: Manifest, commit: Commit, group: Group) -> Commit:
    """The commit on top of which a group was published."""
    for _ in range(group.place):
        commit = manifest.parent_of(commit)
    return commit


def states_along(manifest: Manifest, before: ManifestState, commits: Sequence[Commit]) -> list[ManifestState]:
    """The states, for reading, that the first few of these commits led to: at least the state of the first commit.

    `commits` follow each other; `before` is the state of the first one's parent. If the manifest holds what each commit
    published on top of the previous one, the states are read in one scan; else only the first commit's state is read.
    """
    run: list[Commit] = []
    for commit in commits:
        parent = run[-1] if run else None
        follows = before.head == commit.parent if parent is None else parent.id == commit.parent
        next_version = commit.manifest_version if parent is None else parent.manifest_version + 1
        if not follows or commit.branch != before.branch or commit.manifest_version != next_version:
            break
        run.append(commit)
    on_top = run and run[0].manifest_version > before.version and not before.retired
    found = manifest.load_run(before, run) if on_top else []
    return found or [state_of(manifest, commits[0])]


def missing_commits(manifest: Manifest, branch: str, tip: str) -> list[Commit]:
    """The commits reachable from a tip, on any branch, that a branch's manifest does not have, oldest first."""
    known = manifest.commits(branch)
    if tip in known:
        return []
    for ref in [MAIN, *(ref.name for ref in list_refs(manifest.store))]:
        others = manifest.commits(ref)
        if tip in others:
            return lacking(known, others, tip)
    return []


def lacking(known: Mapping[str, Commit], others: Mapping[str, Commit], tip: str) -> list[Commit]:
    """The commits of `others` reachable from a tip that are not in `known`, oldest first.

    A manifest that knows a commit knows all its ancestors, so the walk stops at known commits.
    """
    return sorted(reachable(others, tip, known), key=lambda commit: commit.id)
