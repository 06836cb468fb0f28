"""Creating and deleting graph branches: one Lance branch of `__manifest` each, whatever the number of types or rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from omnigraph import failpoints
from omnigraph.commit.branch_refs import (
    MANIFEST_PATH,
    RESERVED,
    SCHEMA_APPLY_LOCK,
    BranchRef,
    check_name,
    is_name,
    list_names,
    nested_below,
    overlapping,
    read_ref,
)
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import Once
from omnigraph.commit.forked import Offspring, forget_parent, note_parent, offspring
from omnigraph.commit.history import state_of
from omnigraph.commit.manifest import Warm, branch_not_found
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.receipts import Told, answered_once, one_step, settle_begun
from omnigraph.commit.recovery import heal, pending
from omnigraph.commit.retired import RetiredLine, write_line
from omnigraph.commit.retiring import drop_own_forks, own_commits, remove_ref, retired_line
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.errors import AlreadyExists, BadRequest, Conflict, OmnigraphError, RecoveryRequired
from omnigraph.storage.locks import HeldLocks
from omnigraph.storage.tables.commit import create_lance_branch

failpoints.declare(
    "branch_create.before_ref", "branch_delete.before_retiring", "branch_delete.before_ref", "branch_delete.after_ref"
)

_log = logging.getLogger(__name__)

#: The state of the branch after each step was taken, see `receipts`.
_CREATES: Told = {"exists": True}
_DELETES: Told = {"exists": False}


def branch_names(context: CommitContext) -> list[str]:
    """All branch names, main first, the others sorted. Costs one listing; no ref is read."""
    return [MAIN, *list_names(context.store)]


def create_branch(context: CommitContext, name: str, base: str, asked: Once | None = None) -> ManifestState:
    """Make a branch at the current head of another branch; returns its first state.

    `asked`: a repeated call makes nothing, whatever has happened to the branch since.
    """
    made: list[ManifestState] = []

    def create() -> Told:
        with creating(context, name, base) as (_, warm):
            answer = {"head": warm.state.head}
            with one_step(context, name, asked, answer, _CREATES):
                made.append(make_branch(context, warm, name))
            return answer

    head = answered_once(context, asked, create)["head"]
    return made[0] if made else _first_state(context, name, head)


def _first_state(context: CommitContext, name: str, head: str) -> ManifestState:
    """The first state of a branch: its current state while it has no commit, else the state of the commit it was made at."""
    if read_ref(context.store, name) is not None:
        state = context.manifest.load(name)
        if state.head == head:
            return state
    return state_of(context.manifest, context.manifest.commit_near(head))


@contextmanager
def creating(context: CommitContext, name: str, base: str) -> Iterator[tuple[HeldLocks, Warm]]:
    """Locks a free name for a new branch and yields the locks and the base, with no writes pending."""
    check_name(name)
    if not is_name(base):
        raise branch_not_found(base)
    involved = _involved(name, base)
    # A hard drop holds `SCHEMA_APPLY_LOCK`: no branch may be made with tables that the drop is removing.
    with context.locks.hold_all([*involved, SCHEMA_APPLY_LOCK]) as locks:
        taken = overlapping(context.store, name)
        _settle_begun(context, name, taken == name)
        if taken == name:
            raise AlreadyExists(f"branch '{name}' already exists", name=name)
        if taken is not None:
            raise AlreadyExists(
                f"cannot create branch '{name}': its name overlaps with the path of branch '{taken}'", name=taken
            )
        if list_sidecars(context.store):
            # A sidecar of an earlier branch of this name must not be judged against the new branch.
            heal(context, holding=involved)
            _refuse_pending_hard_drop(context)
        yield locks, context.manifest.warm(base)


def make_branch(context: CommitContext, base: Warm, name: str) -> ManifestState:
    """Create the Lance branch, the one step that makes a graph branch exist; its parent is noted before."""
    note_parent(context, base.state.branch)
    failpoints.hit("branch_create.before_ref")
    create_lance_branch(base.dataset, name, base.state.version)
    context.make_durable(MANIFEST_PATH)
    return context.manifest.inherit(base, name)


def _refuse_pending_hard_drop(context: CommitContext) -> None:
    """Raise while a hard drop is unsettled: if it is published later, the new branch would lose its tables."""
    for sidecar in pending(context):
        if sidecar.purged:
            raise RecoveryRequired(
                f"a schema change (operation {sidecar.operation_id}) is half done; create the branch when it is settled",
                operation_id=sidecar.operation_id,
            )


def _involved(name: str, base: str) -> list[str]:
    """The branches to lock: the base, the name, and every prefix of its path."""
    parts = name.split("/")
    names = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return names if base == MAIN else [*names, base]


def delete_branch(context: CommitContext, name: str, only_at: str | None = None, asked: Once | None = None) -> None:
    """Remove a branch: its ref first, which decides whether it exists, then the table forks only it used, best effort.

    Before that, the states of its commits are written down if another branch may reach them; they are readable until cleanup.

    `only_at`: raise unless this commit is still the head. `asked`: a repeated call deletes no later branch of the same name.
    """
    answered_once(context, asked, lambda: _delete_branch(context, name, only_at, asked))


def _delete_branch(context: CommitContext, name: str, only_at: str | None, asked: Once | None) -> Told:
    if not is_name(name):
        raise branch_not_found(name)
    if name in RESERVED:
        why = "" if name == MAIN else ": the name is reserved"
        raise BadRequest(f"cannot delete branch '{name}'{why}")
    with context.locks.hold(name):
        _settle_pending(context, name)
        ref = read_ref(context.store, name)
        _settle_begun(context, name, ref is not None)
        if ref is None:
            raise branch_not_found(name)
        made_from_it = _refuse_dependents(context, ref)
        warm = context.manifest.warm(name)
        if only_at is not None and warm.state.head != only_at:
            raise Conflict(f"cannot delete branch '{name}': it has moved on since it was merged")
        # The lock keeps the branch from moving, so it is read once. A version of its own is the first sign of a commit.
        has_own = warm.state.version != ref.parent_version
        own = own_commits(context.manifest, warm, ref) if has_own else []
        line = retired_line(context, ref, own)
        _refuse_tagged(context, ref, own, line)
        inherited = context.manifest.inherited(name) if has_own else frozenset()
        failpoints.hit("branch_delete.before_retiring")
        if line is not None:
            write_line(context.store, context.root, line)
            context.make_durable(line.path)
        with one_step(context, name, asked, {}, _DELETES):
            failpoints.hit("branch_delete.before_ref")
            remove_ref(context, name)
            failpoints.hit("branch_delete.after_ref")
        if has_own:
            kept = inherited | (set() if line is None else line.locations)
            drop_own_forks(context, warm.state, kept, alone=made_from_it.never)
        if not made_from_it.never:
            forget_parent(context, name)
        _settle_pending(context, name)
    return {}


def _settle_begun(context: CommitContext, name: str, exists: bool) -> None:
    """Settle the branch operation that a dead call had begun on this name; no later call has made or deleted the branch."""
    settle_begun(context, name, lambda plan: exists == plan["exists"])


def _settle_pending(context: CommitContext, name: str) -> None:
    """Settle half-done writes on a branch before it is deleted; writes that can not be settled are deleted with it."""
    try:
        heal(context, holding={name})
    except OmnigraphError as error:
        _log.warning("pending work on branch '%s' goes with it: %s", name, error)


def _refuse_tagged(context: CommitContext, ref: BranchRef, own: Sequence[Commit], line: RetiredLine | None) -> None:
    """Raise if a tag names a commit of the branch whose state is not written down: tagged states must stay readable."""
    if not own:
        return
    kept = {commit for publish in (() if line is None else line.publishes) for commit in publish.commits}
    tags = {tag: commit for tag, commit in context.manifest.load(MAIN).tags.items() if commit not in kept}
    made_here = {commit.id for commit in own}
    for tag, commit in sorted(tags.items()):
        if commit in made_here:
            raise Conflict(
                f"cannot delete branch '{ref.name}': tag '{tag}' names a commit that was made on it; delete the tag first"
            )


def _refuse_dependents(context: CommitContext, ref: BranchRef) -> Offspring:
    """Raise if another branch depends on this branch; returns what was ever made from it."""
    child = nested_below(context.store, ref.name)
    if child is not None:
        raise Conflict(f"cannot delete branch '{ref.name}': '{child}' lies under it, delete the child branch first")
    made_from_it = offspring(context, ref)
    if made_from_it.alive is not None:
        raise Conflict(f"cannot delete branch '{ref.name}': branch '{made_from_it.alive.name}' still depends on it")
    return made_from_it
