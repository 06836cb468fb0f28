"""Answers of bounded size in compact JSON, with a note on how to get the rest; and errors with advice on what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from omnigraph import errors
from omnigraph.errors import OmnigraphError, ResourceLimit
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Reply
from omnigraph.wire.failures import error_body, status_of

#: When a single item is too large: the successive limits of (characters of a text, entries of a list) that are tried.
_CUTS = ((4000, 200), (1000, 50), (300, 20), (100, 10), (40, 5), (20, 2))
#: The most bytes of the note about a cut answer.
_NOTE_BYTES = 700


def text_of(shape: Any) -> str:
    """A shape as compact JSON."""
    return orjson.dumps(shape, option=orjson.OPT_NON_STR_KEYS).decode()


def size_of(shape: Any) -> int:
    """The size of a shape as JSON, in bytes."""
    return len(orjson.dumps(shape, option=orjson.OPT_NON_STR_KEYS))


def bounded(reply: Reply, limit: int) -> str:
    """A reply as a text of at most `limit` bytes. `truncated` tells what was cut, and which arguments give the rest."""
    shape = reply.shape
    text = text_of(shape)
    if len(text.encode()) <= limit:
        return text
    items = shape.get(reply.items or "", ())
    if items:
        kept = fitting(items, limit - size_of({**shape, str(reply.items): []}) - _NOTE_BYTES)
        while kept:
            text = text_of(_cut(reply, kept))
            if len(text.encode()) <= limit:
                return text
            kept -= 1
    first = _cut(reply, 1) if len(items) > 1 else shape
    for characters, entries in _CUTS:
        short = {
            name: value if name == "truncated" else shortened(value, characters, entries)
            for name, value in first.items()
        }
        note = {
            **short.get("truncated", {}),
            "values": f"texts above {characters} characters and lists above {entries} entries were cut",
        }
        text = text_of({**short, "truncated": note})
        if len(text.encode()) <= limit:
            return text
    raise ResourceLimit(
        f"the answer has {size_of(shape)} bytes, and may have {limit}; ask for less: fewer types, a smaller limit, fewer columns",
        resource="answer_bytes",
        limit=limit,
        actual=size_of(shape),
    )


def _cut(reply: Reply, kept: int) -> dict[str, Any]:
    """The shape with its first items, and a note about the others."""
    name = str(reply.items)
    items = reply.shape[name]
    note: dict[str, Any] = {"given": kept, "of": len(items) if reply.total is None else reply.total, "list": name}
    if reply.rest is not None:
        note["next"] = "call the tool again with the same arguments and these"
        note["arguments"] = reply.rest(kept)
    else:
        note["next"] = "ask for less: a smaller limit, fewer types or a narrower question"
    return {**reply.shape, name: items[:kept], "truncated": note}


def fitting(items: Any, limit: int) -> int:
    """How many items from the beginning fit into `limit` bytes."""
    used = 0
    for place, item in enumerate(items):
        used += size_of(item) + 1
        if used > limit:
            return place
    return len(items)


def shortened(value: Any, characters: int, entries: int) -> Any:
    """A value with long texts and long lists cut, at every depth."""
    if isinstance(value, str) and len(value) > characters:
        return f"{value[:characters]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {name: shortened(inner, characters, entries) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        kept = [shortened(inner, characters, entries) for inner in value[:entries]]
        return [*kept, f"… ({len(value)} entries)"] if len(value) > entries else kept
    return value


def paged(ask: Callable[[int], dict[str, Any]], limit: int, answer_bytes: int, items: str) -> Reply:
    """A page with page tokens of the graph, requested again with smaller limits until its answer fits."""
    while True:
        shape = ask(limit)
        size = size_of(shape)
        if size <= answer_bytes or limit == 1:
            return Reply(shape, items)
        limit = max(1, min(limit - 1, limit * answer_bytes // (2 * size)))


def sliced(name: str, text: str, offset: int, answer_bytes: int) -> dict[str, Any]:
    """A text as the field `name`; of a long text only a part, with the offset at which the next part begins."""
    part = text[offset : offset + answer_bytes]
    while size_of(part) > answer_bytes - _NOTE_BYTES:
        part = part[: len(part) * 3 // 4]
    told: dict[str, Any] = {name: part}
    end = offset + len(part)
    if end < len(text):
        note = {"given": len(part), "of": len(text), "list": f"characters of {name}"}
        again = {"next": "call the tool again with the same arguments and these", "arguments": {"offset": end}}
        told["truncated"] = note | again
    return told


# --- errors -----------------------------------------------------------------------------------------------------------

#: The advice for an error, by the first matching class.
_ADVICE: tuple[tuple[type[OmnigraphError], str], ...] = (
    (errors.Denied, "Do not repeat it: ask somebody with the right, or work on a branch that you may write to."),
    (errors.Unauthorized, "The token is missing or wrong; whoever started this session has to give another one."),
    (errors.BranchNotFound, "Call branches_list for the branches there are, or branches_create to make one."),
    (errors.CommitNotFound, "Call commits_list for the commits of a branch."),
    (errors.EntityNotFound, "Call find to look for the entity by its words, or query for the ids of its type."),
    (errors.ParseError, "Correct the text and check it with lint; omnigraph://best-practices/queries shows the forms."),
    (
        errors.LanguageError,
        "Call describe_type for the types and properties there are, functions for what can be called, then lint.",
    ),
    (
        errors.MergeConflicts,
        "Call merge_preview for both sides of each conflict; change the source branch, or ask a person to decide.",
    ),
    (
        errors.PreconditionFailed,
        "The branch has moved on. Read it again, decide again, and send the write with the new commit.",
    ),
    (errors.KeyConflict, "An entity with this id exists. Update it with mutate, or load with mode merge."),
    (errors.AlreadyExists, "Use the one that is there, or choose another name."),
    (errors.Conflict, "Somebody else has written. Read again what the write was based on, then send it again."),
    (
        errors.ValidationError,
        "A rule of the schema is broken. Call describe_type for the rules of the type, and correct the values.",
    ),
    (errors.ResourceLimit, "Ask for less: add a limit, filter more, or split the load."),
    (errors.ChangeFeedGap, "The history behind this cursor is gone. Begin again with start=now."),
    (errors.HistoricalVersionReclaimed, "This old state is gone. Read a branch, or a newer commit of commits_list."),
    (errors.TooManyRequests, "Wait until your other writes have ended, then send it again."),
    (errors.Unavailable, "Send it again in a moment, a write with the same idempotency_key."),
    (errors.RecoveryRequired, "A person has to look at the graph: `omnigraph recovery list`."),
    (errors.DeadlineExceeded, "Ask for less: a limit, a filter on a key, fewer hops; explain shows what is slow."),
    (errors.EmbeddingError, "Search by words instead: find with mode=words, or bm25 in a query."),
    (errors.NotFound, "Call describe_type for the types there are, and find or query for entities."),
    (errors.BadRequest, "Correct the arguments; the input schema of the tool and the message say how."),
)


def advice(error: Exception) -> str:
    """The advice for an error, in one or two sentences."""
    for kind, text in _ADVICE:
        if isinstance(error, kind):
            return text
    return "Try it once more; if it fails again, tell the person who runs this graph."


def failure_text(error: Exception, session: Session | None, limit: int) -> str:
    """An error as a JSON object, with its status and advice on what to do next."""
    status = status_of(error)
    body = error_body(error, status)
    hidden: Callable[[str], str] = str if session is None else session.hidden
    shape = {"error": hidden(body["error"]), "status": status, "next": advice(error)}
    shape |= {name: value for name, value in body.items() if name != "error"}
    listed = next((name for name, value in shape.items() if isinstance(value, list)), None)
    return bounded(Reply(shape, listed), limit)
