"""The embeddings endpoint of OpenAI, which OpenRouter and many local servers speak too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.embedding.dialect import Dialect, items, member
from omnigraph.embedding.provider import Purpose


def _path(model: str) -> str:
    return "/embeddings"


def _headers(api_key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {api_key}"}


def _body(model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> Mapping[str, object]:
    return {"model": model, "input": list(texts), "dimensions": dimension, "encoding_format": "float"}


def _vectors(answer: object) -> list[object]:
    """In the order of the texts: every item says which text it is for, and the items may come in any order."""
    found = items(member(answer, "data"))
    by_index = {member(item, "index"): member(item, "embedding") for item in found}
    if set(by_index) != set(range(len(found))):
        raise ValueError("expected one item for each index")
    return [by_index[index] for index in range(len(found))]


OPENAI = Dialect(_path, _headers, _body, _vectors, texts_per_request=256)
