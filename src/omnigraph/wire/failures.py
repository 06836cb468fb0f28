"""Errors over HTTP: the status and JSON body of an error, and the error for a status and body.
A body is `{error, code?, …details}`; unknown details are absent. Clients that request the library's form (`LIBRARY_JSON`) also
get the error's class and attributes, from which `rebuild_error` makes an equal error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omnigraph import errors
from omnigraph.errors import KeyConflict, LoadRejected, OmnigraphError
from omnigraph.merge.result import Conflict as MergeConflict

#: The media type with which a client requests the library's form of results and errors in addition.
LIBRARY_JSON = "application/vnd.omnigraph+json"
#: The field with the library's form.
LIBRARY = "library"

#: The code for a status; other statuses have no code.
CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "bad_request",
    409: "conflict",
    412: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    429: "too_many_requests",
    500: "internal",
}

#: The message to clients for an unexpected error, whose own message may contain paths or values.
INTERNAL_MESSAGE = "internal error; the log of the server has the details under this request id"

#: Attributes with paths of the server, which clients must not see.
_PRIVATE_ATTRIBUTES = frozenset({"path", "uri", "recorded", "actual_root", "file"})

_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Refused(errors.BadRequest):
    """A request that is refused with an HTTP-specific status. `headers`: headers of the answer."""

    def __init__(self, message: str, *, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


#: The first matching class decides the status of an error.
_STATUSES: tuple[tuple[type[OmnigraphError], int], ...] = (
    (errors.Unauthorized, 401),
    (errors.Denied, 403),
    (errors.NotFound, 404),
    (errors.PreconditionFailed, 412),
    (errors.AlreadyExists, 409),
    (errors.Conflict, 409),
    (errors.ChangeFeedGap, 410),
    (errors.HistoricalVersionReclaimed, 410),
    (errors.ResourceLimit, 413),
    (errors.BlobRangeNotSatisfiable, 416),
    (errors.SchemaContractError, 500),
    (errors.BadRequest, 400),
    (errors.ExternalBlobSource, 424),
    (errors.TooManyRequests, 429),
    (errors.RecoveryRequired, 503),
    (errors.CommitStateUnknown, 503),
    (errors.Unavailable, 503),
    (errors.EmbeddingError, 503),
    (errors.DeadlineExceeded, 504),
)


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, errors.StorageError):
        return 503 if error.kind == "transient" else 500
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def error_body(error: Exception, status: int, *, whole: bool = False) -> dict[str, Any]:
    """The JSON body of an error; with `whole` also the library's form of it."""
    if not isinstance(error, OmnigraphError):
        return {"error": INTERNAL_MESSAGE, "code": CODES[500]}
    body: dict[str, Any] = {"error": error.message}
    # By contract, a lost conditional write has no code, but a failed If-Match of a blob has one.
    if status in CODES and not isinstance(error, errors.PreconditionFailed):
        body["code"] = CODES[status]
    body |= details_of(error)
    if whole:
        body[LIBRARY] = {name: value for name, value in error.to_dict().items() if name not in _PRIVATE_ATTRIBUTES}
    return body


def details_of(error: OmnigraphError) -> dict[str, Any]:
    """The detail fields of an error, by its class."""
    match error:
        case errors.MergeConflicts():
            return {"merge_conflicts": [merge_conflict(conflict) for conflict in error.conflicts]}
        case errors.KeyConflict():
            return {"key_conflict": _typed(error.type_key) | {"entity_id": error.entity_id}}
        case errors.ExpectedVersionMismatch():
            found = {"expected": error.expected, "actual": error.actual}
            published = {f"{side}_published_dataset_version": version for side, version in found.items()}
            return {
                "manifest_conflict": _known({"table_key": error.table_key} | found),
                "published_dataset_version_conflict": _known(_typed(error.table_key) | published),
            }
        case errors.ReadSetChanged():
            return {"read_set_conflict": {"member": error.table_key}}
        case errors.CommitHasNoParent():
            return {"change_diff_refusal": {"reason": "parentless_commit", "graph_commit_id": error.commit}}
        case errors.ChangeSchemaBoundary():
            refusal = {"reason": "schema_boundary", "graph_commit_id": error.commit, "type_name": error.type_name}
            return {"change_diff_refusal": _known(refusal)}
        case errors.ChangeFeedGap():
            gap = {"cursor": error.cursor, "first_unreadable_commit_id": error.first_unreadable_commit}
            return {"change_feed_gap": _known(gap)}
        case errors.PreconditionFailed():
            return {"precondition_failure": _known({"expected": error.expected, "actual": error.actual})}
        case errors.ResourceLimit():
            limit = {"resource": error.resource, "limit": error.limit, "actual": error.actual}
            return {"resource_limit": limit}
        case errors.BlobRangeNotSatisfiable():
            return {"blob_range": {"start": error.start, "end": error.end, "length": error.length}}
        case errors.ExternalBlobSource():
            return {"external_blob_source": {"uri": errors.redacted(error.uri), "reason": error.reason}}
        case errors.RecoveryRequired():
            return {"recovery_required": {"operation_id": error.operation_id}}
        case errors.CommitStateUnknown():
            return {"commit_state_unknown": {"graph_commit_id": error.commit_id}}
        case errors.DeadlineExceeded():
            return {"deadline_exceeded": {"seconds": error.seconds}}
    return {}


def merge_conflict(conflict: MergeConflict) -> dict[str, Any]:
    """The JSON form of a merge conflict, with its kind in snake_case."""
    kind = _BOUNDARY.sub("_", conflict.kind).lower()
    told = {"entity_kind": conflict.entity_kind, "type_name": conflict.type_name, "entity_id": conflict.entity_id}
    return _known(told) | {"kind": kind, "message": conflict.message}


def _typed(type_key: str) -> dict[str, str]:
    kind, _, name = type_key.partition(":")
    return {"entity_kind": kind, "type_name": name}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


# --- the way back -----------------------------------------------------------------------------------------------------

#: The error class for a status when the body does not name one.
_BY_STATUS: dict[int, type[OmnigraphError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    404: errors.NotFound,
    405: errors.BadRequest,
    408: errors.BadRequest,
    409: errors.Conflict,
    415: errors.BadRequest,
}


def rebuild_error(status: int, body: Mapping[str, Any]) -> OmnigraphError:
    """The error of a server's answer: with the class and attributes in the body if present, else by status."""
    message = str(body.get("error", f"the server answered with status {status}"))
    told = body.get(LIBRARY)
    if isinstance(told, Mapping):
        cls = getattr(errors, str(told.get("error_type")), None)
        if isinstance(cls, type) and issubclass(cls, OmnigraphError):
            return _revived(cls, told)
    return _from_details(body, message) or _by_status(status, message)


def _revived(cls: type[OmnigraphError], told: Mapping[str, Any]) -> OmnigraphError:
    attributes: dict[str, Any] = dict.fromkeys(_PRIVATE_ATTRIBUTES & _attribute_names(cls))
    attributes |= {name: value for name, value in told.items() if name != "error_type"}
    if issubclass(cls, errors.MergeConflicts):
        attributes["conflicts"] = [conflict_of(conflict) for conflict in attributes["conflicts"]]
    if issubclass(cls, errors.LoadRejected):
        attributes["errors"] = [tuple(problem) for problem in attributes["errors"]]
    if issubclass(cls, errors.KeyConflict):
        attributes["places"] = tuple(tuple(place) for place in attributes["places"])
    if issubclass(cls, errors.LanguageError):
        attributes["expected"] = tuple(attributes["expected"])
    return errors._revive(cls, attributes)


def _attribute_names(cls: type[OmnigraphError]) -> set[str]:
    """The parameter (and local) names of the constructors of an error class and its base classes."""
    made = [base.__init__ for base in cls.__mro__ if "__init__" in vars(base) and issubclass(base, OmnigraphError)]
    return {name for function in made for name in function.__code__.co_varnames}


def conflict_of(told: Mapping[str, Any]) -> MergeConflict:
    """The merge conflict of the library's form."""
    names = ("kind", "type_key", "entity_id", "message", "base", "ours", "theirs")
    return MergeConflict(**{name: told[name] for name in names if name in told})


def _from_details(body: Mapping[str, Any], message: str) -> OmnigraphError | None:
    """The error for a detail field of the contract; None when the body has none."""
    if (limit := body.get("resource_limit")) is not None:
        return errors.ResourceLimit(message, **limit)
    if (failure := body.get("precondition_failure")) is not None:
        return errors.PreconditionFailed(message, branch="", expected=failure["expected"], actual=failure.get("actual"))
    if (found := body.get("manifest_conflict")) is not None:
        versions = {side: found.get(side) for side in ("expected", "actual")}
        return errors.ExpectedVersionMismatch(message, table_key=found["table_key"], **versions)
    if (found := body.get("key_conflict")) is not None:
        key = f"{found['entity_kind']}:{found['type_name']}"
        return errors.KeyConflict(message, type_key=key, entity_id=found.get("entity_id", ""))
    if (found := body.get("read_set_conflict")) is not None:
        return errors.ReadSetChanged(message, table_key=found["member"])
    if (gap := body.get("change_feed_gap")) is not None:
        return errors.ChangeFeedGap(
            message, cursor=gap.get("cursor"), first_unreadable_commit=gap["first_unreadable_commit_id"]
        )
    if (needed := body.get("recovery_required")) is not None:
        return errors.RecoveryRequired(message, operation_id=needed["operation_id"])
    return None


def _by_status(status: int, message: str) -> OmnigraphError:
    if status == 403:
        return errors.Denied(message, action="", actor=None)
    if status in (429, 503):
        kind = errors.TooManyRequests if status == 429 else errors.Unavailable
        return kind(message, seconds=1)
    return _BY_STATUS.get(status, OmnigraphError)(message)


#: The library's file name for rows given in memory.
IN_MEMORY = "<data>"


@contextmanager
def told_by_record(unit: str, name: str) -> Iterator[None]:
    """Rewrite errors in the block so that they name the line or record of the body instead of the temporary file."""
    place = re.compile(re.escape(name) + r":([0-9]+):")
    try:
        yield
    except (LoadRejected, KeyConflict) as error:
        error.message = place.sub(rf"{unit} \1:", error.message).replace(f"{name}: ", "")
        if isinstance(error, KeyConflict):
            error.places = tuple(("body", line, message) for _, line, message in error.places)
        else:
            error.errors = [("body", line, message) for _, line, message in error.errors]
        raise
    except OmnigraphError as error:
        error.message = error.message.replace(name, "the body")
        raise
