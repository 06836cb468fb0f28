"""Maintenance under an idempotency key: the report of the first call is kept with the graph and given to every repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import Once
from omnigraph.commit.model import MAIN
from omnigraph.commit.receipts import Told, answered_once, worked_once

Report = TypeVar("Report")


def reported_once(
    context: CommitContext,
    asked: Once | None,
    kind: type[Report],
    work: Callable[[str | None], Report],
    branch: str = MAIN,
) -> Report:
    """The report of an earlier call with the same key, else that of `work`, a dataclass of this kind.

    `work` is called with the id of the commit that it may make on `branch`, or with None where it chooses one.
    """
    if asked is None:
        return work(None)

    def run(commit_id: str) -> Told:
        told: Told = msgspec.to_builtins(work(commit_id))
        return told

    def was_made(commit_id: str) -> bool:
        return context.manifest.find_commit(branch, commit_id) is not None

    return msgspec.convert(answered_once(context, asked, lambda: worked_once(context, asked, run, was_made)), kind)
