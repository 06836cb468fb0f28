"""The verbs merge, rebase, revert and cherry-pick."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Unpack

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.config import MERGE_LEVEL, PROPERTY_LEVEL, read_config
from omnigraph.commit.messages import checked_message
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.commit.schema_files import SchemaFiles
from omnigraph.commit.updates import SchemaIs
from omnigraph.errors import Conflict, OmnigraphError
from omnigraph.graph.contract import Contract, accept
from omnigraph.graph.handle import Handle
from omnigraph.graph.schema_watch import SchemaWatch
from omnigraph.graph.sources import read_source
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.policy.actions import BRANCH_DELETE, BRANCH_MERGE, CHANGE, SCHEMA_APPLY, Need
from omnigraph.spark.options import refuse_unknown_engine

if TYPE_CHECKING:
    from omnigraph.merge.options import Options
    from omnigraph.merge.resolutions import Given
    from omnigraph.merge.result import MergeResult

_log = logging.getLogger(__name__)


class Accepted:
    """The schemas of the states of one merge; the target has the schema with which the merge was started."""

    def __init__(self, watch: SchemaWatch, contract: Contract, named: SchemaIs) -> None:
        self._watch = watch
        self._contract = contract
        self._named = named

    def _of(self, state: ManifestState) -> Contract:
        if state.schema_hash == self._named.schema_hash:
            return self._contract
        if state.branch == MAIN:
            # The source text of main's current schema is in its files.
            newest = self._watch.captured()[0]
            if newest.ir_hash == state.schema_hash:
                return newest
        return self._watch.of(state)

    def of(self, state: ManifestState) -> SchemaIR:
        """The schema that a state was written under."""
        return self._of(state).ir

    def source_of(self, state: ManifestState) -> str:
        """The source text of the schema of a state."""
        return self._of(state).source

    def files_of(self, state: ManifestState) -> SchemaFiles:
        """The schema files of a state."""
        return self._of(state).files()

    def accepted(self, source: str, ir: SchemaIR, before: ManifestState) -> SchemaFiles:
        """The files of a new schema that follows the schema of the state `before`."""
        known = self._of(before)
        version = known.schema_version + 1
        return accept(source, ir, schema_version=version, identity_domain=known.identity_domain).files()


def _text(given: str | Path | None) -> str | None:
    return None if given is None else read_source(given, ".pg")[0]


class Asked(TypedDict, total=False):
    """The common options of `merge`, `rebase`, `revert` and `cherry_pick`; `_DECISIONS` has defaults and meanings."""

    actor: str | None
    message: str | None
    dry_run: bool
    strategy: str | None
    resolutions: Given | None
    schema: str | Path | None
    property_level: bool | None
    idempotency_key: str | None
    images: bool
    engine: Literal["auto", "local", "spark"]


#: The default and the meaning of every key of `Asked`.
_DECISIONS: dict[str, tuple[object, str]] = {
    "actor": (None, "who writes; the actor of this handle unless given."),
    "message": (None, "kept with the commit; unless given, it says what is merged, taken back or applied."),
    "dry_run": (False, "everything but the writing: returns the outcome, the counts and the conflicts."),
    "strategy": (None, '"ours" (the target) or "theirs" decides conflicts, but never against a rule of the schema.'),
    "resolutions": (None, "a list of `{type_key, id, take: ours|theirs|base|value}`, or a JSON file of it."),
    "schema": (None, "the schema of the result, `.pg` text or a path; it decides what the schemas disagree about."),
    "property_level": (
        None,
        "whether changes to different properties of one entity are combined; None: as the setting `merge.level` says.",
    ),
    "idempotency_key": (None, "a repeat of the call with the same key returns the first answer and writes nothing."),
    "images": (True, "whether conflicts carry the entity as base, ours and theirs have it."),
    "engine": (
        "auto",
        'where large differences are judged and written; "auto" takes Spark from five million rows, or from one million '
        "where a session runs.",
    ),
}
_Verb = TypeVar("_Verb", bound=Callable[..., object])


def takes_decisions(verb: _Verb) -> _Verb:
    """Show the keys of `Asked` in place of `**asked`: as parameters in the signature of a verb, explained in its docstring."""
    shown = inspect.signature(verb)
    own = [parameter for parameter in shown.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    listed = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind.__forward_arg__)
        for (name, kind), (default, _) in zip(Asked.__annotations__.items(), _DECISIONS.values(), strict=True)
    ]
    verb.__signature__ = shown.replace(parameters=[*own, *listed])  # type: ignore[attr-defined]
    meanings = "\n".join(f"`{name}`: {meaning}" for name, (_, meaning) in _DECISIONS.items())
    verb.__doc__ = f"{inspect.cleandoc(verb.__doc__ or '')}\n\n{meanings}"
    return verb


class Merging(Handle):
    """The verbs that bring changes from one line of history to another. Each takes the decisions of `Asked`."""

    @takes_decisions
    def merge(
        self, source: str, into: str | None = None, *, delete_branch: bool = False, **asked: Unpack[Asked]
    ) -> MergeResult:
        """Merge a branch into another one (this handle's branch unless given): one commit with two parents.

        Conflicts are raised together as `MergeConflicts`, and nothing is written; a dry run returns them.
        `delete_branch` removes the source afterwards; if that is refused, `stats` says why.
        """
        from omnigraph.merge.execute import merge, refuse_itself

        refuse_itself(source, self._named(into))
        needs = [Need(BRANCH_MERGE, source, self._named(into))]
        self._check(asked, *needs, *([Need(BRANCH_DELETE, None, source)] if delete_branch else []))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._merging(asked, schema, self._named(into))
            return merge(self._context, Accepted(self._watch, contract, schema), source, self._named(into), options)

        result = self._under_schema(self._named(into), attempt)
        if not delete_branch or asked.get("dry_run"):
            return result
        return self._without_source(source, self._named(into), result)

    @takes_decisions
    def rebase(self, branch: str, onto: str = MAIN, **asked: Unpack[Asked]) -> MergeResult:
        """Bring a branch up to the newest state of another one, schema and data, with the branch's own change on top.

        One commit on the branch, with the head of `onto` as its second parent; a later merge of the branch brings its own change
        only. Conflicts are those of a merge; "ours" is the branch, which is the one that is written.
        """
        from omnigraph.merge.execute import rebase, refuse_itself

        refuse_itself(branch, onto, "rebase needs a branch and another one to bring it up to")
        self._check(asked, Need(BRANCH_MERGE, onto, branch))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._merging(asked, schema, branch)
            return rebase(self._context, Accepted(self._watch, contract, schema), branch, onto, options)

        return self._under_schema(branch, attempt)

    @takes_decisions
    def revert(self, commit: str, branch: str | None = None, **asked: Unpack[Asked]) -> MergeResult:
        """Publish the inverse of a commit on a branch; conflicts as in a merge, where later commits built on it."""
        from omnigraph.merge.pick import revert

        self._check(asked, Need(CHANGE, self._named(branch)))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._picking(asked, schema, self._named(branch))
            return revert(self._context, Accepted(self._watch, contract, schema), commit, self._named(branch), options)

        return self._under_schema(self._named(branch), attempt)

    @takes_decisions
    def cherry_pick(self, commit: str, onto: str | None = None, **asked: Unpack[Asked]) -> MergeResult:
        """Apply to a branch what one commit changed against its first parent; conflicts as in a merge."""
        from omnigraph.merge.pick import cherry_pick

        self._check(asked, Need(CHANGE, self._named(onto)))

        def attempt(contract: Contract, schema: SchemaIs) -> MergeResult:
            options = self._picking(asked, schema, self._named(onto))
            return cherry_pick(
                self._context, Accepted(self._watch, contract, schema), commit, self._named(onto), options
            )

        return self._under_schema(self._named(onto), attempt)

    def _check(self, asked: Asked, *needs: Need) -> None:
        """Check the options before anything is read; `needs`: the permissions that the write requires."""
        if unknown := sorted(asked.keys() - Asked.__annotations__.keys()):
            raise TypeError(f"unexpected keyword argument '{unknown[0]}'")
        if not asked.get("dry_run"):
            self._allow_write(asked.get("actor"), *needs)
        refuse_unknown_engine(asked.get("engine", "auto"))

    def _merging(self, asked: Asked, schema: SchemaIs, target: str) -> Options:
        """The options of a merge, which merges schemas like rows; a given schema text is a change that needs permission."""
        options = self._options(asked, schema)
        return options if options.schema is None else self._picking(asked, schema, target)

    def _picking(self, asked: Asked, schema: SchemaIs, target: str) -> Options:
        """The options of a verb that needs the additional permission SCHEMA_APPLY if it would change the schema too."""
        need = Need(SCHEMA_APPLY, None, target)
        return replace(self._options(asked, schema), allow_schema=lambda: self._ask_policy(asked.get("actor"), need))

    def _options(self, asked: Asked, schema: SchemaIs) -> Options:
        from omnigraph.merge.options import Options, read_strategy
        from omnigraph.merge.resolutions import read_resolutions

        by_property = asked.get("property_level")
        return Options(
            strategy=read_strategy(asked.get("strategy")),
            resolutions=read_resolutions(asked.get("resolutions")),
            schema=_text(asked.get("schema")),
            property_level=self._habit() if by_property is None else by_property,
            is_habit=by_property is None,
            images=asked.get("images", True),
            dry_run=asked.get("dry_run", False),
            engine=asked.get("engine", "auto"),
            spark=self._spark,
            requires=schema,
            actor=asked.get("actor") or self.actor,
            message=checked_message(asked.get("message")),
            idempotency_key=asked.get("idempotency_key"),
        )

    def _habit(self) -> bool:
        """Whether the setting `merge.level` combines changes to different properties of one entity."""
        return read_config(self._context.store)[MERGE_LEVEL] == PROPERTY_LEVEL

    def _without_source(self, source: str, into: str, result: MergeResult) -> MergeResult:
        """Delete the source branch of a finished merge; a failure does not undo the merge and is reported in `stats`.
        Only the merged state may be deleted: the source may have moved on, or a repeated request may find a new branch of its
        name.
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
        """The commit of the source that was merged into the target."""
        if result.commit is not None:
            return result.commit.merged_parent
        head = self._context.manifest.load(source).head
        if self._context.manifest.find_commit(into, head) is None:
            raise Conflict(f"cannot delete branch '{source}': it has moved on since it was merged")
        return head
