"""What an embedding provider is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

#: Whether a text is stored or asked with; some models embed the two differently.
Purpose = Literal["document", "query"]


class Provider(Protocol):
    """Turns texts into vectors of one model. What it answers is judged and normalised in one place for all, `vectors`."""

    @property
    def name(self) -> str:
        """The kind of provider, as `EmbeddingError.provider` gives it."""

    @property
    def model(self) -> str:
        """The model whose vectors these are; empty when none was given to the mock."""

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> Sequence[object]:
        """One vector for each text, in their order."""
