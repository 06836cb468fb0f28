"""Commit messages: the message of the caller or a default message, and the counts of changed rows."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from omnigraph.commit.model import Changed, Lineage, is_text
from omnigraph.errors import BadRequest
from omnigraph.ids import new_ulid, now_micros

#: The most characters of a message.
LONGEST_MESSAGE = 10_000
_ALLOWED_CONTROLS = frozenset("\n\t")
#: Unicode categories of control characters, and characters that reverse text direction: terminals would obey them.
_HIDDEN = frozenset({"Cc", "Cs"})
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def new_lineage(
    kind: str, actor: str | None = None, message: str | None = None, commit_id: str | None = None
) -> Lineage:
    """The lineage of a commit to be made, with its id and time; raises if the message can not be stored."""
    return Lineage(commit_id or new_ulid(), now_micros(), kind, actor, message=checked_message(message))


def checked_message(message: str | None) -> str | None:
    """A message as it is stored, stripped; None for an empty message."""
    if message is None:
        return None
    if not is_text(message):
        raise BadRequest(f"a message is a text, not {message!r}")
    kept = message.replace("\r\n", "\n").strip()
    if len(kept) > LONGEST_MESSAGE:
        raise BadRequest(f"a message has at most {LONGEST_MESSAGE:,} characters, this one has {len(kept):,}")
    for character in kept:
        hidden = unicodedata.category(character) in _HIDDEN and character not in _ALLOWED_CONTROLS
        if hidden or character in _TURNING:
            raise BadRequest(
                f"a message has no control characters but line breaks and tabs; this one has U+{ord(character):04X}"
            )
    return kept or None


def changed_of(counts: Mapping[str, int]) -> Changed:
    """How many nodes and edges were changed, from counts by `node:Type` and `edge:Type`."""
    nodes = sum(count for key, count in counts.items() if key.startswith("node:"))
    return Changed(nodes, sum(counts.values()) - nodes)


def counted(number: int, noun: str) -> str:
    """A number and its noun, such as `1 node` or `3,000 edges`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def load_message(source: str | None, mode: str, changed: Changed) -> str:
    """The default message of a load. `source`: the origin of the rows; None for rows without a name."""
    named = "" if source is None else f" {source}"
    return f"Load{named} ({mode}): {counted(changed.nodes, 'node')}, {counted(changed.edges, 'edge')}"


def first_line(message: str, width: int = 72) -> str:
    """A message in one line of at most `width` characters."""
    line = " ".join(message.split("\n", 1)[0].split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
