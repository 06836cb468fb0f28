"""Examines a table whose head is not its pin: what happened to it, and whether its rows are still the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.changes.compare import match_columns
from omnigraph.changes.delta import Delta, Side, table_delta
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.errors import StorageError
from omnigraph.storage.tables.handles import transaction_of
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.unshared import all_rows

_MAINTENANCE = frozenset({"Rewrite", "CreateIndex", "ReserveFragments"})


class Classification(StrEnum):
    """The kind of a drift. Maintenance leaves every row unchanged."""

    NO_DRIFT = "no_drift"
    VERIFIED_MAINTENANCE = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"
    #: The head is the pin, but the table has an index on a dropped column: reads and writes by key fail.
    DEAD_INDEX = "dead_index"


@dataclass(frozen=True, slots=True)
class Drift:
    """One table: its pin in `entry`, its head (None if it can not be read), and what lies between.

    `operations`: Lance's names of the operations between pin and head, or the names of dead indexes.
    """

    entry: TableEntry
    head: int | None
    classification: Classification
    operations: tuple[str, ...] = ()
    problem: str | None = None


def look_for_drift(context: CommitContext, entry: TableEntry) -> Drift:
    """Compare the head of a table with its pin; reads only what may differ."""
    try:
        head = context.tables.head_version(entry.location)
        if head == entry.version:
            dead = tuple(context.tables.open(entry.location, entry.version).dead_indexes())
            found = Classification.DEAD_INDEX if dead else Classification.NO_DRIFT
            return Drift(entry, head, found, dead)
        if head is None or head < entry.version:
            problem = f"storage is at version {head}, before the published {entry.version}: files are missing"
            return Drift(entry, head, Classification.UNVERIFIABLE, problem=problem)
        pinned = context.tables.open(entry.location, entry.version)
        newest = context.tables.open(entry.location, head)
        operations = tuple(_operation(newest, version) for version in range(entry.version + 1, head + 1))
        same = _same_rows(context, entry, pinned, newest, operations)
    except StorageError as error:
        if error.kind not in ("permanent", "not_found"):
            raise
        return Drift(entry, None, Classification.UNVERIFIABLE, problem=error.message)
    found = Classification.VERIFIED_MAINTENANCE if same else Classification.SUSPICIOUS
    return Drift(entry, head, found, operations)


def _operation(newest: Table, version: int) -> str:
    """Lance's name of the operation that made a version."""
    with translated(str(newest.location), f"read the transaction of version {version} of"):
        try:
            transaction = transaction_of(newest.dataset, version)
        except TypeError:
            # Lance can not rebuild the transaction of a compaction that remapped an index.
            return "Rewrite"
    if transaction is None:
        return "Unknown"
    name = type(transaction.operation).__name__
    # Lance has no class for the first of the two versions that a compaction makes.
    return "ReserveFragments" if name == "BaseOperation" else name


def _same_rows(
    context: CommitContext, entry: TableEntry, pinned: Table, newest: Table, operations: tuple[str, ...]
) -> bool:
    """Whether two versions hold the same rows in the same columns."""
    if pinned.dataset.lance_schema != newest.dataset.lance_schema or pinned.count_rows() != newest.count_rows():
        return False
    if set(operations) <= _MAINTENANCE:
        delta = table_delta(context, Side(entry), Side(replace(entry, version=newest.version)))
    else:
        # The version stamps of an unknown program prove nothing, so every value is compared.
        delta = Delta(match_columns(pinned, newest), all_rows(pinned), all_rows(newest))
    return next(delta.batches(["id"]), None) is None
