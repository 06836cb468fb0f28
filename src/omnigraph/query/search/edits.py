"""Edit distance between tokens: how many letters are added, dropped or replaced."""

from __future__ import annotations


def default_edits(token: str) -> int:
    """How far a token may be off when the query does not say: long words may hold two slips, very short ones none."""
    if len(token) >= 6:
        return 2
    return 1 if len(token) >= 3 else 0


def within(one: str, other: str, most: int) -> bool:
    """Whether two tokens are at most so many edits apart."""
    if abs(len(one) - len(other)) > most:
        return False
    if one == other:
        return True
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, counterpart in enumerate(other, 1):
            change = previous[column - 1] + (letter != counterpart)
            current.append(min(change, previous[column] + 1, current[-1] + 1))
        if min(current) > most:
            return False
        previous = current
    return previous[-1] <= most
