"""What an embedding provider is: the kinds with their defaults, and the requests and answers of remote services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import quote

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


class Body(Protocol):
    """Makes the JSON body of one request."""

    def __call__(self, model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """A service's requests and answers. `vectors` raises KeyError, TypeError or ValueError on an answer of another shape."""

    path: Callable[[str], str]
    headers: Callable[[str], Mapping[str, str]]
    body: Body
    vectors: Callable[[object], list[object]]
    texts_per_request: int


def member(value: object, name: str) -> object:
    """A member of a JSON object; raises TypeError or KeyError for other data."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object with '{name}'")
    return value[name]


def items(value: object) -> list[object]:
    """The items of what should be a JSON array."""
    if not isinstance(value, list):
        raise TypeError("expected an array")
    return value


# OpenAI's embeddings endpoint, which OpenRouter and many local servers speak too.


def _openai_path(model: str) -> str:
    return "/embeddings"


def _openai_headers(api_key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {api_key}"}


def _openai_body(model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> Mapping[str, object]:
    return {"model": model, "input": list(texts), "dimensions": dimension, "encoding_format": "float"}


def _openai_vectors(answer: object) -> list[object]:
    """In the order of the texts: every item says which text it is for, and the items may come in any order."""
    found = items(member(answer, "data"))
    by_index = {member(item, "index"): member(item, "embedding") for item in found}
    if set(by_index) != set(range(len(found))):
        raise ValueError("expected one item for each index")
    return [by_index[index] for index in range(len(found))]


OPENAI = Dialect(_openai_path, _openai_headers, _openai_body, _openai_vectors, texts_per_request=256)


# Google's Gemini: many texts in one request, each with its purpose.


_TASKS: Mapping[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


def _gemini_resource(model: str) -> str:
    return model if model.startswith("models/") else f"models/{model}"


def _gemini_path(model: str) -> str:
    return f"/{quote(_gemini_resource(model))}:batchEmbedContents"


def _gemini_headers(api_key: str) -> Mapping[str, str]:
    # The key may also be part of the URL, but URLs end up in logs.
    return {"x-goog-api-key": api_key}


def _gemini_body(model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> Mapping[str, object]:
    asked = {"model": _gemini_resource(model), "taskType": _TASKS[purpose], "outputDimensionality": dimension}
    return {"requests": [{**asked, "content": {"parts": [{"text": text}]}} for text in texts]}


def _gemini_vectors(answer: object) -> list[object]:
    return [member(item, "values") for item in items(member(answer, "embeddings"))]


GEMINI = Dialect(_gemini_path, _gemini_headers, _gemini_body, _gemini_vectors, texts_per_request=100)


# The kinds of provider, and the defaults of each.


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
