"""Merging branches, taking a commit back, and applying one elsewhere."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.model import MAIN
from omnigraph.commit.updates import SchemaIs
from omnigraph.errors import Conflict, OmnigraphError
from omnigraph.graph.contract import Contract
from omnigraph.graph.handle import Handle
from omnigraph.policy.actions import BRANCH_DELETE, BRANCH_MERGE, CHANGE, Need
from omnigraph.spark.options import refuse_unknown_engine

if TYPE_CHECKING:
    from omnigraph.merge.options import Options
    from omnigraph.merge.resolutions import Given
    from omnigraph.merge.result import MergeResult

_log = logging.getLogger(__name__)


class Asked(TypedDict, total=False):
    """What `merge`, `revert` and `cherry_pick` take alike."""

    actor: str | None
    #: Everything but the writing: the outcome, the counts and the conflicts.
    dry_run: bool
    #: Decides conflicts between the sides for "ours" (the target) or "theirs", but never against a rule of the schema.
    strategy: str | None
    #: A list of `{type_key, id, take: ours|theirs|base|value}`, or a JSON file of it.
    resolutions: Given | None
    #: Changes to different properties of one entity are combined.
    property_level: bool
    #: A repeat of the call returns the first answer and writes nothing.
    idempotency_key: str | None
    #: Conflicts carry the entity as base, ours and theirs have it.
    images: bool
    #: Where large differences are judged; "auto" takes Spark from a million rows.
    engine: Literal["auto", "local", "spark"]


class Merging(Handle):
    """The verbs that bring changes from one line of history to another. Each takes what `Asked` lists."""

    def merge(
        self, source: str, into: str | None = None, *, delete_branch: bool = False, **asked: Unpack[Asked]
    ) -> MergeResult:
        """Merge a branch into another one (this handle's branch unless given): one commit with two parents.

        Conflicts are raised together as `MergeConflicts`, and nothing is written; a dry run returns them.
        `delete_branch` removes the source afterwards; if that is refused, `stats` says why. For the rest see `Asked`.
        """
        from omnigraph.merge.execute import merge

        needs = [Need(BRANCH_MERGE, source, self._named(into))]
        self._check(asked, *needs, *([Need(BRANCH_DELETE, None, source)] if delete_branch else []))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._options(asked, contract, schema)
            return merge(self._context, contract.catalog, source, self._named(into), options)

        result = self._under_schema(attempt)
        if not delete_branch or asked.get("dry_run"):
            return result
        return self._without_source(source, self._named(into), result)

    def revert(self, commit: str, branch: str | None = None, **asked: Unpack[Asked]) -> MergeResult:
        """Publish the inverse of a commit on a branch; conflicts as in a merge, where later commits built on it."""
        from omnigraph.merge.pick import revert

        self._check(asked, Need(CHANGE, self._named(branch)))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._options(asked, contract, schema)
            return revert(self._context, contract.catalog, commit, self._named(branch), options)

        return self._under_schema(attempt)

    def cherry_pick(self, commit: str, onto: str | None = None, **asked: Unpack[Asked]) -> MergeResult:
        """Apply to a branch what one commit changed against its first parent; conflicts as in a merge."""
        from omnigraph.merge.pick import cherry_pick

        self._check(asked, Need(CHANGE, self._named(onto)))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._options(asked, contract, schema)
            return cherry_pick(self._context, contract.catalog, commit, self._named(onto), options)

        return self._under_schema(attempt)

    def _check(self, asked: Asked, *needs: Need) -> None:
        """Refuse what can not be asked, before anything is looked at; `needs`: what a write has to be allowed."""
        if unknown := sorted(asked.keys() - Asked.__annotations__.keys()):
            raise TypeError(f"unexpected keyword argument '{unknown[0]}'")
        if not asked.get("dry_run"):
            self._allow_write(asked.get("actor"), *needs)
        refuse_unknown_engine(asked.get("engine", "auto"))

    def _options(self, asked: Asked, contract: Contract, schema: SchemaIs) -> Options:
        from omnigraph.merge.options import Options, read_strategy
        from omnigraph.merge.resolutions import read_resolutions

        return Options(
            strategy=read_strategy(asked.get("strategy")),
            resolutions=read_resolutions(asked.get("resolutions"), contract.catalog),
            property_level=asked.get("property_level", False),
            images=asked.get("images", False),
            dry_run=asked.get("dry_run", False),
            engine=asked.get("engine", "auto"),
            spark=self._spark,
            requires=schema,
            actor=asked.get("actor") or self.actor,
            idempotency_key=asked.get("idempotency_key"),
        )

    def _without_source(self, source: str, into: str, result: MergeResult) -> MergeResult:
        """Remove the source of a merge that is done. That it can not be removed does not undo the merge.

        Only what was merged may go: the source may have moved on, and a repeated request may find another branch of its name.
        """
        try:
            if source == self.branch and source != MAIN:
                raise Conflict(f"cannot delete branch '{source}': it is the currently active branch of this handle")
            delete_branch(self._context, source, self._merged_head(source, into, result))
        except OmnigraphError as error:
            _log.warning("branch '%s' was merged but not deleted: %s", source, error)
            return replace(
                result, stats={**result.stats, "branch_deleted": False, "branch_delete_error": error.message}
            )
        return replace(result, stats={**result.stats, "branch_deleted": True})

    def _merged_head(self, source: str, into: str, result: MergeResult) -> str | None:
        """The commit of the source that the target has now."""
        if result.commit is not None:
            return result.commit.merged_parent
        head = self._context.manifest.load(source).head
        if self._context.manifest.find_commit(into, head) is None:
            raise Conflict(f"cannot delete branch '{source}': it has moved on since it was merged")
        return head
