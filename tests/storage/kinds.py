"""How a test reads a failure of the store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.errors import StorageError


def kind_of(call: Callable[[], object]) -> str:
    """The kind of the StorageError that a call raises."""
    with pytest.raises(StorageError) as caught:
        call()
    assert "\n" not in caught.value.message
    return caught.value.kind
