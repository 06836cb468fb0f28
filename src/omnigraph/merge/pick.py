"""Revert and cherry-pick: three-way merges with a commit and its parent as two of the sides."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of
from omnigraph.commit.messages import first_line
from omnigraph.commit.model import Commit, ManifestState
from omnigraph.errors import CommitHasNoParent
from omnigraph.merge.ancestry import ALREADY_UP_TO_DATE, MERGED
from omnigraph.merge.execute import Planned, Request, run
from omnigraph.merge.options import Options
from omnigraph.merge.plan import make_plan
from omnigraph.merge.result import MergeResult
from omnigraph.merge.schemas import Schemas
from omnigraph.merge.states import Sides


def revert(context: CommitContext, schemas: Schemas, commit_id: str, branch: str, options: Options) -> MergeResult:
    """Publish the inverse of a commit on a branch."""
    commit, parent = _with_parent(context, commit_id, branch)
    before, after = state_of(context.manifest, parent), state_of(context.manifest, commit)
    return _apply(context, schemas, "revert", commit, (after, before), branch, options)


def cherry_pick(context: CommitContext, schemas: Schemas, commit_id: str, onto: str, options: Options) -> MergeResult:
    """Publish on a branch the changes of a commit against its first parent."""
    commit, parent = _with_parent(context, commit_id, onto)
    before, after = state_of(context.manifest, parent), state_of(context.manifest, commit)
    return _apply(context, schemas, "cherry_pick", commit, (before, after), onto, options)


def _with_parent(context: CommitContext, commit_id: str, branch: str) -> tuple[Commit, Commit]:
    commit = context.manifest.commit_near(commit_id, branch)
    if commit.parent is None:
        raise CommitHasNoParent(
            f"commit {commit.id} is the first of the graph and has no parent to compare it with", commit=commit.id
        )
    return commit, context.manifest.commit_near(commit.parent, branch)


def _apply(
    context: CommitContext,
    schemas: Schemas,
    kind: str,
    commit: Commit,
    change: tuple[ManifestState, ManifestState],
    branch: str,
    options: Options,
) -> MergeResult:
    base, theirs = change
    if commit.kind == "schema":
        # Such a commit changes whole columns, so other properties of an entity must not conflict.
        options = replace(options, property_level=True, is_habit=False)

    def prepare(ours: ManifestState) -> Planned:
        plan = make_plan(context, schemas, Sides(base, ours, theirs, commit.id), options)
        if plan.is_empty and not plan.conflicts:
            return Planned(ALREADY_UP_TO_DATE, stats={"of": commit.id, **plan.stats()})
        return Planned(MERGED, plan, stats={"of": commit.id})

    about = f"Revert commit {commit.id}" if kind == "revert" else f"Cherry-pick commit {commit.id}"
    said = about if commit.message is None else f"{about}: {first_line(commit.message)}"
    words = f"{kind.replace('_', '-')} of commit {commit.id} on '{branch}'"
    fingerprint = options.fingerprint(kind, commit.id, branch)
    return run(context, Request(kind, branch, words, options, fingerprint, prepare, said))
