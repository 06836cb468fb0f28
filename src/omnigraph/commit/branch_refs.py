"""Graph branches: each is a Lance branch of `__manifest`, whose ref file is the authority for its existence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

import orjson

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.location import branch_path

MANIFEST_PATH = "__manifest"
_REFS = f"{MANIFEST_PATH}/_refs/branches"

#: An internal ref of schema changes; never a user's branch.
SCHEMA_APPLY_LOCK = "__schema_apply_lock__"
RESERVED = frozenset({MAIN, SCHEMA_APPLY_LOCK})

#: The most bytes of a ref's file name as Lance writes it on a disk, where percent signs are escaped again.
LONGEST_NAME = 200
#: How many refs are cached: every read of a branch reads its ref, which rarely changes.
_REMEMBERED = 1024
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")


@dataclass(frozen=True, slots=True)
class BranchRef:
    """What Lance records about a branch. `incarnation` differs each time the name is created again."""

    name: str
    parent: str
    parent_version: int
    incarnation: str
    created_at: int


def read_ref(store: ObjectStore, name: str) -> BranchRef | None:
    """The ref of a branch, or None when there is no such branch."""
    if not is_name(name):
        return None
    data = store.get_or_none(_ref_path(name))
    return None if data is None else _decode(name, data)


def list_refs(store: ObjectStore) -> list[BranchRef]:
    """The refs of all branches but main, by name. A ref that vanishes while it is listed is left out."""
    names = list_names(store)
    found = zip(names, store.get_many([_ref_path(name) for name in names]), strict=True)
    return [_decode(name, data) for name, data in found if data is not None]


def has_more_branches_than(store: ObjectStore, count: int) -> bool:
    """Whether there are more than `count` branches besides main; the cost does not grow with the number of branches."""
    return store.has_more_than(count, _REFS)


def list_names(store: ObjectStore) -> list[str]:
    """The names of all branches except main, sorted. Costs one listing; no ref is read."""
    names = (unquote(info.path.removeprefix(f"{_REFS}/").removesuffix(".json")) for info in store.list(_REFS))
    return sorted(name for name in names if name != SCHEMA_APPLY_LOCK and is_name(name))


@lru_cache(maxsize=_REMEMBERED)
def _ref_path(name: str) -> str:
    # Lance writes one file per branch and escapes the slash.
    return f"{_REFS}/{quote(name, safe='')}.json"


@lru_cache(maxsize=_REMEMBERED)
def _decode(name: str, data: bytes) -> BranchRef:
    try:
        value = orjson.loads(data)
        return BranchRef(
            name=name,
            parent=value["parentBranch"] or MAIN,
            parent_version=value["parentVersion"],
            incarnation=value["identifier"]["version_mapping"][-1][1],
            created_at=value["createAt"],
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise StorageError(
            f"the ref of branch '{name}' is unreadable ({type(error).__name__}); restore {_ref_path(name)} from a backup, or "
            "remove it to give the branch up",
            kind="permanent",
            path=_ref_path(name),
        ) from None


def is_name(name: str) -> bool:
    """Whether a text can be the name of a branch, in Lance and in a file system."""
    return isinstance(name, str) and _can_be_held(name)


@lru_cache(maxsize=_REMEMBERED)
def _can_be_held(name: str) -> bool:
    return (
        _NAME.fullmatch(name) is not None
        and ".." not in name
        and not name.endswith(".lock")
        and all(part != "." for part in name.split("/"))
        and len(quote(quote(name, safe=""), safe="")) <= LONGEST_NAME
    )


def check_name(name: str) -> None:
    """Raise if a branch name is reserved or can not be stored."""
    if not is_name(name):
        raise BadRequest(
            f"cannot create branch '{name}': a name is made of letters, digits, `.`, `-` and `_`, in parts separated "
            f"by `/`, has no `..`, does not end in `.lock` and has at most {LONGEST_NAME} bytes (a `/`, and each byte of "
            "a letter beyond ASCII, counts as five)"
        )
    if name in RESERVED:
        raise BadRequest(f"cannot create branch '{name}': the name is reserved")


def overlapping(store: ObjectStore, name: str) -> str | None:
    """A live branch whose name conflicts with `name` (equal, a prefix of its path, or a path below it); None if none does.

    Main is always live. Other branches are not read: Lance writes the files of a branch before its ref and removes them
    after it, and the files of a branch below `name` lie in the folder of `name`.
    """
    parts = name.split("/")
    above = ["/".join(parts[:length]) for length in range(1, len(parts))]
    found = next((other for other in above if other == MAIN or read_ref(store, other) is not None), None)
    if found is not None or not store.has_more_than(0, branch_path(MANIFEST_PATH, name)):
        return found
    names = list_names(store)
    return name if name in names else next((other for other in names if other.startswith(f"{name}/")), None)


def nested_below(store: ObjectStore, name: str) -> str | None:
    """A branch whose files lie inside the folder of branch `name`, else None; OmniGraph itself never makes such a branch."""
    folder = branch_path(MANIFEST_PATH, name)
    paths = (info.path.removeprefix(f"{folder}/").split("/") for info in store.list(folder))
    if not any("_versions" in parts[1:] for parts in paths):
        return None
    return next((other for other in list_names(store) if other.startswith(f"{name}/")), None)
