"""A provider that is a service elsewhere: texts are sent in batches, all within one deadline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.embedding.dialect import Dialect
from omnigraph.embedding.provider import Purpose
from omnigraph.embedding.transport import Transport
from omnigraph.errors import EmbeddingError


@dataclass(frozen=True, slots=True)
class RemoteProvider:
    """A service, in its own dialect."""

    name: str
    model: str
    dialect: Dialect
    transport: Transport

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> Sequence[object]:
        """The vectors as the service gives them."""
        deadline = self.transport.deadline()
        size = self.dialect.texts_per_request
        found: list[object] = []
        for start in range(0, len(texts), size):
            batch = texts[start : start + size]
            body = self.dialect.body(self.model, batch, dimension, purpose)
            answer = self.transport.post(self.dialect.path(self.model), body, deadline)
            found += self._vectors(answer, len(batch))
        return found

    def _vectors(self, answer: object, count: int) -> list[object]:
        try:
            vectors = self.dialect.vectors(answer)
        except (KeyError, TypeError, ValueError):
            raise EmbeddingError(
                f"embedding provider '{self.name}' answered JSON without vectors in it; check its base URL and model",
                provider=self.name,
            ) from None
        # Counted by batch: two wrong batches must not add up to the right number.
        if len(vectors) != count:
            raise EmbeddingError(
                f"embedding provider '{self.name}' answered {len(vectors)} vectors for {count} texts",
                provider=self.name,
            )
        return vectors
