"""The version of the on-disk format: which formats this OmniGraph can read."""

from __future__ import annotations

from omnigraph.errors import FormatTooNew, FormatTooOld

CURRENT = 4
MIN_SUPPORTED = 2
#: The first format that keeps commits as rows of `__manifest`.
HISTORY_IN_MANIFEST = 4


def refuse_if_unsupported(stamp: int) -> None:
    """Raise if the format is not supported; called at read-write open, read-only open and reads of branches."""
    if stamp > CURRENT:
        raise FormatTooNew(
            f"this graph has format {stamp}, this OmniGraph knows {CURRENT}; upgrade omnigraph",
            found=stamp,
            supported=CURRENT,
        )
    if stamp < MIN_SUPPORTED:
        raise FormatTooOld(
            f"this graph has format {stamp}, the oldest this OmniGraph can read is {MIN_SUPPORTED}; "
            "rebuild it via export/import with the version that wrote it",
            found=stamp,
            supported=MIN_SUPPORTED,
        )
