"""Uses of Lance beyond its public API, each with the reason and with what would replace it.

`tests/substrate/` fails when a new version of Lance changes one of them.
"""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import DataFile

# By module name, because the attribute `lance.dataset` is a function.
_lance = import_module("lance.dataset")
_known_to_lance = _lance._needs_substrait_placeholder


def _needs_placeholder(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(_known_to_lance(kind)) or (is_list and pa.types.is_unsigned_integer(kind.value_type))


def allow_unsigned_lists() -> None:
    """Make Lance put a placeholder for a list of unsigned integers in every filter of this process.

    With every filter Lance sends the schema of the table as Substrait, which has no unsigned integers. Columns that Substrait
    can not express are replaced by placeholders, so that filters on other columns work. Lance does this for unsigned columns
    but not for lists of them, and would refuse every filter on such a table. A fix in Lance would replace this.
    """
    _lance._needs_substrait_placeholder = _needs_placeholder  # type: ignore[attr-defined]


def _settings_of_scanner(builder: object) -> dict[str, Any]:
    return {
        name: copy(value) if isinstance(value, list | dict) else value
        for name, value in vars(builder).items()
        if name != "ds"
    }


def copy_scanner_settings_once() -> None:
    """Make each scanner of this process keep a shallow copy of its settings.

    Lance deep-copies the 34 settings of every scanner, for a later `to_pandas` with blobs. They are numbers, texts and flat
    lists, and the deep copy takes 5 % of a look-up by key. If Lance copied them where needed, that would replace this.
    """
    _lance._snapshot_scanner_builder = _settings_of_scanner  # type: ignore[attr-defined]


def data_file_name(file: DataFile) -> str:
    """The path of a data file below the `data` folder of its dataset.

    The public attribute `path` makes a class each time it is read, for callers that still call it, and takes 15 µs; a
    commit reads it ten times. A plain attribute would replace this.
    """
    name: str = file._path
    return name


def serialized_manifest(dataset: LanceDataset) -> bytes:
    """The manifest of a handle as the protobuf message that its version file holds.

    It is what a handle is pickled with; `LanceDataset(serialized_manifest=…)` accepts it. A public way to set the base paths
    when a dataset is opened would replace this.
    """
    data: bytes = dataset._ds.serialized_manifest()
    return data
