"""How each kind of returned object looks in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from functools import singledispatch
from itertools import islice
from typing import Any

from omnigraph.changes.baseline import Baseline
from omnigraph.changes.commits import CommitChanges
from omnigraph.changes.comparison import Comparison
from omnigraph.changes.feed import FeedPage
from omnigraph.changes.model import Change, ChangeSet, SchemaStep
from omnigraph.commit.audit import Recovery
from omnigraph.commit.model import Commit
from omnigraph.evolution.apply import Applied
from omnigraph.evolution.plan import Plan
from omnigraph.graph.blobs import BlobValue
from omnigraph.graph.branching import BranchState
from omnigraph.graph.contract import Contract
from omnigraph.graph.exploring import Neighbours, Seen
from omnigraph.graph.handle import Handle
from omnigraph.graph.snapshot import Snapshot
from omnigraph.load.model import LoadResult
from omnigraph.maintenance.cleanup import CleanupReport
from omnigraph.maintenance.indexes import IndexReport
from omnigraph.maintenance.optimize import OptimizeReport
from omnigraph.maintenance.repair import RepairReport
from omnigraph.maintenance.stats import GraphStats
from omnigraph.maintenance.verify_report import VerifyReport
from omnigraph.merge.result import Conflict, MergeResult
from omnigraph.mutation.execute import MutationResult
from omnigraph.notebook.markup import (
    FIRST_ROWS,
    LAST_ROWS,
    MOST_ROWS,
    Html,
    card,
    counted,
    facts,
    folded,
    lines,
    size,
    table,
    text,
    unbroken,
)
from omnigraph.query.result import Explanation, Result
from omnigraph.shown import Listing

_MARKS = {"insert": "plus", "delete": "minus", "update": "turn"}


@singledispatch
def html(value: object) -> str:
    """An object as HTML; a kind that has no look of its own is shown by its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return card(type(value).__name__, facts(asdict(value)))
    return card("", lines(str(value)))


# --- rows -------------------------------------------------------------------------------------------------------------


@html.register
def _result(result: Result) -> str:
    count = len(result)
    if count <= MOST_ROWS:
        rows = _rows_of(result)
    else:
        gap: list[list[object]] = [["…"] * len(result.columns)]
        rows = [*_rows_of(result, 0, FIRST_ROWS), *gap, *_rows_of(result, count - LAST_ROWS, LAST_ROWS)]
    about = counted(count, "row") + (
        "" if count <= MOST_ROWS else f", the first {FIRST_ROWS} and the last {LAST_ROWS} shown"
    )
    return card(
        "", table(result.columns, rows), Html(f'<div class="dim">{text(about)} · commit {text(result.commit)}</div>')
    )


def _rows_of(result: Result, start: int = 0, count: int | None = None) -> list[list[object]]:
    part = Result(result.table.slice(start, count), result.types, result.commit)
    return [list(row.values()) for row in part.to_dicts(json=True)]


@html.register
def _neighbours(found: Neighbours) -> str:
    groups = [(group.edge, group.direction, group.type, group.total) for group in found.groups]
    return card(
        f"{found.node.type} {found.node.id}",
        facts(dict(found.node.properties)),
        table(("edge", "direction", "to", "edges"), groups),
        _entities(found.nodes),
    )


def _entities(entities: Sequence[Seen]) -> str:
    rows = [(seen.type, seen.id, dict(seen.properties)) for seen in entities[:MOST_ROWS]]
    return folded(counted(len(entities), "node"), table(("type", "id", "properties"), rows, total=len(entities)))


@html.register
def _blob(value: BlobValue) -> str:
    about = {"kind": value.kind, "size": None if value.length is None else size(value.length), "address": value.uri}
    return card("Blob", facts(about | {"snapshot": value.snapshot_id}))


# --- history ----------------------------------------------------------------------------------------------------------


def _when(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1e6, UTC):%Y-%m-%d %H:%M:%S}"


_COMMIT_COLUMNS = ("time (UTC)", "kind", "actor", "message", "branch", "commit")


def _commit_row(commit: Commit) -> tuple[object, ...]:
    return unbroken(_when(commit.created_at)), commit.kind, commit.actor, commit.message, commit.branch, commit.id


@html.register
def _commit(commit: Commit) -> str:
    pairs = dict(zip(_COMMIT_COLUMNS, _commit_row(commit), strict=True))
    return card("Commit", facts(pairs | {"parent": commit.parent, "merged parent": commit.merged_parent}))


@html.register
def _snapshot(view: Snapshot) -> str:
    rows = [(entry.key, entry.row_count, entry.version) for entry in view.entries()]
    about = facts({"branch": view.branch, "commit": view.commit, "id": view.id})
    return card("Snapshot", about, table(("type", "rows", "table version"), rows))


@html.register
def _branch(state: BranchState) -> str:
    return card("", _branch_table([state]))


def _branch_table(states: Iterable[BranchState]) -> Html:
    rows = [
        (one.name, one.ahead, one.behind, unbroken(_when(one.head.created_at)), one.head.kind, one.head.message)
        for one in states
    ]
    return table(("branch", "ahead", "behind", "last commit (UTC)", "kind", "message"), rows)


@html.register(Listing)
def _listing(items: Listing[Any]) -> str:
    first = items[0] if items else None
    shown = items[:MOST_ROWS]
    if isinstance(first, Commit):
        return card("", table(_COMMIT_COLUMNS, map(_commit_row, shown), total=len(items)))
    if isinstance(first, BranchState):
        return card("", _branch_table(shown))
    if isinstance(first, Recovery):
        rows = [
            (unbroken(_when(one.created_at)), one.recovery_kind, one.writer_kind, one.branch, one.operation_id)
            for one in shown
        ]
        return card("", table(("time (UTC)", "outcome", "writer", "branch", "operation"), rows, total=len(items)))
    return card("", lines("\n".join(map(str, shown)) or "nothing"))


# --- changes ----------------------------------------------------------------------------------------------------------


def _changed(change: Change) -> tuple[tuple[object, ...], str]:
    """A change as a row: for an update the properties that differ, with before and after."""
    before, after = dict(change.before or {}), dict(change.after or {})
    if change.op == "update":
        names = [name for name in before | after if before.get(name) != after.get(name)]
        before, after = ({name: image.get(name) for name in names} for image in (before, after))
    what = f"{change.id}" if change.endpoints is None else f"{change.endpoints.src} → {change.endpoints.dst}"
    return (change.op, change.type, what, _image(before), _image(after)), _MARKS[change.op]


def _image(properties: Mapping[str, object]) -> Html:
    return Html("<br>".join(f"{text(name)}: {text(value)}" for name, value in properties.items() if value is not None))


def _change_table(changes: Iterable[Change], total: int | None = None) -> Html:
    listed = list(islice(changes, MOST_ROWS + 1))
    more = "" if len(listed) <= MOST_ROWS else f'<div class="dim">the first {MOST_ROWS} are shown</div>'
    rows = [_changed(change) for change in listed[:MOST_ROWS]]
    found = table(
        ("", "type", "entity", "before", "after"), (row for row, _ in rows), classes=[mark for _, mark in rows]
    )
    return Html(f"{found}{more}") if rows else Html('<div class="dim">no changes</div>')


@html.register
def _change(change: Change) -> str:
    return card("", _change_table([change]))


@html.register
def _changes(changes: ChangeSet) -> str:
    stats = changes.stats
    tags = (f"{stats.inserts:,} inserted", f"{stats.updates:,} updated", f"{stats.deletes:,} deleted")
    title = f"Commit {changes.commit.id}" if isinstance(changes, CommitChanges) else "Changes"
    return card(title, _schema_table(changes.schema), _change_table(changes), tags=tags)


@html.register
def _comparison(found: Comparison) -> str:
    counts = [(count.type, count.inserts, count.updates, count.deletes) for count in found.counts or ()]
    overview = table(("type", "inserted", "updated", "deleted"), counts) if counts else ""
    return card(f"{found.before} … {found.after}", _schema_table(found.schema), overview, _change_table(found.changes))


def _schema_table(steps: Sequence[SchemaStep]) -> str:
    """What differs between two schemas; nothing where they are equal."""
    return (
        table(("schema", "what differs"), [(step.kind.replace("_", " "), str(step)) for step in steps]) if steps else ""
    )


@html.register
def _feed(page: FeedPage) -> str:
    blocks = [
        folded(f"{_when(block.commit.created_at)} {block.commit.kind} {block.commit.id}", _change_table(block.changes))
        for block in page.blocks[:MOST_ROWS]
    ]
    state = {"cursor": page.cursor, "caught up": page.caught_up, "next page": page.next_page_token}
    return card(counted(len(page.blocks), "block"), *blocks, facts(state))


@html.register
def _baseline(found: Baseline) -> str:  # type: ignore[type-arg]
    return card("Baseline", facts({"commit": found.commit, "entities": found.entities, "cursor": found.cursor}))


# --- writes -----------------------------------------------------------------------------------------------------------


@html.register
def _mutation(done: MutationResult) -> str:
    about = table(("type", "affected"), list(done.counts.items())) if done.counts else ""
    commit = "" if done.commit is None else facts({"commit": done.commit.id, "message": done.commit.message})
    tags = (counted(done.affected_nodes, "node"), counted(done.affected_edges, "edge"))
    return card("Mutation" if done.commit is not None else "Nothing was changed", about, commit, tags=tags)


@html.register
def _load(done: LoadResult) -> str:
    report = done.report
    rows = [(table_.kind, table_.type, table_.rows, table_.mode) for table_ in done.tables]
    seconds = ", ".join(f"{stage} {taken:.2f} s" for stage, taken in report.seconds.items())
    about = facts(
        {
            "commit": done.commit.id,
            "branch": f"{done.branch} (new)" if done.branch_created else done.branch,
            "input": size(report.bytes) if report.bytes else None,
            "lines skipped": report.skipped_lines or None,
            "seconds": seconds,
            "values cleared": ", ".join(f"{name}: {count:,}" for name, count in report.cleared.items()),
            "edges loaded again": ", ".join(report.edges_again),
        }
    )
    tags = (counted(done.nodes_loaded, "node"), counted(done.edges_loaded, "edge"), report.engine)
    return card("Load", table(("", "type", "rows", "mode"), rows), about, tags=tags)


@html.register
def _merge(done: MergeResult) -> str:
    counts = [
        (key.partition(":")[2], *(one.get(name, 0) for name in ("inserted", "updated", "deleted")))
        for key, one in done.stats.get("tables", {}).items()
    ]
    overview = table(("type", "inserted", "updated", "deleted"), counts) if counts else ""
    decided = [(one.type_key.partition(":")[2], one.entity_id, one.take, one.by, one.conflict) for one in done.decided]
    decisions = folded(
        counted(len(decided), "decision"),
        table(("type", "entity", "taken", "by", "conflict"), decided[:MOST_ROWS], total=len(decided)),
    )
    commit = facts({"commit": None if done.commit is None else done.commit.id})
    conflicts = "".join(_conflict_table(one) for one in done.conflicts[:MOST_ROWS])
    tags = [done.outcome.replace("_", " "), f"by {done.level}"]
    if done.conflicts:
        tags.append(counted(len(done.conflicts), "conflict"))
    return card("Merge", overview, decisions if decided else "", commit, conflicts, tags=tags)


@html.register
def _conflict(conflict: Conflict) -> str:
    return card("", _conflict_table(conflict))


def _conflict_table(conflict: Conflict) -> Html:
    """The three images side by side, property by property; different values are marked."""
    title = f"{conflict.kind}: {conflict.type_name} {conflict.entity_id or ''}"
    images = [dict(image or {}) for image in (conflict.base, conflict.ours, conflict.theirs)]
    names = list(dict.fromkeys(name for image in images for name in image))
    rows = [(name, *(image.get(name) for image in images)) for name in names]
    classes = ["" if row[1] == row[2] == row[3] else "turn" for row in rows]
    sides = table(("property", "base", "ours", "theirs"), rows, classes=classes) if rows else ""
    return Html(f'<div class="head">{text(title)}</div><div>{text(conflict.message)}</div>{sides}')


# --- schemas ----------------------------------------------------------------------------------------------------------


@html.register
def _contract(contract: Contract) -> str:
    from omnigraph.graph.pictures import picture_of_schema

    picture = picture_of_schema(contract.catalog).to_svg()
    return card("Schema", Html(picture), folded("source", lines(contract.source)))


@html.register
def _schema_plan(plan: Plan) -> str:
    return card("Schema plan", _steps(plan), tags=("can be applied" if plan.supported else "refused",))


def _steps(plan: Plan) -> Html:
    if not plan.steps:
        return Html('<div class="dim">nothing to change</div>')
    classes = ["minus" if step in plan.refusals else "" for step in plan.steps]
    return table(("step", ""), [(place + 1, str(step)) for place, step in enumerate(plan.steps)], classes=classes)


@html.register
def _applied(done: Applied) -> str:
    commit = facts({"commit": None if done.commit is None else done.commit.id})
    return card("Schema applied" if done.applied else "Schema unchanged", _steps(done.plan), commit)


# --- plans and upkeep -------------------------------------------------------------------------------------------------


@html.register
def _explanation(found: Explanation) -> str:
    title = "Analysis" if found.analyzed else "Plan"
    return card(
        title, _tree(found.steps), folded("as written", _tree(found.plan)), folded("rewritten", _tree(found.rewritten))
    )


def _tree(steps: str) -> Html:
    """Indented lines as a tree with rules; notes, which begin with a dot, are dimmed."""
    drawn = []
    for line in steps.splitlines():
        depth, label = (len(line) - len(line.lstrip())) // 2, line.strip()
        branch = "│ " * max(depth - 1, 0) + ("└ " if depth else "")
        kind = ' class="dim"' if label.startswith("·") else ""
        drawn.append(f"<span{kind}>{branch}{text(label)}</span>")
    return Html(f"<pre>{chr(10).join(drawn)}</pre>")


@html.register
def _stats(stats: GraphStats) -> str:
    columns = ("type", "rows", "deleted", "fragments", "to compact", "size", "indexes", "pending")
    rows = [
        (
            one.type_key,
            one.rows,
            one.deleted_rows,
            one.fragments,
            one.fragments_to_compact,
            unbroken(size(one.bytes)),
            ", ".join(f"{index.column} ({index.kind})" for index in one.indexes),
            ", ".join(index.property for index in one.pending_indexes),
        )
        for one in stats.tables
    ]
    return card(f"Branch {stats.branch}", table(columns, rows), facts({"commit": stats.commit, **stats.config}))


@html.register
def _indexes(report: IndexReport) -> str:
    rows = [(one.type_key, one.column, one.kind, "built") for one in report.built]
    rows += [(one.type_key, one.column, one.kind, one.reason or "pending") for one in report.pending]
    return card("Indexes", table(("type", "property", "kind", ""), rows), facts({"commit": report.commit}))


@html.register
def _optimized(report: OptimizeReport) -> str:
    rows = [
        (
            one.type_key,
            one.fragments_before,
            one.fragments_after,
            ", ".join((*one.built_indexes, *one.folded_indexes)),
            one.skipped,
        )
        for one in report.datasets
    ]
    columns = ("type", "fragments before", "after", "indexes", "skipped")
    return card("Optimize", table(columns, rows), facts({"commit": report.commit}), tags=_dry(report.dry_run))


@html.register
def _cleaned(report: CleanupReport) -> str:
    rows = [
        (one.type_key, one.old_versions_removed, unbroken(size(one.bytes_removed)), one.error)
        for one in report.datasets
    ]
    kept = [tuple(map(str, one.to_dict().values())) for one in report.kept]
    parts = [table(("type", "versions removed", "bytes", "error"), rows)] if rows else []
    if kept:
        parts.append(folded("kept although old", table(tuple(report.kept[0].to_dict()), kept)))
    return card("Cleanup", *parts, tags=(size(report.bytes_removed), *_dry(report.dry_run)))


@html.register
def _repaired(report: RepairReport) -> str:
    rows = [(one.type_key, one.branch, one.classification, one.action, one.error) for one in report.datasets]
    return card("Repair", table(("type", "branch", "found", "done", "error"), rows))


@html.register
def _verified(report: VerifyReport) -> str:
    damages = [(one.path, one.kind.value, one.message, one.remedy) for one in report.damages]
    looked = ", ".join(
        (
            counted(report.branches, "branch", "branches"),
            counted(report.commits, "commit"),
            counted(report.files, "file"),
            size(report.bytes),
        )
    )
    found = table(("path", "damage", "", "what to do"), damages, classes=["minus"] * len(damages)) if damages else ""
    return card(
        "Verify",
        found,
        facts({"looked at": looked, "notes": "; ".join(report.notes)}),
        tags=("no damage" if report.ok else "damaged",),
    )


def _dry(dry_run: bool) -> tuple[str, ...]:
    return ("nothing was changed",) if dry_run else ()


@html.register
def _graph(graph: Handle) -> str:
    closed = ("closed",) if graph.is_closed else ()
    return card("Graph", facts({"address": graph.uri, "branch": graph.branch, "mode": graph.mode}), tags=closed)
