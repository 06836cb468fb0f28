"""`Graph.backup` and `omnigraph.restore`: a copy of a graph at another place, as it was at one moment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.errors import BadRequest, CommitNotFound
from omnigraph.graph.contract import accept, read_archived, read_contract
from omnigraph.graph.handle import Handle
from omnigraph.graph.lifecycle import connect
from omnigraph.policy.actions import ADMIN, Need
from omnigraph.shown import with_bar
from omnigraph.storage.root import Root

if TYPE_CHECKING:
    from omnigraph.maintenance.backup import BackupReport
    from omnigraph.maintenance.restore import RestoreReport
    from omnigraph.maintenance.workplace import UpkeepProgress
    from omnigraph.spark.options import SparkArgument


class Backups(Handle):
    """A graph at another place."""

    @with_bar("backup")
    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        actor: str | None = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        progress: UpkeepProgress | None = None,
        dry_run: bool = False,
    ) -> BackupReport:
        """Bring the backup of this graph at `target`, a folder or an `s3://` prefix, up to date, or make it there.

        It is one point of the graph, with all branches, history and tags, also while others write; files that it has already are
        not copied. It can be opened and read like a graph. `storage_options`: of the target, those of this graph unless given.
        `engine`: where files are copied; "auto" takes Spark for very many bytes. `progress`: called with the stage, how many
        bytes of it are done, and how many there are. `dry_run`: only say what would be copied.
        """
        from omnigraph.maintenance.backup import backup
        from omnigraph.maintenance.workplace import Workplace

        self._allow_write(actor, Need(ADMIN))
        own = self._context.root.storage_options
        place = _root(target, storage_options if storage_options is not None else own)
        workplace = Workplace(self._context.root, engine, self._spark, progress)
        return backup(self._context, self._watch.identities(), place, workplace, dry_run=dry_run)


@with_bar("restore")
def restore(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    at: str | datetime | int | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Literal["auto", "local", "spark"] = "auto",
    progress: UpkeepProgress | None = None,
    dry_run: bool = False,
    spark: SparkArgument | None = None,
) -> RestoreReport:
    """Make a graph at `target`, an empty place, of the backup at `source`.

    `at`: an earlier moment: a commit id, a tag, or a time (ISO text, datetime, µs since the epoch). Every branch is then as it
    was at that moment; branches that were made later are left out. `storage_options`: of whichever of the two is on S3.
    The other options are those of `Graph.backup`.
    """
    from omnigraph.maintenance.restore import backup_record, moment_of, restore
    from omnigraph.maintenance.workplace import Workplace
    from omnigraph.spark.options import spark_options

    place = _root(source, storage_options)
    context = connect(place.uri, storage_options=place.storage_options or None)
    backup_record(context)
    moment = moment_of(context, _moment(context, at))
    schema = _schema_files(context, moment.states[MAIN])
    workplace = Workplace(context.root, engine, spark_options(spark), progress)
    return restore(context, _root(target, storage_options), moment, schema, workplace, dry_run=dry_run)


def _root(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> Root:
    text = os.fspath(uri)
    return Root.parse(text, storage_options if text.startswith("s3://") else None)


def _moment(context: CommitContext, at: str | datetime | int | None) -> Commit | int | None:
    """The moment that `at` names: the commit of an id or a tag, else a time in µs since 1970; None without `at`."""
    from omnigraph.graph.history import micros

    if not isinstance(at, str):
        return micros(at)
    named = context.manifest.load().tags.get(at, at)
    try:
        return context.manifest.commit_near(named)
    except CommitNotFound:
        pass
    try:
        return micros(datetime.fromisoformat(at))
    except ValueError:
        raise BadRequest(
            f"'{at}' is neither a commit or tag of the backup nor a time such as 2026-11-16T13:10:00Z"
        ) from None


def _schema_files(context: CommitContext, state: ManifestState) -> Mapping[str, bytes]:
    """The three files of main's schema at a state: the backup's own files, or files made from the archived schema."""
    now = read_contract(context.store)
    if state.schema_hash in (None, now.ir_hash):
        return {name: context.store.get(name) for name in now.files()}
    assert state.schema_hash is not None
    then = read_archived(context.store, state.schema_hash, now.identity_domain)
    changes = [
        commit for commit in context.manifest.commits().values() if commit.kind == "schema" and commit.branch == MAIN
    ]
    count = sum(commit.manifest_version <= state.version for commit in changes)
    return accept(then.source, then.ir, schema_version=1 + count, identity_domain=now.identity_domain).files()
