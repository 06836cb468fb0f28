"""Asking a provider over HTTP: within a deadline, with retries of what may pass."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import httpx

from omnigraph.embedding.settings import Settings
from omnigraph.errors import EmbeddingError

#: Answers that say "later": too many requests, and failures of the server.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_SHOWN = 200


def post(settings: Settings, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    """The JSON a provider answers with."""
    ends = time.monotonic() + settings.deadline
    problem = "no attempt was made"
    for attempt in range(settings.attempts):
        left = ends - time.monotonic()
        if left <= 0:
            break
        try:
            answer = httpx.post(
                f"{settings.base_url}{path}",
                headers=dict(headers),
                json=dict(body),
                timeout=min(settings.timeout, left),
            )
        except httpx.HTTPError as error:
            problem = f"{type(error).__name__}: {error}".rstrip(": ")
        else:
            if answer.status_code == httpx.codes.OK:
                return _json(answer, settings)
            problem = f"HTTP {answer.status_code}: {answer.text[:_SHOWN]}"
            if answer.status_code not in _PASSING:
                break
        time.sleep(max(0.0, min(settings.backoff * 2**attempt, ends - time.monotonic())))
    raise EmbeddingError(f"the embedding provider {settings.kind} failed: {problem}", provider=settings.kind)


def _json(answer: httpx.Response, settings: Settings) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise malformed(settings, "it is not JSON") from None


def malformed(settings: Settings, problem: str) -> EmbeddingError:
    """An answer that was understood as little as the provider understood us."""
    return EmbeddingError(
        f"the embedding provider {settings.kind} gave an answer that is no use: {problem}", provider=settings.kind
    )
