"""Google's Gemini: many texts in one request, each with what it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from omnigraph.embedding.dialect import Dialect, items, member
from omnigraph.embedding.provider import Purpose

_TASKS: Mapping[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


def _resource(model: str) -> str:
    return model if model.startswith("models/") else f"models/{model}"


def _path(model: str) -> str:
    return f"/{quote(_resource(model))}:batchEmbedContents"


def _headers(api_key: str) -> Mapping[str, str]:
    # The key may also be part of the URL, but URLs end up in logs.
    return {"x-goog-api-key": api_key}


def _body(model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> Mapping[str, object]:
    asked = {"model": _resource(model), "taskType": _TASKS[purpose], "outputDimensionality": dimension}
    return {"requests": [{**asked, "content": {"parts": [{"text": text}]}} for text in texts]}


def _vectors(answer: object) -> list[object]:
    return [member(item, "values") for item in items(member(answer, "embeddings"))]


GEMINI = Dialect(_path, _headers, _body, _vectors, texts_per_request=100)
