"""Pages of lists that are in memory: commits and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import BadRequest

Item = TypeVar("Item")
#: The largest page of commits or branches.
MOST_LISTED = 10_000


def page(
    items: list[Item], limit: int | None, page_token: str | None, key: Callable[[Item], str]
) -> tuple[list[Item], dict[str, str]]:
    """A page of a list that is in memory: all of it unless a limit is given; the token is the last entry's key."""
    start = 0
    if page_token is not None:
        places = [place for place, item in enumerate(items) if key(item) == page_token]
        if not places:
            raise BadRequest("the page token belongs to another list, or its entry is gone; start again without one")
        start = places[0] + 1
    if limit is None:
        return items[start:], {}
    if not 0 < limit <= MOST_LISTED:
        raise BadRequest(f"limit is 1 to {MOST_LISTED}, not {limit}")
    shown = items[start : start + limit]
    more = start + limit < len(items)
    return shown, {"next_page_token": key(shown[-1])} if more else {}
