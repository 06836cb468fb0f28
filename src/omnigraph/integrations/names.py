"""Names from elsewhere as names of types and properties: unchanged where they are legal, unique in any case of letters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_TYPE = re.compile(r"[A-Z][A-Za-z0-9_]*")
_PROPERTY = re.compile(r"[a-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9_]+")
#: Longer names are cut: the name of a type is part of the name of a folder.
_LONGEST = 100
#: What rows have without a declaration.
RESERVED = frozenset(
    {"id", "src", "dst", "from", "to", "_rowid", "_rowaddr", "_rowoffset"}
    | {"_row_created_at_version", "_row_last_updated_at_version"}
)


class Names:
    """Gives names out, each once: `Foo` and `FOO` count as the same."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def type_name(self, wanted: str, otherwise: str = "Node") -> str:
        """A name for a type; `otherwise` when the wanted one has no letter or digit that can be used."""
        if not _TYPE.fullmatch(wanted):
            words = _WORD.findall(_plain(wanted))
            wanted = "".join(word[:1].upper() + word[1:] for word in words).lstrip("_")
            wanted = wanted[:1].upper() + wanted[1:]
            if wanted[:1].isdigit():
                wanted = f"{otherwise}{wanted}"
        return self._once(wanted or otherwise)

    def property_name(self, wanted: str) -> str:
        """A name for a property."""
        if not _PROPERTY.fullmatch(wanted):
            wanted = "_".join(_WORD.findall(_plain(wanted)))
            wanted = wanted[:1].lower() + wanted[1:]
            if not wanted or wanted[0].isdigit():
                wanted = f"p_{wanted}" if wanted else "unnamed"
        return self._once(f"{wanted}_" if wanted in RESERVED else wanted)

    def _once(self, wanted: str) -> str:
        wanted = wanted[:_LONGEST]
        name, number = wanted, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name.lower())
        return name


def _plain(text: str) -> str:
    """A text without accents; letters that have no ASCII form are gone."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
