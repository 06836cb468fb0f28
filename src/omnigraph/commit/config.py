"""The settings of a graph, which apply where a caller gives no value. They are stored with the graph, in `__config.json`.

The file is replaced as a whole by compare-and-swap, so two writers never lose each other's settings, and a process that dies
leaves the old file or the new file. It is not part of any commit. Settings unknown to this release stay in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import Once
from omnigraph.commit.model import MAIN
from omnigraph.commit.receipts import (
    Told,
    answered_once,
    end_step,
    find_receipt,
    keep_receipt,
    note_step,
    settle_begun,
)
from omnigraph.errors import BadRequest, FormatTooNew, ManifestContention, StorageError
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.storage.digests import digest_of, fold_log, note
from omnigraph.storage.objects import ObjectStore

CONFIG = "__config.json"
FORMAT = 1
#: The subject of the step that sets a setting, see `receipts`. No branch can have this name.
_SUBJECT = "~config"

MERGE_LEVEL = "merge.level"
ENTITY_LEVEL, PROPERTY_LEVEL = "entity", "property"

#: How often the file is read again because another process has replaced it.
_ATTEMPTS = 10

failpoints.declare("config.before_put", "config.after_put")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its possible values (the first is the default), and a description."""

    values: tuple[str, ...]
    about: str

    @property
    def default(self) -> str:
        return self.values[0]


SETTINGS: Mapping[str, Setting] = {
    MERGE_LEVEL: Setting(
        (ENTITY_LEVEL, PROPERTY_LEVEL),
        "what merge, rebase, revert and cherry-pick compare: whole entities, or each property of them",
    )
}


def read_config(store: ObjectStore) -> dict[str, str]:
    """The value of every setting by its name: the stored value, else the default."""
    data = store.get_or_none(CONFIG)
    return _values({} if data is None else _decoded(data))


def _values(stored: Mapping[str, Any]) -> dict[str, str]:
    return {name: _value(name, stored.get(name)) for name in sorted(SETTINGS)}


def _settle(context: CommitContext) -> None:
    """Settle the change that a dead call had begun; the file tells whether it was stored."""

    def was_stored(plan: Told) -> bool:
        data = context.store.get_or_none(CONFIG)
        return data is not None and _digest(data) == plan["digest"]

    settle_begun(context, _SUBJECT, was_stored)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def set_config(
    context: CommitContext, name: str, value: str | None, actor: str | None = None, asked: Once | None = None
) -> dict[str, str]:
    """Store a setting, or with None remove it; returns all settings like `read_config`. `actor` is stored with the value.

    `asked`: a repeated call returns the first answer and changes nothing.
    """
    check_setting(name, value)
    return dict(answered_once(context, asked, lambda: _set_config(context, name, value, actor, asked)))


def _set_config(
    context: CommitContext, name: str, value: str | None, actor: str | None, asked: Once | None
) -> dict[str, str]:
    # This lock keeps backups, and rewrites of the digest log, from running between the steps.
    with context.locks.hold(MAIN):
        _settle(context)
        known = None if asked is None else find_receipt(context.store, asked)
        if known is not None:
            return dict(known)
        for _ in range(_ATTEMPTS):
            found = context.store.get_tagged_or_none(CONFIG)
            stored = {} if found is None else _decoded(found[0])
            wanted = {key: entry for key, entry in stored.items() if key != name}
            if value is not None:
                wanted[name] = {"value": value} | ({} if actor is None else {"actor": actor})
            after = _values(wanted)
            if wanted == stored:
                if asked is not None:
                    keep_receipt(context, asked, after)
                return after
            data = orjson.dumps({"format": FORMAT, "settings": wanted}, option=orjson.OPT_SORT_KEYS)
            if asked is not None:
                note_step(context, _SUBJECT, asked, after, {"digest": _digest(data)})
            if _replaced(context, data, found):
                if asked is not None:
                    end_step(context, _SUBJECT, asked, after)
                return after
    raise ManifestContention(f"other processes replace {CONFIG} all the time; '{name}' was not changed, try again")


def check_setting(name: object, value: object) -> None:
    """Raise if no setting has this name or value; None is valid for every setting."""
    setting = SETTINGS.get(name) if isinstance(name, str) else None
    if setting is None:
        instead = did_you_mean(nearest_name(str(name), SETTINGS))
        raise BadRequest(f"there is no setting '{name}'{instead or f'; the settings are {_listed(SETTINGS)}'}")
    if value is not None and value not in setting.values:
        instead = did_you_mean(nearest_name(str(value), setting.values))
        raise BadRequest(f"{name} is {' or '.join(setting.values)}, not '{value}'{instead}")


def _listed(names: Mapping[str, Setting]) -> str:
    return ", ".join(sorted(names))


def _replaced(context: CommitContext, data: bytes, before: tuple[bytes, str] | None) -> bool:
    """Replace the file that was read (`before`: data and tag, None: no file). False when another process has replaced it."""
    store = context.store
    _record(context, () if before is None else (before[0], data))
    failpoints.hit("config.before_put")
    try:
        if before is None:
            store.create(CONFIG, data)
        else:
            store.swap(CONFIG, data, before[1])
    except StorageError as error:
        # The store may have done the work before it failed, so read the file.
        if error.kind not in ("precondition", "unknown"):
            raise
        if store.get_or_none(CONFIG) != data:
            if error.kind == "unknown":
                raise
            return False
    failpoints.hit("config.after_put")
    if before is None:
        _record(context, (data,))
    context.make_durable(CONFIG)
    return True


def _record(context: CommitContext, contents: Iterable[bytes]) -> None:
    """Record the digests that the file may have, so that it never looks damaged: while it is replaced, old and new content.

    A new file is recorded once it exists. A log on S3 can not be appended to; there the file is not recorded.
    """
    if context.root.is_local:
        for data in contents:
            note(context.root, {CONFIG: digest_of(data)})
    else:
        fold_log(context.store, without={CONFIG})


def _decoded(data: bytes) -> dict[str, Any]:
    """The stored settings by name: each an object with `value`, and `actor` if one was given."""
    try:
        told = orjson.loads(data)
        version, stored = told["format"], told["settings"]
        if isinstance(version, int) and version > FORMAT:
            raise FormatTooNew(
                f"{CONFIG} has format {version}, and this OmniGraph reads up to {FORMAT}; upgrade OmniGraph",
                found=version,
                supported=FORMAT,
            )
        if isinstance(stored, dict) and all(isinstance(entry["value"], str) for entry in stored.values()):
            return stored
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise _unreadable("does not hold settings")


def _value(name: str, entry: Mapping[str, Any] | None) -> str:
    setting = SETTINGS[name]
    if entry is None:
        return setting.default
    value: str = entry["value"]
    if value not in setting.values:
        raise _unreadable(f"says that {name} is '{value}', which this OmniGraph does not know")
    return value


def _unreadable(what: str) -> StorageError:
    remedy = "restore it from a backup, or remove it and set again what it held (`omnigraph config set`)"
    return StorageError(f"{CONFIG} {what}; {remedy}", kind="permanent", path=CONFIG)
