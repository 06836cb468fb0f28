"""The one judge of what a provider answers: as many vectors as texts, of the right length, finite, of length one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.errors import EmbeddingError

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
