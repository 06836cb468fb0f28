"""What goes as a header of a served write, and can not: nothing is left out, and nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.server.serving import ADD, TOKEN, Served


@pytest.mark.parametrize("text", ["", " ", "a\nb", "ä", " a", 5], ids=repr)
@pytest.mark.parametrize("option", ["if_commit", "idempotency_key"])
def test_a_text_that_no_header_carries(served: Served, option: str, text: Any) -> None:
    with og.connect(served.url, graph="people", token=TOKEN) as graph:
        before = graph.head()
        with pytest.raises(BadRequest):
            graph.mutate(ADD, params={"name": "eve"}, **{option: text})
        assert graph.head() == before


def test_an_empty_condition_of_several_mutations(served: Served) -> None:
    """Whoever reads the head into an empty text has a condition that does not hold, not none."""
    with og.connect(served.url, graph="people", token=TOKEN) as graph, pytest.raises(og.errors.PreconditionFailed):
        graph.mutate_many([(ADD, None, {"name": "eve"})], if_commit="")
