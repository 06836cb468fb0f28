"""Merging branches, taking a commit back, and applying one elsewhere."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.model import MAIN
from omnigraph.errors import Conflict, OmnigraphError
from omnigraph.graph.handle import Handle

if TYPE_CHECKING:
    from omnigraph.merge.options import Options
    from omnigraph.merge.resolutions import Given
    from omnigraph.merge.result import MergeResult

_log = logging.getLogger(__name__)


class Merging(Handle):
    """The verbs that bring changes from one line of history to another."""

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        actor: str | None = None,
        delete_branch: bool = False,
        dry_run: bool = False,
        strategy: str | None = None,
        resolutions: Given | None = None,
        property_level: bool = False,
        idempotency_key: str | None = None,
        images: bool = False,
    ) -> MergeResult:
        """Merge a branch into another one (this handle's branch unless given): one commit with two parents.

        Conflicts are raised as `MergeConflicts`, and nothing is written; a dry run returns them. `strategy` decides
        for "ours" (the target) or "theirs", but never against a rule of the schema. `resolutions` is a list of
        `{type_key, id, take: ours|theirs|base|value}` or a JSON file of it. With `property_level`, changes to different
        properties of one entity are combined. `images`: conflicts carry the entity as base, ours and theirs have it.
        `delete_branch` removes the source afterwards; if that is refused, `stats` says why.
        """
        from omnigraph.merge.execute import merge

        options = self._merge_options(actor, dry_run, strategy, resolutions, property_level, idempotency_key, images)
        target = into or self.branch
        result = merge(self._context, self.contract().catalog, source, target, options)
        return self._without_source(source, result) if delete_branch and not dry_run else result

    def revert(
        self,
        commit: str,
        branch: str | None = None,
        *,
        actor: str | None = None,
        dry_run: bool = False,
        strategy: str | None = None,
        resolutions: Given | None = None,
        property_level: bool = False,
        idempotency_key: str | None = None,
        images: bool = False,
    ) -> MergeResult:
        """Publish the inverse of a commit on a branch; conflicts as in a merge, where later commits built on it."""
        from omnigraph.merge.pick import revert

        options = self._merge_options(actor, dry_run, strategy, resolutions, property_level, idempotency_key, images)
        return revert(self._context, self.contract().catalog, commit, branch or self.branch, options)

    def cherry_pick(
        self,
        commit: str,
        onto: str | None = None,
        *,
        actor: str | None = None,
        dry_run: bool = False,
        strategy: str | None = None,
        resolutions: Given | None = None,
        property_level: bool = False,
        idempotency_key: str | None = None,
        images: bool = False,
    ) -> MergeResult:
        """Apply to a branch what one commit changed against its first parent; conflicts as in a merge."""
        from omnigraph.merge.pick import cherry_pick

        options = self._merge_options(actor, dry_run, strategy, resolutions, property_level, idempotency_key, images)
        return cherry_pick(self._context, self.contract().catalog, commit, onto or self.branch, options)

    def _merge_options(
        self,
        actor: str | None,
        dry_run: bool,
        strategy: str | None,
        resolutions: Given | None,
        property_level: bool,
        idempotency_key: str | None,
        images: bool,
    ) -> Options:
        from omnigraph.merge.options import Options, read_strategy
        from omnigraph.merge.resolutions import read_resolutions

        if not dry_run:
            self._refuse_read_only()
        return Options(
            strategy=read_strategy(strategy),
            resolutions=read_resolutions(resolutions, self.contract().catalog),
            property_level=property_level,
            images=images,
            dry_run=dry_run,
            actor=actor or self.actor,
            idempotency_key=idempotency_key,
        )

    def _without_source(self, source: str, result: MergeResult) -> MergeResult:
        """Remove the source of a merge that is done. That it can not be removed does not undo the merge."""
        try:
            if source == self.branch and source != MAIN:
                raise Conflict(f"cannot delete branch '{source}': it is the currently active branch of this handle")
            delete_branch(self._context, source)
        except OmnigraphError as error:
            _log.warning("branch '%s' was merged but not deleted: %s", source, error)
            return replace(
                result, stats={**result.stats, "branch_deleted": False, "branch_delete_error": error.message}
            )
        return replace(result, stats={**result.stats, "branch_deleted": True})
