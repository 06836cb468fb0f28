"""The mock provider: vectors that depend on nothing but the text, the same to the last bit everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from omnigraph.embedding.provider import Purpose

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_U64 = 0xFFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class MockProvider:
    """Text → FNV-1a 64 → xorshift64 → components in [−1, 1]. A text is the same stored or asked with."""

    model: str = ""
    name: ClassVar[str] = "mock"

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> Sequence[object]:
        """The components before normalisation, all texts at once."""
        state = np.array([_fnv1a(text.encode()) for text in texts], np.uint64)
        components = np.empty((dimension, len(texts)), np.float32)
        for component in components:
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            share = (state.astype(np.float64) / 2.0**64).astype(np.float32)
            component[:] = share * np.float32(2) - np.float32(1)
        return list(components.T)


def _fnv1a(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _U64
    return value
