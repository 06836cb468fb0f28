"""Turns the errors of obstore and of the operating system into StorageErrors.

This is the only place that reads the text of an obstore error. `tests/substrate/test_obstore.py` pins the texts.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from obstore import exceptions as obstore_errors

from omnigraph.errors import StorageError


@dataclass(frozen=True)
class Failure:
    """How an error is reported: its kind, what happened, and advice."""

    kind: str
    what: str
    advice: str


_ACCESS = "give this user read and write access to the graph"
_RETRY = "try again"
_LOOK = "it may have happened, look before repeating it"

_BY_ERRNO = {
    errno.ENOENT: Failure("not_found", "it does not exist", "check the path"),
    errno.EEXIST: Failure("precondition", "it exists already", "read it and decide again"),
    errno.EACCES: Failure("configuration", "permission denied", _ACCESS),
    errno.EPERM: Failure("configuration", "operation not permitted", _ACCESS),
    errno.EROFS: Failure(
        "configuration", "the file system is read-only", "mount it read-write or open the graph read-only"
    ),
    errno.ENOSPC: Failure("permanent", "the disk is full", "free some space"),
    errno.EDQUOT: Failure("permanent", "the disk quota is used up", "free some space"),
    errno.ENOTDIR: Failure("configuration", "a file stands where a folder is needed", "move the file away"),
    errno.EISDIR: Failure("configuration", "a folder stands where a file is needed", "move the folder away"),
    errno.ENAMETOOLONG: Failure("permanent", "the name is too long", "use a shorter one"),
    errno.ENOTSUP: Failure("configuration", "the file system does not support it", "use another file system"),
    errno.ENOSYS: Failure("configuration", "the file system does not support it", "use another file system"),
    errno.EMFILE: Failure("transient", "too many open files", "raise the limit of open files"),
    errno.ENFILE: Failure("transient", "too many open files", "raise the limit of open files"),
    errno.ENOLCK: Failure("transient", "no locks available", _RETRY),
    errno.ENOTEMPTY: Failure("transient", "something is being written there", _RETRY),
    errno.EBUSY: Failure("transient", "it is busy", _RETRY),
    errno.EAGAIN: Failure("transient", "it is busy", _RETRY),
}

_CREDENTIALS = "check the credentials and the policy of the bucket"
_BY_TYPE: tuple[tuple[type[Exception], Failure], ...] = (
    (FileNotFoundError, _BY_ERRNO[errno.ENOENT]),
    (obstore_errors.AlreadyExistsError, _BY_ERRNO[errno.EEXIST]),
    (
        obstore_errors.PreconditionError,
        Failure("precondition", "it has changed or is gone", "read it and decide again"),
    ),
    (obstore_errors.PermissionDeniedError, Failure("configuration", "access denied", _CREDENTIALS)),
    (obstore_errors.UnauthenticatedError, Failure("configuration", "not signed in", _CREDENTIALS)),
    (obstore_errors.NotSupportedError, Failure("configuration", "the store does not support it", "use another store")),
    (obstore_errors.UnknownConfigurationKeyError, Failure("configuration", "unknown storage option", "remove it")),
    (ValueError, Failure("permanent", "the name can not be used", "use another one")),
)

_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_TRANSPORT = re.compile(r"HttpError \{\s*kind: (\w+)")
_RETRIED = re.compile(r"after [1-9]\d* retries")


def from_obstore(error: Exception, *, action: str, location: str, writes: bool) -> StorageError:
    """An error of obstore as a StorageError. `action`: the verb of the message; `writes`: it may have had an effect."""
    return _told(_classified(error, str(error), writes), action, location)


def from_os(error: OSError, *, action: str, location: str, writes: bool) -> StorageError:
    """An error of the operating system as a StorageError."""
    return _told(_by_errno(error.errno or 0, writes), action, location)


def _told(failure: Failure, action: str, location: str) -> StorageError:
    return StorageError(
        f"can not {action} {location}: {failure.what}; {failure.advice}", kind=failure.kind, path=location
    )


def _classified(error: Exception, text: str, writes: bool) -> Failure:
    """Classify an error by its type where that is enough, else by its text: an errno, a status, a transport failure."""
    status = _matched(_STATUS, text)
    if "<Code>NoSuchBucket</Code>" in text:
        return Failure("configuration", "the bucket does not exist", "create it or correct the URI")
    if status == "409":  # S3 refuses one of two concurrent conditional puts; neither answer is final
        return Failure("transient", "another request for it is under way", _RETRY)
    for cls, failure in _BY_TYPE:
        if isinstance(error, cls):
            return failure
    number = _matched(_OS_ERROR, text)
    if number:
        return _by_errno(int(number), writes)
    retried = bool(_RETRIED.search(text))
    if status:
        return _by_status(int(status), writes, retried)
    transport = _matched(_TRANSPORT, text)
    if transport == "Connect":
        return _interrupted("the store can not be reached", may_have_happened=writes and retried)
    if "BareRedirect" in text:
        return Failure("configuration", "the store sent us elsewhere", "correct the region or the endpoint")
    if "BadScheme" in text:
        return Failure(
            "configuration", "the endpoint is not https", "set the storage option allow_http=true to allow it"
        )
    if transport:
        return _interrupted("the connection failed", may_have_happened=writes)
    return _interrupted(text.partition("\n")[0], may_have_happened=True) if writes else _odd(text)


def _by_errno(number: int, writes: bool) -> Failure:
    failure = _BY_ERRNO.get(number)
    if number == errno.ENOTDIR and not writes:  # in an object store nothing can lie below an object
        return _BY_ERRNO[errno.ENOENT]
    if failure is not None:
        return failure
    what = os.strerror(number)
    return _interrupted(what, may_have_happened=True) if writes else _odd(what)


def _by_status(status: int, writes: bool, retried: bool) -> Failure:
    if status in (401, 403):
        return Failure("configuration", "access denied", _CREDENTIALS)
    if status in (429, 503):  # rejected before any effect, unless an earlier try may have had one
        return _interrupted("the store is overloaded", may_have_happened=writes and retried)
    if status >= 500:
        return _interrupted(f"the store failed with status {status}", may_have_happened=writes)
    return Failure("permanent", f"the store refused it with status {status}", "check the URI and the storage options")


def _interrupted(what: str, *, may_have_happened: bool) -> Failure:
    return Failure("unknown", what, _LOOK) if may_have_happened else Failure("transient", what, _RETRY)


def _odd(text: str) -> Failure:
    return Failure("permanent", text.partition("\n")[0], "repeating it will not help")


def _matched(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None
