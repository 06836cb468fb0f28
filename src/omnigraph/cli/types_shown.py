"""How commands of maintenance name a dataset and an amount of bytes for people."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def dataset_name(type_key: str) -> str:
    """`node type 'Person'`; what is no type's is named by its path."""
    kind, colon, name = type_key.partition(":")
    return f"{kind} type '{name}'" if colon else type_key


def size(count: int) -> str:
    """Bytes in the unit that fits."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            break
        amount /= 1000
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
