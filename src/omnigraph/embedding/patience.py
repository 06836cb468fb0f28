"""How long a remote provider is waited for, and how often it is asked again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """`timeout_ms` bounds one request, `deadline_ms` all requests and waits of one call together."""

    timeout_ms: int = 30_000
    deadline_ms: int = 120_000
    retry_attempts: int = 4
    #: The wait before the first repetition; it doubles with each.
    retry_backoff_ms: int = 250
