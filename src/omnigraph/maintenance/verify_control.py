"""Checks the small files beside the tables: sidecars, notes about reclaimed versions, hints, the digest log itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import orjson

from omnigraph.commit.config import CONFIG, read_config
from omnigraph.commit.context import CommitContext
from omnigraph.commit.sidecar import FOLDER as RECOVERY
from omnigraph.commit.sidecar import Sidecar, parse_sidecar
from omnigraph.maintenance.verify_report import Damage, DamageKind, attempted
from omnigraph.maintenance.verify_states import RESTORE, Inventory
from omnigraph.storage.digests import LOG
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import reclaimed_up_to, version_of

_RECLAIMED = "/_reclaimed.json"
_HINT = "/_versions/latest_version_hint.json"


@dataclass
class Looked:
    """Damages of control files, and notes: operations that wait for recovery."""

    damages: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_control_files(context: CommitContext, there: Inventory) -> Looked:
    """Check every control file that has no recorded digest."""
    looked = Looked()
    lines = there.recorded.damaged_lines
    if lines:
        message = f"{lines} lines of {LOG} are damaged; the files they were about can not be compared"
        remedy = "`omnigraph verify --deep --record` reads those files whole and writes the log anew"
        looked.damages.append(Damage(LOG, DamageKind.DIGEST_LOG, message, remedy))
    for path in there.files:
        if path.startswith(f"{RECOVERY}/") and path.count("/") == 1:
            _check_sidecar(context, looked, path)
        elif path.endswith(_RECLAIMED):
            _check_reclaimed(context, there, looked, path)
        elif path == CONFIG:
            _check_config(context, looked)
        elif path.endswith(_HINT):
            _check_number(context, looked, path, "version", "remove it: the newest version is found without it")
    return looked


def _check_sidecar(context: CommitContext, looked: Looked, path: str) -> None:
    sidecar = attempted(partial(_sidecar, context.store, path))
    if isinstance(sidecar, str):
        looked.damages.append(Damage(path, DamageKind.UNREADABLE, sidecar, RESTORE))
    else:
        note = f"operation {sidecar.operation_id} on branch '{sidecar.branch}' waits for recovery"
        looked.notes.append(f"{note}; the next write settles it")


def _sidecar(store: ObjectStore, path: str) -> Sidecar:
    return parse_sidecar(store.get(path), path)


def _check_config(context: CommitContext, looked: Looked) -> None:
    found = attempted(lambda: read_config(context.store))
    if isinstance(found, str):
        looked.damages.append(Damage(CONFIG, DamageKind.UNREADABLE, found, RESTORE))


def _check_reclaimed(context: CommitContext, there: Inventory, looked: Looked, path: str) -> None:
    """Check that versions are missing only up to the version that cleanup has noted."""
    if not _check_number(context, looked, path, "up_to", RESTORE):
        return
    line = path.removesuffix(_RECLAIMED)
    numbers = [version_of(listed) for listed in there.files if listed.startswith(f"{line}/_versions/")]
    versions = sorted(number for number in numbers if number is not None)
    gaps = [before + 1 for before, after in pairwise(versions) if after > before + 1]
    table, _, fork = line.partition("/tree/")
    location = Location(table, fork or None)
    if gaps and max(gaps) > reclaimed_up_to(context.root, location):
        message = f"{path} does not say that versions up to {max(gaps)} are gone"
        looked.damages.append(Damage(path, DamageKind.DISAGREES, message, RESTORE))


def _check_number(context: CommitContext, looked: Looked, path: str, name: str, remedy: str) -> bool:
    """Check that a small file holds a positive number; returns whether it does."""
    value = attempted(lambda: orjson.loads(context.store.get(path))[name])
    if isinstance(value, int) and value > 0:
        return True
    looked.damages.append(Damage(path, DamageKind.UNREADABLE, f"{path} does not hold a number", remedy))
    return False
