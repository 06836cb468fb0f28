"""The write loop: an error of an attempt against the receipt of an earlier sending of the same request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from omnigraph.commit.context import Limits
from omnigraph.commit.model import ManifestState
from omnigraph.commit.rows import Receipt
from omnigraph.commit.write_loop import Prepared, Writing, carry_out
from omnigraph.commit.writers import MUTATION
from omnigraph.errors import BadRequest, Conflict, OmnigraphError, StorageError

RECEIPT = Receipt("01COMMIT", "request", {})


class Failing(Writing[str]):
    """A write whose preparation fails. `known`: what is found when a receipt is looked for, one after the other."""

    writer = MUTATION

    def __init__(self, error: OmnigraphError, *known: Receipt | None) -> None:
        self.context: Any = SimpleNamespace(limits=Limits())
        self.branch = "main"
        self._error, self._known = error, list(known)

    def locks(self) -> tuple[str, ...]:
        return ()

    def earlier(self) -> Receipt | None:
        return self._known.pop(0)

    def repeated(self, known: Receipt) -> str:
        return known.commit_id

    def capture(self) -> ManifestState:
        return cast("ManifestState", None)

    def prepare(self, state: ManifestState) -> Prepared[str]:
        raise self._error


ERRORS = [BadRequest("the id is there already"), Conflict("the base moved")]


@pytest.mark.parametrize("error", ERRORS, ids=["of the rows", "of the base"])
def test_a_sending_that_fails_on_what_an_earlier_one_did_gets_its_answer(error: OmnigraphError) -> None:
    assert carry_out(Failing(error, None, RECEIPT)) == "01COMMIT"


@pytest.mark.parametrize("error", ERRORS, ids=["of the rows", "of the base"])
def test_an_error_without_an_earlier_sending_is_told(error: OmnigraphError) -> None:
    with pytest.raises(type(error)) as told:
        carry_out(Failing(error, None, None))
    assert told.value is error


def test_a_store_that_fails_is_not_asked_again() -> None:
    error = StorageError("the store is gone", kind="transient", path="x")
    with pytest.raises(StorageError) as told:
        carry_out(Failing(error, None))
    assert told.value is error
