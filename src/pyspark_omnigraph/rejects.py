"""A micro-batch with rows that the graph refuses: they go to a folder with the reasons, and the others are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import KeyConflict, LoadRejected
from omnigraph.load.frames import FrameFiles, Part, write_part, written_frame
from omnigraph.storage.outputs import Output

if TYPE_CHECKING:
    from pyspark_omnigraph.target import Target

#: A load lists its first problems, so rows are refused in rounds; a batch that needs more of them stops the stream.
MOST_ROUNDS = 100


@dataclass
class _File:
    """The rows of one task: the rows that are still to be loaded, and the refused rows with the reasons."""

    part: Part
    rows: pa.Table
    #: The numbers of the refused rows in the last attempt to load, each with its reasons.
    now: dict[int, list[str]] = field(default_factory=dict)
    refused: list[tuple[dict[str, object], list[str]]] = field(default_factory=list)


def load_without_rejects(target: Target, job_id: str, parts: Sequence[Part], key: str, place: str) -> None:
    """Load the rows that the graph takes, as one commit; the others are a file of the folder `place`, written before."""
    folder = target.folder(job_id)
    files = {part.name: _File(part, _table(folder, part)) for part in parts}
    for _ in range(MOST_ROUNDS):
        given = [one.part for one in files.values() if one.rows.num_rows]
        _tell(files, Output.parse(place), key)
        if not given:
            return
        try:
            target.load(job_id, given, key, by_key=True)
            return
        except (LoadRejected, KeyConflict) as error:
            problems = error.errors if isinstance(error, LoadRejected) else error.places
            if not problems or any(not line for _, line, _ in problems):
                raise
            for name, line, reason in problems:
                files[name].now.setdefault(line - 1, []).append(reason)
            files = {new.part.name: new for new in (_without(folder, one) for one in files.values())}
    target.load(job_id, [one.part for one in files.values() if one.rows.num_rows], key, by_key=True)


def _table(folder: Output, part: Part) -> pa.Table:
    frame: FrameFiles = written_frame(folder, [], [part])
    with frame.files[0].opened() as opened:
        return pq.read_table(pa.PythonFile(opened, "r"))


def _without(folder: Output, one: _File) -> _File:
    """A file without the rows that were just refused."""
    if not one.now:
        return one
    numbers = sorted(one.now)
    rows = one.rows.take(pa.array(numbers)).to_pylist()
    refused = [*one.refused, *((row, one.now[number]) for number, row in zip(numbers, rows, strict=True))]
    kept = one.rows.take(pa.array(np.setdiff1d(np.arange(one.rows.num_rows), numbers)))
    part = write_part(folder, int(one.part.name.partition("-")[0]), iter(kept.combine_chunks().to_batches()))
    return _File(part or one.part, kept, refused=refused)


def _tell(files: dict[str, _File], folder: Output, key: str) -> None:
    """Write the refused rows of a batch, over what an earlier try has written."""
    lines = [
        orjson.dumps({"reasons": reasons, "row": row}, default=str) + b"\n"
        for one in files.values()
        for row, reasons in one.refused
    ]
    if lines:
        folder.child(f"{key.replace(':', '-')}.jsonl").write([b"".join(lines)], parents=True, durable=True)
