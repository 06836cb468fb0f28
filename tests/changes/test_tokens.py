"""Tokens: sealed payloads whose format stays, because a consumer may hold one for as long as history is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.changes.filter import Filter, read_filter
from omnigraph.changes.tokens import LONGEST_TOKEN, seal, unseal
from omnigraph.errors import ChangeCursorRejected

DOMAIN = "01JABCDEFGHJKMNPQRSTVWXYZ0"
PAYLOAD = {
    "for": "cursor",
    "seen": "01JABCDEFGHJKMNPQRSTVWXYZ1",
    "branch": "main",
    "incarnation": "",
    "filter": Filter().fingerprint(),
}
GOLDEN = (
    "AZykt1vL0h9EuBtpjQwc-R7kR4gSFFY6vXsiYnJhbmNoIjoibWFpbiIsImZpbHRlciI6ImZlNDRhOGNjY2Q4OWVkYWUi"
    "LCJmb3IiOiJjdXJzb3IiLCJpbmNhcm5hdGlvbiI6IiIsInNlZW4iOiIwMUpBQkNERUZHSEpLTU5QUVJTVFZXWFlaMSJ9"
)
FILTERS = {
    "everything": (Filter(), "fe44a8cccd89edae"),
    "some": (read_filter(["edge"], ["Staff", "Team"], "insert"), "3f74c0efc43af564"),
}


def test_a_cursor_of_long_ago_is_still_read() -> None:
    assert seal(DOMAIN, PAYLOAD) == GOLDEN
    assert unseal(["another", DOMAIN], GOLDEN, "cursor") == PAYLOAD


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_keeps_its_fingerprint(name: str) -> None:
    wanted, fingerprint = FILTERS[name]
    assert wanted.fingerprint() == fingerprint


def test_a_filter_is_the_same_in_any_order() -> None:
    assert read_filter(types=["b", "a"]).fingerprint() == read_filter(types=("a", "b", "a")).fingerprint()
    assert read_filter(kinds=[]) == read_filter()
    assert read_filter(types="a").fingerprint() != read_filter(kinds="node").fingerprint()


@given(st.text(max_size=LONGEST_TOKEN + 10))
def test_no_text_is_more_than_rejected(token: str) -> None:
    with pytest.raises(ChangeCursorRejected):
        unseal(["another", DOMAIN], token, "cursor")


@given(place=st.integers(0, len(seal(DOMAIN, PAYLOAD)) - 1), letter=st.sampled_from("ABCXYZabcxyz019-_"))
def test_no_letter_can_be_changed(place: int, letter: str) -> None:
    token = seal(DOMAIN, PAYLOAD)
    altered = token[:place] + letter + token[place + 1 :]
    if altered == token:
        return
    with pytest.raises(ChangeCursorRejected) as caught:
        unseal(["another", DOMAIN], altered, "cursor")
    assert caught.value.reason in ("malformed", "other_graph", "tampered")
