"""`omnigraph recovery …`: what recovery did, what is waiting for it, and the way out of a record it can not settle."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import Stored, open_graph, resolve_storage
from omnigraph.cli.commands import Group
from omnigraph.cli.options import confirm_option, json_option, positional_uri, uri_option
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.wording import iso
from omnigraph.errors import RecoveryRequired, SchemaContractError

if TYPE_CHECKING:
    from omnigraph.commit.context import CommitContext
    from omnigraph.storage.objects import ObjectStore


@click.group(cls=Group)
def recovery() -> None:
    """Look at recoveries and at what is waiting for one."""


@recovery.command("list", scope=DIRECT)
@positional_uri
@json_option
@click.pass_context
def list_(context: click.Context, uri: str | None, as_json: bool) -> None:
    """List the pending recovery records and the completed recoveries; nothing is settled by looking."""
    from omnigraph.commit.audit import recoveries

    target = resolve_storage(context, uri)
    connected = _connected(target)
    done = [found.to_dict() for found in recoveries(connected)]
    waiting = _pending(connected.store)
    if as_json:
        output.json({"pending": waiting, "recoveries": done})
        return
    for record in waiting:
        output.line(f"{record['operation_id']} pending {record.get('problem') or _about(record)}")
    for found in done:
        actor = "" if found["recovery_for_actor"] is None else f" actor={found['recovery_for_actor']}"
        commit = "" if found["graph_commit_id"] is None else f" graph_commit_id={found['graph_commit_id']}"
        output.line(
            f"{found['operation_id']} {found['recovery_kind']} {found['writer_kind']} graph_branch={found['branch']}"
            f"{commit}{actor} at={iso(found['created_at'])}"
        )
    if not waiting and not done:
        output.line("(no recoveries)")


@recovery.command(scope=DIRECT)
@uri_option
@click.argument("operation_id", metavar="ID")
@confirm_option
@json_option
@click.pass_context
def discard(context: click.Context, uri: str | None, operation_id: str, confirm: bool, as_json: bool) -> None:
    """Set the recovery record ID aside that can not be settled; it is kept under __recovery/discarded."""
    from omnigraph.commit.sidecar import discard_sidecar

    target = resolve_storage(context, uri, named_by="--uri")
    store = _connected(target).store
    known = {record["operation_id"] for record in _pending(store)}
    if operation_id in known and not confirm:
        output.note(f"would set aside the recovery record of operation {operation_id}; pass --confirm to do it")
        return
    aside = discard_sidecar(store, operation_id)
    if as_json:
        output.json({"uri": target.uri, "operation_id": operation_id, "moved_to": aside})
    else:
        output.line(f"discarded {operation_id} to {aside}")


def _connected(target: Stored) -> CommitContext:
    """The stores of a graph, unsettled: opening it for writing would try the very record that can not be settled."""
    from omnigraph.graph.lifecycle import connect

    # A record that keeps readers out is the one that somebody wants to look at.
    with contextlib.suppress(RecoveryRequired, SchemaContractError):
        open_graph(target, "ro")
    return connect(target.uri, storage_options=target.storage_options)


def _pending(store: ObjectStore) -> list[dict[str, Any]]:
    """The waiting records as data; one that can not be read is there with its problem."""
    from omnigraph.commit.sidecar import UnreadableSidecar, list_sidecars, read_sidecar

    found: list[dict[str, Any]] = []
    for operation_id in list_sidecars(store):
        try:
            record = read_sidecar(store, operation_id)
        except UnreadableSidecar as error:
            found.append({"operation_id": operation_id, "problem": error.message})
            continue
        if record is not None:
            tables = [table.table_key for table in record.tables]
            about = {"writer_kind": record.kind, "branch": record.branch, "actor_id": record.actor_id}
            found.append({"operation_id": operation_id, **about, "created_at": record.created_at, "tables": tables})
    return found


def _about(record: dict[str, Any]) -> str:
    actor = "" if record["actor_id"] is None else f" actor={record['actor_id']}"
    tables = ",".join(record["tables"])
    return (
        f"{record['writer_kind']} graph_branch={record['branch']} tables={tables}{actor} at={iso(record['created_at'])}"
    )
