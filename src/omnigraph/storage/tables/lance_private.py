"""What is used of Lance beyond its public API, each with why and with what would replace it.

`tests/substrate/` fails when a new version of Lance has changed one of them.
"""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import DataFile

# By its name: the attribute `lance.dataset` is a function.
_lance = import_module("lance.dataset")
_known_to_lance = _lance._needs_substrait_placeholder


def _needs_placeholder(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(_known_to_lance(kind)) or (is_list and pa.types.is_unsigned_integer(kind.value_type))


def allow_unsigned_lists() -> None:
    """Let Lance put a placeholder where a list of unsigned integers is, in every filter of this process.

    Lance sends the schema of a table along with every filter, as Substrait, which has no unsigned integers. Columns that
    Substrait can not express give way to placeholders, so that filters on the others work; Lance knows this of unsigned
    columns, but not of lists of them, and would refuse every filter on such a table. Lance knowing it would replace this.
    """
    _lance._needs_substrait_placeholder = _needs_placeholder  # type: ignore[attr-defined]


def _settings_of_scanner(builder: object) -> dict[str, Any]:
    return {
        name: copy(value) if isinstance(value, list | dict) else value
        for name, value in vars(builder).items()
        if name != "ds"
    }


def copy_scanner_settings_once() -> None:
    """Let each scanner of this process keep a flat copy of its settings.

    Lance copies the 34 settings of every scanner in depth, for a later `to_pandas` with blobs. They are numbers, texts and flat
    lists, and the deep copy is 5 % of a look-up by key. Lance making the copy where it is needed would replace this.
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

    It is what a handle is pickled with; `LanceDataset(serialized_manifest=…)` takes it back. A public way to give the places of
    base paths when a dataset is opened would replace this.
    """
    data: bytes = dataset._ds.serialized_manifest()
    return data
