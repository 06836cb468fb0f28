"""The commit DAG: what is reachable from a head, in which order, and which commits another branch lacks."""

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
    """Every commit of some that can be reached from a head, each once, the head first; not by way of those of `until`."""
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
    """The commits from a head back along first parents, the head first: what a branch was, one state after the other."""
    commit = commits.get(head)
    while commit is not None:
        yield commit
        commit = commits.get(commit.parent) if commit.parent is not None else None


def made_on(known: Mapping[str, Commit], state: ManifestState, ref: BranchRef | None) -> list[Commit]:
    """The commits that were made on a branch, newest first: from its head back along first parents to where it began.

    `ref`: of the branch, None for main. Commits that an earlier branch of the same name made, and that a merge or the fork has
    brought here, are none of them.
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
    """Commits in the order of a log: each before its parents, else the younger first."""
    children = dict.fromkeys(commits, 0)
    for commit in commits.values():
        for parent in parents(commit):
            if parent in children:
                children[parent] += 1
    ordered: list[Commit] = []
    # Of the commits whose children are all listed, the youngest is next; the id decides between equals.
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
    """The state a commit led to. The branch it was made on may be gone, or be another branch of the same name now."""
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
    """The state of the publish that made a commit, alone or with others; None when it is gone."""
    found = _publish_of(manifest, commit)
    return None if found is None else found.state


def _publish_of(manifest: Manifest, commit: Commit) -> Publish | None:
    """The publish that made a commit: as its branch knows it, else as it was written down when that went."""
    try:
        found = _on_branch(manifest, commit)
    except HistoricalVersionReclaimed:
        # A version that is gone may be one of a later branch of the same name, which says nothing about this commit.
        found = find_publish(manifest.store, commit)
        if found is None:
            raise
        return found
    return found or find_publish(manifest.store, commit)


def _on_branch(manifest: Manifest, commit: Commit) -> Publish | None:
    """The publish of a commit as the branch knows it that it was made on; None when that is gone, or is another one by now."""
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
    """The state between two commits that were published together.

    A table that only commits up to this one have touched is as it is after all of them, one that only later ones have touched
    as it was before them. Of others some rows count: no two commits of a group have touched the same row.
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
    """The commit that a group was published on."""
    for _ in range(group.place):
        commit = manifest.parent_of(commit)
    return commit


def states_along(manifest: Manifest, before: ManifestState, commits: Sequence[Commit]) -> list[ManifestState]:
    """The states, for reading, that the first of some commits led to: at least that of the first one.

    `commits` follow each other, `before` is the state of the parent of the first. Where the manifest holds what each of them
    published on top of the one before, that is read in one scan; else the first is read as a whole.
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
    """The commits reachable from a tip (on any branch) that a branch's manifest does not have, oldest first."""
    known = manifest.commits(branch)
    if tip in known:
        return []
    for ref in [MAIN, *(ref.name for ref in list_refs(manifest.store))]:
        others = manifest.commits(ref)
        if tip in others:
            return lacking(known, others, tip)
    return []


def lacking(known: Mapping[str, Commit], others: Mapping[str, Commit], tip: str) -> list[Commit]:
    """The commits reachable from a tip among others that are not known, oldest first.

    A manifest that knows a commit knows all before it, so the way back ends there.
    """
    return sorted(reachable(others, tip, known), key=lambda commit: commit.id)
