"""Log lines as JSON on standard error: one per request, and one per event. Tokens and bodies are never part of them."""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

import orjson

from omnigraph.errors import redacted

REQUESTS = "omnigraph.server.requests"
#: The attribute of a log record with additional fields.
FIELDS = "fields"


class JsonLines(logging.Formatter):
    """A record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": redacted(record.getMessage()),
        }
        told |= getattr(record, FIELDS, {})
        if record.exc_info:
            told["traceback"] = redacted("".join(traceback.format_exception(*record.exc_info)))
        return orjson.dumps(told, default=str).decode()


def log_to_stderr() -> None:
    """Send the log records of this process to standard error, as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("omnigraph", logging.INFO), ("uvicorn", logging.WARNING), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"


def log_request(**told: Any) -> None:
    """Log one line about an answered request."""
    logging.getLogger(REQUESTS).info("request", extra={FIELDS: told})
