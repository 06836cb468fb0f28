"""Every error OmniGraph raises, in one tree.

    OmnigraphError
      BadRequest
        ParseError  CatalogError  TypecheckError  EvaluationError     (LanguageError: they know their place in a text)
        SchemaContractError  SchemaChangeRefused  ValidationError  LoadRejected  ResourceLimit
        ChangeCursorRejected  BlobRangeNotSatisfiable  ExternalBlobDenied
      NotFound: BranchNotFound  CommitNotFound  EntityNotFound  GraphNotFound
      AlreadyExists: AlreadyInitialized
      Denied
      Conflict: KeyConflict  ExpectedVersionMismatch  ReadSetChanged  ManifestContention
                PreconditionFailed  MergeConflicts  CommitHasNoParent  ChangeSchemaBoundary  SchemaChanged
      RecoveryRequired  CommitStateUnknown  DriftNeedsRepair
      FormatTooNew  FormatTooOld  StorageError  ExternalBlobSource  EmbeddingError
      HistoricalVersionReclaimed  ChangeFeedGap  SparkFailed  DeadlineExceeded  Cancelled

An error carries its data as attributes and one message that says what to do. Errors survive pickling,
because executors and child processes raise them too. Passwords and tokens inside URLs are taken out of every message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: The user and password of a URL. A password with an unescaped slash is one too, unless what precedes the slash is a port.
_USERINFO = re.compile(
    r"""://(?:[^\s/?#'"`<>]{0,1000}@|[^\s/?#'"`<>@]{0,500}:(?![0-9]*(?:[/?#'"`<>\s]|$))[^\s'"`<>]{0,500}@)"""
)
#: A parameter of a URL whose name says that its value is secret, such as api_key, X-Amz-Signature or access_token.
_SECRET_PARAMETER = re.compile(
    r"""([?&#;][a-z0-9_.-]{0,60}(?:key|token|secret|password|passwd|pwd|sig|credential|auth)[a-z0-9_.-]{0,60}=)"""
    r"""[^\s&#;'"`<>]+""",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """A text for messages, with `***` in place of every user, password and token inside a URL."""
    if "://" not in text:
        return text
    return _SECRET_PARAMETER.sub(r"\1***", _USERINFO.sub("://***@", text))


def _redacted_data(value: Any) -> Any:
    """Plain data with every text in it redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {name: _redacted_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_redacted_data, value))
    return value


class OmnigraphError(Exception):
    """Base of every error raised by OmniGraph."""

    def __init__(self, message: str) -> None:
        message = redacted(message)
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data: its class, its message and its attributes."""
        told: dict[str, Any] = _redacted_data(vars(self))
        return {"error_type": type(self).__name__, **told}

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), dict(vars(self)))


def _revive(cls: type[OmnigraphError], attributes: dict[str, Any]) -> OmnigraphError:
    error = cls.__new__(cls, attributes.get("message", ""))
    error.__dict__.update(attributes)
    return error


# --- bad requests -----------------------------------------------------------------------------------------------------


class BadRequest(OmnigraphError):
    """The request can not be carried out as written; repeating it will not help."""


class LanguageError(BadRequest):
    """A problem at a known place of a `.pg` or `.gq` text. `start` and `end` are byte offsets, line and column count from 1.

    `message` is one line; the text of the exception also shows the place, the source line and a caret.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        start: int | None = None,
        end: int | None = None,
        source_line: str | None = None,
        expected: Sequence[str] = (),
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.start = start
        self.end = end
        self.source_line = source_line
        self.expected = tuple(expected)
        self.suggestion = suggestion

    def __str__(self) -> str:
        return self.rendered()

    def rendered(self, highlight: Callable[[str], str] = str) -> str:
        """The message with its place, the source line and a caret below the spot; `highlight` colours the line."""
        if self.line is None or self.column is None:
            return self.message
        lines = [f"{self.file or '<text>'}:{self.line}:{self.column}: {self.message}"]
        if self.source_line is not None:
            shown, padding = _excerpt(redacted(self.source_line), self.column)
            gutter = f"  {self.line} | "
            lines += [f"{gutter}{highlight(shown)}", f"{'| ':>{len(gutter)}}{padding}^"]
        return "\n".join(lines)


LONGEST_SHOWN_LINE = 160
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def _excerpt(source_line: str, column: int) -> tuple[str, str]:
    """The source line, cut around the column when it is very long, and the padding before the caret below it."""
    first = max(0, column - 1 - LONGEST_SHOWN_LINE // 2)
    # Control characters of a source must not reach the terminal.
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", source_line[first : first + LONGEST_SHOWN_LINE])
    caret_at = column - 1 - first
    # Tabs stay tabs below the line, so that the caret stands under its character.
    padding = "".join("\t" if char == "\t" else " " for char in shown[:caret_at]).ljust(caret_at)
    return shown, padding


class ParseError(LanguageError):
    """The text is not a valid schema or query; `semantic` when the grammar fits but a rule of the language does not."""

    semantic: bool

    def __init__(self, message: str, *, semantic: bool = False, **place: Any) -> None:
        super().__init__(message, **place)
        self.semantic = semantic


class CatalogError(LanguageError):
    """The declarations are fine one by one but do not fit together."""


class TypecheckError(LanguageError):
    """A query does not fit the schema; `code` is T1 … or None for the uncoded ones."""

    code: str | None

    def __init__(self, message: str, *, code: str | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.code = code


class EvaluationError(LanguageError):
    """A part of a query has no value: division by zero, a number beyond its range, a text that is no number, an unknown alias."""


class SchemaContractError(BadRequest):
    """The schema files of a graph disagree with each other or with the manifest; `reason` names which way.

    `types`: the type keys that differ, where the disagreement is about the identities of types.
    """

    def __init__(self, message: str, *, reason: str, path: str | None = None, types: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.path = path
        self.types = list(types)


class SchemaChangeRefused(BadRequest):
    """A wanted schema can not be applied; `refusals`: what stands in the way, with entity, reason and code."""

    def __init__(self, message: str, *, refusals: Sequence[dict[str, Any]]) -> None:
        super().__init__(message)
        self.refusals = list(refusals)


class ValidationError(BadRequest):
    """A row breaks a rule of the schema."""

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        type_key: str,
        property: str | None = None,
        entity_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.type_key = type_key
        self.property = property
        self.entity_id = entity_id


class LoadRejected(BadRequest):
    """A load failed its checks: up to a limit of (file, line, message), and the total."""

    def __init__(self, message: str, *, errors: Sequence[tuple[str, int, str]], total: int) -> None:
        super().__init__(message)
        self.errors = [(file, line, redacted(problem)) for file, line, problem in errors]
        self.total = total


class ResourceLimit(BadRequest):
    """A request asks for more than a limit allows."""

    def __init__(self, message: str, *, resource: str, limit: int, actual: int) -> None:
        super().__init__(message)
        self.resource = resource
        self.limit = limit
        self.actual = actual


class ChangeCursorRejected(BadRequest):
    """A change cursor or page token does not belong to this request."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class BlobRangeNotSatisfiable(BadRequest):
    """A blob range lies outside the value."""

    def __init__(self, message: str, *, start: int, end: int, length: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.length = length


class ExternalBlobDenied(BadRequest):
    """An external blob URI is not allowed by the policy of this graph handle."""

    def __init__(self, message: str, *, uri: str) -> None:
        super().__init__(message)
        self.uri = uri


# --- existence --------------------------------------------------------------------------------------------------------


class NotFound(OmnigraphError):
    """Something that was named does not exist."""


class GraphNotFound(NotFound):
    """There is no graph at this URI."""

    def __init__(self, message: str, *, uri: str) -> None:
        super().__init__(message)
        self.uri = uri


class BranchNotFound(NotFound):
    """There is no branch of this name."""

    def __init__(self, message: str, *, branch: str) -> None:
        super().__init__(message)
        self.branch = branch


class CommitNotFound(NotFound):
    """There is no such commit, snapshot or manifest version."""

    def __init__(self, message: str, *, commit: str) -> None:
        super().__init__(message)
        self.commit = commit


class EntityNotFound(NotFound):
    """There is no entity with this id."""

    def __init__(self, message: str, *, type_key: str, entity_id: str) -> None:
        super().__init__(message)
        self.type_key = type_key
        self.entity_id = entity_id


class AlreadyExists(OmnigraphError):
    """Something that was to be created exists already."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class AlreadyInitialized(AlreadyExists):
    """A graph, or a part of one, exists at this URI."""


class Denied(OmnigraphError):
    """The policy does not allow this action."""

    def __init__(self, message: str, *, action: str, actor: str | None) -> None:
        super().__init__(message)
        self.action = action
        self.actor = actor


class Unauthorized(OmnigraphError):
    """A server does not know the bearer token of a request, or the request has none."""


class TooManyRequests(OmnigraphError):
    """An actor has too many requests under way at a server. `seconds`: when to try again."""

    def __init__(self, message: str, *, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class Unavailable(OmnigraphError):
    """A server can not be reached, or can not do the work now. `seconds`: when to try again."""

    def __init__(self, message: str, *, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


# --- conflicts --------------------------------------------------------------------------------------------------------


class Conflict(OmnigraphError):
    """The request was fine, but the state of the graph has moved or does not allow it."""


class KeyConflict(Conflict):
    """A strict insert met an id that exists."""

    def __init__(
        self, message: str, *, type_key: str, entity_id: str, places: Sequence[tuple[str, int, str]] = ()
    ) -> None:
        super().__init__(message)
        self.type_key = type_key
        self.entity_id = entity_id
        #: For a load: the file, the line and the reason for each of the first rows in conflict.
        self.places = tuple(places)


class ExpectedVersionMismatch(Conflict):
    """A table is no longer at the version this write was prepared against."""

    def __init__(self, message: str, *, table_key: str, expected: int | None, actual: int | None) -> None:
        super().__init__(message)
        self.table_key = table_key
        self.expected = expected
        self.actual = actual


class ReadSetChanged(Conflict):
    """A check that held at the base of this write no longer holds."""

    def __init__(self, message: str, *, table_key: str) -> None:
        super().__init__(message)
        self.table_key = table_key


class SchemaChanged(Conflict):
    """The accepted schema is no longer the one a write was prepared under; nothing was written."""

    def __init__(self, message: str, *, expected: str | None, actual: str | None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class ManifestContention(Conflict):
    """Too many writers published at once; nothing was written, try again."""


class PreconditionFailed(Conflict):
    """A conditional write expected another head."""

    def __init__(self, message: str, *, branch: str, expected: str, actual: str | None) -> None:
        super().__init__(message)
        self.branch = branch
        self.expected = expected
        self.actual = actual


class MergeConflicts(Conflict):
    """A merge met entities that can not be combined; nothing was published."""

    def __init__(self, message: str, *, conflicts: Sequence[Any]) -> None:
        super().__init__(message)
        self.conflicts = list(conflicts)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "conflicts": [conflict.to_dict() for conflict in self.conflicts]}


class CommitHasNoParent(Conflict):
    """The first commit of a graph has nothing to be compared with."""

    def __init__(self, message: str, *, commit: str) -> None:
        super().__init__(message)
        self.commit = commit


class ChangeSchemaBoundary(Conflict):
    """The schema changed between the two sides of a comparison."""

    def __init__(self, message: str, *, commit: str, type_name: str | None) -> None:
        super().__init__(message)
        self.commit = commit
        self.type_name = type_name


# --- durability and storage -------------------------------------------------------------------------------------------


class RecoveryRequired(OmnigraphError):
    """A write is half done and will be finished or undone as a whole by recovery."""

    def __init__(self, message: str, *, operation_id: str) -> None:
        super().__init__(message)
        self.operation_id = operation_id


class CommitStateUnknown(OmnigraphError):
    """The store failed while the commit was being made; look the commit up before repeating the write."""

    def __init__(self, message: str, *, commit_id: str) -> None:
        super().__init__(message)
        self.commit_id = commit_id


class DriftNeedsRepair(OmnigraphError):
    """A table's head differs from the manifest and no recovery record explains it."""

    def __init__(self, message: str, *, table_key: str) -> None:
        super().__init__(message)
        self.table_key = table_key


class FormatTooNew(OmnigraphError):
    """The graph was written by a newer OmniGraph."""

    def __init__(self, message: str, *, found: int, supported: int) -> None:
        super().__init__(message)
        self.found = found
        self.supported = supported


class FormatTooOld(OmnigraphError):
    """The graph was written by an OmniGraph that is too old to be stepped forward."""

    def __init__(self, message: str, *, found: int, supported: int) -> None:
        super().__init__(message)
        self.found = found
        self.supported = supported


class StorageError(OmnigraphError):
    """The store failed. `kind`: transient, configuration, not_found, precondition, permanent or unknown."""

    def __init__(self, message: str, *, kind: str, path: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.path = path


class ExternalBlobSource(OmnigraphError):
    """An external blob could not be read."""

    def __init__(self, message: str, *, uri: str, reason: str) -> None:
        super().__init__(message)
        self.uri = uri
        self.reason = reason


class EmbeddingError(OmnigraphError):
    """An embedding provider failed or is not configured."""

    def __init__(self, message: str, *, provider: str) -> None:
        super().__init__(message)
        self.provider = provider


class HistoricalVersionReclaimed(OmnigraphError):
    """An old version that was asked for has been cleaned up."""

    def __init__(self, message: str, *, version: str) -> None:
        super().__init__(message)
        self.version = version


class ChangeFeedGap(OmnigraphError):
    """Cleanup has removed history that a change cursor still needs."""

    def __init__(self, message: str, *, cursor: str | None, first_unreadable_commit: str) -> None:
        super().__init__(message)
        self.cursor = cursor
        self.first_unreadable_commit = first_unreadable_commit


class SparkFailed(OmnigraphError):
    """Spark could not be started or lost a job. `kind`: java, start, connect, stopped, worker, lost, task, results or unseen."""

    def __init__(self, message: str, *, kind: str, detail: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.detail = None if detail is None else redacted(detail)


class DeadlineExceeded(OmnigraphError):
    """A query did not end within its time. `seconds`: how long it was allowed to take."""

    def __init__(self, message: str, *, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class Cancelled(OmnigraphError):
    """A query was stopped from another thread, or a job by who had begun it."""
