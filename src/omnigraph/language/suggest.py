"""The near miss: which known name did the writer mean?"""

from __future__ import annotations

from collections.abc import Iterable

#: Comparing names takes time that grows with their product, and nobody misspells a longer one.
_LONGEST_NAME = 100


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one, or None when none is close."""
    if len(name) > _LONGEST_NAME:
        return None
    # Only a mistake is worth the time it takes to load this.
    from difflib import get_close_matches

    candidates = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    if name.lower() in folded:
        return folded[name.lower()]
    matches = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def did_you_mean(suggestion: str | None) -> str:
    """The tail of a message: `; did you mean …?`, or nothing."""
    return f"; did you mean `{suggestion}`?" if suggestion else ""
