"""The kinds of provider there are, and what each is when nothing more is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.embedding.dialect import Dialect
from omnigraph.embedding.gemini import GEMINI
from omnigraph.embedding.openai import OPENAI

DEFAULT_KIND = "openai-compatible"
MOCK = "mock"
LOCAL = "local"

#: The only model of the local provider: it is part of the package that brings it.
LOCAL_MODEL = "all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Remote:
    """A service: how it is spoken to, where it is, its model, and the variables its key may be in, first one first."""

    dialect: Dialect
    base_url: str
    model: str
    key_variables: tuple[str, ...]


REMOTE: Mapping[str, Remote] = {
    DEFAULT_KIND: Remote(
        OPENAI,
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    "openai": Remote(OPENAI, "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)),
    "gemini": Remote(
        GEMINI, "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2", ("GEMINI_API_KEY",)
    ),
}
KINDS = (*REMOTE, MOCK, LOCAL)
