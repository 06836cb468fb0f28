"""Translates Lance's exceptions into typed errors: the only module that matches their texts.

Lance raises `CommitConflictError` from `LanceDataset.commit` and otherwise plain OSError, ValueError, RuntimeError or
Arrow errors, told apart only by their text. `tests/substrate/test_lance_errors.py` pins every text matched here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from lance.commit import CommitConflictError

from omnigraph.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    OmnigraphError,
    StorageError,
    ValidationError,
)


class Missing(StorageError):
    """A dataset, a branch or a version that does not exist."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message, kind="not_found", path=path)


class Corrupt(StorageError):
    """Data that exists but can not be read."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message, kind="permanent", path=path)


class CommitUnknown(StorageError):
    """The store failed during a commit, and it is not known whether the commit happened."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message, kind="unknown", path=path)


class StaleCommit(Conflict):
    """Another commit was first. `retryable`: staging again on the new head can succeed."""

    def __init__(self, message: str, *, path: str, retryable: bool) -> None:
        super().__init__(message)
        self.path = path
        self.retryable = retryable


class BranchInUse(Conflict):
    """A Lance branch can not be deleted because other branches start from it."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class IndexNotReady(BadRequest):
    """There are too few vectors to train this index."""


# The exceptions of Lance and Arrow. Any other is a bug of ours and passes through, except panics: see `is_panic`.
LANCE_ERRORS = (OSError, ValueError, RuntimeError, pa.ArrowException)


def is_panic(error: BaseException) -> bool:
    """Whether an exception is a panic inside Lance: not an `Exception`, and of a class that can not be imported."""
    return type(error).__module__ == "pyo3_runtime" and type(error).__name__ == "PanicException"


Meaning = Callable[[str, str], OmnigraphError]


def _storage(kind: str, advice: str) -> Meaning:
    return lambda message, path: StorageError(f"{message}; {advice}", kind=kind, path=path)


def _corrupt(message: str, path: str) -> OmnigraphError:
    return Corrupt(f"{message}; restore the file or run `omnigraph repair`", path=path)


def _gone(message: str, path: str) -> OmnigraphError:
    # Another process may have deleted a branch, or cleaned up, while Lance was reading: then a second try works.
    return Corrupt(f"{message}; try again, and if it fails again run `omnigraph repair`", path=path)


def _duplicate(message: str, path: str) -> OmnigraphError:
    return ValidationError(f"{message}; give each id once", kind="duplicate_id", type_key=path, property="id")


# Order matters: the first pattern that matches decides. Paths may hold any character, so `.+` stands for them.
_MEANINGS: tuple[tuple[str, Meaning], ...] = (
    (r"^Retryable commit conflict|Too many concurrent writers", lambda m, p: StaleCommit(m, path=p, retryable=True)),
    (r"^Incompatible transaction", lambda m, p: StaleCommit(m, path=p, retryable=False)),
    # The error of two writers that restore the same fragment concurrently.
    (r"would produce two fragments with id", lambda m, p: StaleCommit(m, path=p, retryable=False)),
    (r"^Dataset already exists", lambda m, p: AlreadyExists(m, name=p)),
    (r"^Ref conflict error: [Bb]ranch .+ already exists", lambda m, p: AlreadyExists(m, name=p)),
    (r"Clone operation should not enter build_manifest", lambda m, p: AlreadyExists(m, name=p)),
    (r"^Ref conflict error: Branch .+ is referenced by", lambda m, p: BranchInUse(m, path=p)),
    (r"^Ref not found error", lambda m, p: Missing(m, path=p)),
    # The last pattern: the version was removed between finding it and reading it.
    (
        r"^Dataset at path .+ was not found|^Not found: .+/_versions\b|^LanceError\(IO\): .*Not found: .+/_versions/",
        lambda m, p: Missing(m, path=p),
    ),
    (r"Ambiguous merge inserts are prohibited", _duplicate),
    (r"KMeans cannot train|Not enough rows to train", lambda m, _: IndexNotReady(m)),
    (r"does not appear to be a Lance file", _corrupt),
    # Lance checks the sizes of blob files it has just written, and of those it reads.
    (
        r"exceeds blob object size",
        _storage("permanent", "a blob file ends early: if the disk was full, free some space and try again"),
    ),
    (
        r"Invalid user input|^Ref is invalid|Append with different schema|No match for FieldRef",
        lambda m, _: BadRequest(m),
    ),
    (
        r"Permission denied|401 Unauthorized|403 Forbidden|NoSuchBucket|Not a directory|File exists",
        _storage("configuration", "check the path and the credentials"),
    ),
    (r"No space left on device", _storage("permanent", "free some space and try again")),
    (r"error sending request|non-2xx status code: (5\d\d|429)", _storage("transient", "try again")),
    (r"failed to decode|does not have sufficient data|file size is too small|Invalid range", _corrupt),
    (r"does not contain correct footer|invalid seek", _corrupt),
    (r"Not found: |^Version not found error", _gone),
)


def translate(error: BaseException, *, path: str, action: str) -> OmnigraphError:
    """The typed error for an exception of Lance while doing `action` on `path`."""
    if isinstance(error, OmnigraphError):
        return error
    message = f"can not {action} {path}: {_reason(error)}"
    if is_panic(error):
        return Corrupt(
            f"{message}; a file is damaged in a way that Lance does not expect, run `omnigraph verify`", path=path
        )
    if isinstance(error, CommitConflictError):
        return StaleCommit(message, path=path, retryable=error.retryable)
    text = str(error)
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            return meaning(message, path)
    return StorageError(message, kind="permanent", path=path)


@contextmanager
def translated(path: str, action: str) -> Iterator[None]:
    """Raise typed errors for Lance's exceptions inside the block."""
    try:
        with translated_panics(path, action):
            yield
    except LANCE_ERRORS as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        raise translate(error, path=path, action=action) from error


@contextmanager
def translated_panics(path: str, action: str) -> Iterator[None]:
    """Raise `Corrupt` for a panic of Lance inside the block; other errors pass unchanged."""
    try:
        yield
    except BaseException as error:
        if is_panic(error):
            raise translate(error, path=path, action=action) from error
        raise


def _is_interrupt(error: BaseException) -> bool:
    """Whether this is a Ctrl-C: Lance handles signals during long calls, and Arrow wraps the interrupt in its own error."""
    return isinstance(error, pa.ArrowException) and "KeyboardInterrupt" in str(error)


def _reason(error: BaseException) -> str:
    """The first line of Lance's text, without positions in its source code."""
    lines = str(error).splitlines() or [type(error).__name__]
    line = re.sub(r",? ?(location: )?/\S+\.rs:\d+:\d+", "", lines[0])
    return line if len(line) <= 400 else line[:399] + "…"
