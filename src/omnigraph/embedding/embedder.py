"""`Embedder`: what writers and queries hold to turn texts into vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.config import EmbeddingArgument, EmbeddingConfig, EmbeddingSettings, from_argument, settings_of
from omnigraph.embedding.provider import LOCAL, MOCK, REMOTE, Provider, Purpose
from omnigraph.errors import EmbeddingError


class Embedder:
    """The provider in force, made when a text is first embedded: who never embeds needs no key. Safe to use from threads."""

    def __init__(self, embedding: EmbeddingArgument | None = None) -> None:
        self._argument = from_argument(embedding)
        self._made: tuple[EmbeddingSettings, Provider] | None = None
        self._making = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """What is sent to another process is the configuration; the provider is made there."""
        return _configured, (self._argument,)

    def embed_documents(self, texts: Sequence[str], dimension: int, model: str | None = None) -> Matrix:
        """The vectors of texts that are stored. `model`: the one recorded in the schema, which must be the provider's."""
        return self._embed(texts, dimension, model, "document")

    def embed_query(self, text: str, dimension: int, model: str | None = None) -> tuple[float, ...]:
        """The vector of a text that is asked with."""
        return tuple(self._embed([text], dimension, model, "query")[0].tolist())

    def close(self) -> None:
        """Let go of the provider: its connections are closed as soon as no call uses it. The next text makes a new one."""
        with self._making:
            self._made = None

    def settings(self) -> EmbeddingSettings:
        """What the provider is made from now; EmbeddingError when something is missing."""
        return settings_of(self._argument, os.environ)

    def _embed(self, texts: Sequence[str], dimension: int, model: str | None, purpose: Purpose) -> Matrix:
        provider = self._provider()
        if model is not None and model != provider.model:
            raise EmbeddingError(
                f"the schema records the embedding model '{model}', but provider '{provider.name}' is configured with "
                f"'{provider.model}'; vectors of two models can not be compared, so configure '{model}'",
                provider=provider.name,
            )
        answer = provider.embed(texts, dimension, purpose) if texts else []
        return unit_vectors(answer, len(texts), dimension, provider.name)

    def _provider(self) -> Provider:
        """The provider for the settings of this moment; kept while they stay the same."""
        settings = self.settings()
        with self._making:
            if self._made is None or self._made[0] != settings:
                self._made = (settings, provider_of(settings))
            return self._made[1]


def _configured(config: EmbeddingConfig) -> Embedder:
    embedder = Embedder()
    embedder._argument = config
    return embedder


def provider_of(settings: EmbeddingSettings) -> Provider:
    """A provider made from its settings. Only its own module is loaded: a command that embeds nothing starts sooner."""
    if settings.kind == MOCK:
        from omnigraph.embedding.mock import MockProvider

        return MockProvider(settings.model)
    if settings.kind == LOCAL:
        from omnigraph.embedding.local import LocalProvider

        return LocalProvider()
    from omnigraph.embedding.remote import RemoteProvider, Transport

    dialect = REMOTE[settings.kind].dialect
    transport = Transport(
        settings.kind,
        settings.base_url,
        dialect.headers(settings.api_key),
        settings.api_key,
        settings.patience,
    )
    return RemoteProvider(settings.kind, settings.model, dialect, transport)


# What a provider answers, checked: as many vectors as texts, each of the right length, finite and normalised.


#: One row for each text.
Matrix = npt.NDArray[np.float32]

_NUMBERS = "fiu"


def unit_vectors(answer: Sequence[object], count: int, dimension: int, provider: str) -> Matrix:
    """The vectors of an answer, normalised; anything else than `count` finite vectors of `dimension` is refused."""
    if len(answer) != count:
        raise EmbeddingError(
            f"embedding provider '{provider}' answered {len(answer)} vectors for {count} texts", provider=provider
        )
    matrix = np.empty((count, dimension), np.float32)
    for row, vector in enumerate(answer):
        matrix[row] = _numbers(vector, dimension, provider)
    norms = _norms(matrix)
    # A component that is not finite makes the norm not finite.
    usable = np.isfinite(norms) & (norms > 0)
    if not usable.all():
        raise EmbeddingError(
            f"embedding provider '{provider}' answered a vector that can not be normalised: "
            "it is all zeros or has a number that is not finite",
            provider=provider,
        )
    return np.asarray(matrix / norms[:, np.newaxis])


def _numbers(vector: object, dimension: int, provider: str) -> npt.NDArray[np.float32]:
    try:
        numbers = np.asarray(vector)
    except ValueError:  # lists of several lengths inside
        numbers = np.asarray(None)
    # A text or a null would become a number silently if NumPy were simply asked for numbers.
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in _NUMBERS):
        raise EmbeddingError(
            f"embedding provider '{provider}' answered a vector that is not a list of numbers", provider=provider
        )
    if len(numbers) != dimension:
        raise EmbeddingError(
            f"embedding provider '{provider}' answered a vector of {len(numbers)} numbers where the property has "
            f"{dimension}; choose a model that gives {dimension}",
            provider=provider,
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite and is refused as such
        return numbers.astype(np.float32)


def _norms(matrix: Matrix) -> npt.NDArray[np.float32]:
    squares = matrix.astype(np.float64) ** 2
    # One after the other: NumPy's own sum adds in pairs, and the mock's vectors are defined to the last bit.
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(np.add.accumulate(squares, axis=1)[:, -1]).astype(np.float32))
