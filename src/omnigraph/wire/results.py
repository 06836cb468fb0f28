"""Conversion of the plain data of results (`to_dict`), received over HTTP, to the library's objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from omnigraph.changes.commits import CommitChanges
from omnigraph.changes.feed import Block, FeedPage
from omnigraph.changes.model import Change, Endpoints
from omnigraph.commit.model import Changed, Commit, Group
from omnigraph.evolution.apply import Applied
from omnigraph.evolution.plan import plan_of
from omnigraph.load.model import LoadReport, LoadResult, TableLoad
from omnigraph.load.parsed import Ignored
from omnigraph.merge.result import Decision, MergeResult
from omnigraph.mutation.execute import MutationResult
from omnigraph.wire.failures import conflict_of

Told = Mapping[str, Any]
Report = TypeVar("Report")


def told_report(report: object) -> Any:
    """A maintenance report, a dataclass of plain values, as JSON data."""
    return msgspec.to_builtins(report)


def report_of(kind: type[Report], told: Told) -> Report:
    """The maintenance report of the data made by `told_report`."""
    return msgspec.convert(told, kind)


def commit_of(told: Told) -> Commit:
    """A commit."""
    group, changed = told.get("group"), told.get("changed")
    return Commit(
        **{
            **told,
            "group": None if group is None else Group(**group),
            "changed": None if changed is None else Changed(**changed),
        }
    )


def mutation_of(told: Told) -> MutationResult:
    """What a mutation did."""
    return MutationResult(**{**told, "commit": _optional_commit(told["commit"]), "ids": tuple(told["ids"])})


def load_of(told: Told) -> LoadResult:
    """What a load did."""
    report = told["report"]
    return LoadResult(
        **{
            **told,
            "tables": tuple(TableLoad(**table) for table in told["tables"]),
            "commit": commit_of(told["commit"]),
            "report": LoadReport(
                **{**report, "ignored": Ignored(**report["ignored"]), "edges_again": tuple(report["edges_again"])}
            ),
        }
    )


def merge_of(told: Told) -> MergeResult:
    """What a merge, revert or cherry-pick did."""
    return MergeResult(
        outcome=told["outcome"],
        commit=_optional_commit(told["commit"]),
        conflicts=tuple(map(conflict_of, told["conflicts"])),
        stats=told["stats"],
        decided=tuple(Decision(**decision) for decision in told["decided"]),
        level=told["level"],
    )


def commit_changes_of(told: Told, commit: Told) -> CommitChanges:
    """The changes of one commit, or a page of them."""
    changes = [change_of(change) for change in told["changes"]]
    return CommitChanges(changes, commit_of(commit), told.get("next_page_token"))


def feed_page_of(told: Told, commits: Mapping[str, Told]) -> FeedPage:
    """A page of the change feed; `commits`: the commits of its blocks by id."""
    blocks = [
        Block(commit_of(commits[block["cause"]["graph_commit_id"]]), [change_of(change) for change in block["changes"]])
        for block in told["blocks"]
    ]
    return FeedPage(blocks, told.get("cursor"), told.get("caught_up"), told.get("next_page_token"))


def change_of(told: Told) -> Change:
    """One changed entity."""
    before, after = told.get("before"), told.get("after")
    return Change(
        op=told["op"],
        kind=told["kind"],
        type=told["type"]["name"],
        id=told["id"],
        before=None if before is None else before["properties"],
        after=None if after is None else after["properties"],
        endpoints=_endpoints(after if after is not None else before),
        type_id=told["type"]["id"],
        endpoints_before=_endpoints(before),
    )


def _endpoints(image: Told | None) -> Endpoints | None:
    ends = None if image is None else image.get("endpoints")
    return None if ends is None else Endpoints(ends["from"], ends["to"])


def _optional_commit(told: Told | None) -> Commit | None:
    return None if told is None else commit_of(told)


# --- schema changes ---------------------------------------------------------------------------------------------------


def applied_of(told: Told, commit: Told | None) -> Applied:
    """What applying a schema did."""
    return Applied(plan_of(told), _optional_commit(commit), told["graph_manifest_version"])
