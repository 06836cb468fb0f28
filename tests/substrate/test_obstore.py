"""What we rely on in obstore; goes red when an upgrade changes it.

Relied on by `storage/object_errors.py` (types and texts of errors), `storage/obstore_objects.py` (conditions and
listings), `storage/local.py` (atomic writes on disk) and `storage/root.py` (names that disk can not hold).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pytest
from obstore import exceptions
from obstore.store import LocalStore, MemoryStore, S3Store

from tests.s3 import S3Server
from tests.storage.bad_s3 import HANG_UP, Answer, BadS3, bad_s3

if TYPE_CHECKING:
    from obstore import PutMode

Call = Callable[[S3Store], object]


def s3(options: dict[str, str], bucket: str = "bucket", *, retries: int = 0, timeout: str = "20s") -> S3Store:
    return S3Store(
        bucket,
        config=options,  # type: ignore[arg-type]  # a TypedDict of all names that S3 knows
        client_options={"timeout": timeout},
        retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=30)},
    )


@pytest.fixture
def bad() -> Iterator[BadS3]:
    with bad_s3() as script:
        yield script


# --- the disk ---------------------------------------------------------------------------------------------------------


def test_a_file_can_not_be_swapped(tmp_path: Path) -> None:
    """Why storage/local.py compares and renames under a lock of its own."""
    store = LocalStore(tmp_path)
    tag = obstore.put(store, "a", b"1")["e_tag"]
    assert tag is not None
    with pytest.raises(NotImplementedError):
        obstore.put(store, "a", b"2", mode={"e_tag": tag})


def test_a_store_without_a_prefix_reaches_every_absolute_path(tmp_path: Path) -> None:
    obstore.put(LocalStore(), f"{str(tmp_path).strip('/')}/a/b", b"1")
    assert (tmp_path / "a" / "b").read_bytes() == b"1"


def test_half_written_files_are_named_with_a_number_and_hidden(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "a#1").write_bytes(b"")
    (tmp_path / "a#b").write_bytes(b"")
    assert [meta["path"] for batch in obstore.list(store) for meta in batch] == ["a#b"]
    with pytest.raises(exceptions.GenericError, match="trailing"):
        obstore.put(store, "a#1", b"")


@pytest.mark.parametrize(
    ("prepare", "call", "number"),
    [
        ("file", lambda store: obstore.put(store, "a/b", b""), 20),
        ("file", lambda store: obstore.get(store, "a/b"), 20),
        ("file", lambda store: list(obstore.list(store, "a/b")), 20),
        ("folder", lambda store: obstore.put(store, "a", b""), 21),
        ("folder", lambda store: obstore.delete(store, "a"), 21),
    ],
)
def test_an_error_of_the_system_carries_its_number(
    tmp_path: Path, prepare: str, call: Callable[[LocalStore], object], number: int
) -> None:
    (tmp_path / "a").mkdir() if prepare == "folder" else (tmp_path / "a").write_bytes(b"")
    with pytest.raises(exceptions.GenericError, match=re.escape(f"(os error {number})")):
        call(LocalStore(tmp_path))


def test_a_missing_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for call in (obstore.get, obstore.head, obstore.delete):
        with pytest.raises(FileNotFoundError):
            call(store, "a")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "folder")
    assert list(obstore.list(store, "nothing")) == []


def test_create_on_disk_is_a_hard_link(tmp_path: Path) -> None:
    """An object appears whole: it is written beside its place and linked there."""
    store = LocalStore(tmp_path)
    obstore.put(store, "a", b"1", mode="create")
    with pytest.raises(exceptions.AlreadyExistsError):
        obstore.put(store, "a", b"2", mode="create")
    os.link(tmp_path / "a", tmp_path / "old")
    obstore.put(store, "a", b"3")
    assert (tmp_path / "old").read_bytes() == b"1", "a put replaces the file, it does not write into it"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "old"]


@pytest.mark.parametrize("path", ["a//b", "../b", "a/../b"])
def test_a_bad_path_is_a_value_error(path: str) -> None:
    with pytest.raises(ValueError, match="Could not parse path"):
        obstore.put(MemoryStore(), path, b"")


# --- conditions -------------------------------------------------------------------------------------------------------


def test_conditions_on_s3_and_in_memory(s3_server: S3Server) -> None:
    for store in (s3(s3_server.options, s3_server.new_bucket()), MemoryStore()):
        tag = obstore.put(store, "a", b"1", mode="create")["e_tag"]
        assert tag is not None
        assert tag == obstore.get(store, "a").meta["e_tag"] == next(iter(obstore.list(store)))[0]["e_tag"]
        with pytest.raises(exceptions.AlreadyExistsError):
            obstore.put(store, "a", b"2", mode="create")
        assert obstore.put(store, "a", b"2", mode={"e_tag": tag})["e_tag"] != tag
        with pytest.raises(exceptions.PreconditionError):
            obstore.put(store, "a", b"3", mode={"e_tag": tag})
        with pytest.raises(exceptions.PreconditionError):
            obstore.put(store, "gone", b"3", mode={"e_tag": tag})


@pytest.mark.parametrize("mode", ["create", {"e_tag": '"tag"'}], ids=["create", "swap"])
def test_a_client_that_retries_repeats_a_conditional_put_in_doubt(bad: BadS3, mode: PutMode) -> None:
    """Why conditional writes use a client that does not: the first try may be what refuses the second."""
    bad.answers = [HANG_UP, 412]
    with pytest.raises((exceptions.AlreadyExistsError, exceptions.PreconditionError)):
        obstore.put(s3(bad.options, retries=1), "a", b"1", mode=mode)
    assert bad.asked == ["PUT", "PUT"]


# --- the texts of errors ----------------------------------------------------------------------------------------------

GET: Call = lambda store: obstore.get(store, "a")  # noqa: E731
PUT: Call = lambda store: obstore.put(store, "a", b"1")  # noqa: E731
CREATE: Call = lambda store: obstore.put(store, "a", b"1", mode="create")  # noqa: E731
SWAP: Call = lambda store: obstore.put(store, "a", b"1", mode={"e_tag": '"tag"'})  # noqa: E731
LIST: Call = lambda store: list(obstore.list(store))  # noqa: E731


@pytest.mark.parametrize(
    ("answer", "call", "error", "text"),
    [
        (500, GET, exceptions.GenericError, "non-2xx status code: 500"),
        (503, PUT, exceptions.GenericError, "non-2xx status code: 503"),
        (400, PUT, exceptions.GenericError, "non-2xx status code: 400"),
        (403, GET, exceptions.PermissionDeniedError, "non-2xx status code: 403"),
        (401, PUT, exceptions.UnauthenticatedError, "non-2xx status code: 401"),
        (403, LIST, exceptions.GenericError, "non-2xx status code: 403"),
        (404, GET, FileNotFoundError, "non-2xx status code: 404"),
        (404, SWAP, exceptions.PreconditionError, "non-2xx status code: 404"),
        (409, CREATE, exceptions.AlreadyExistsError, "non-2xx status code: 409"),
        (409, SWAP, exceptions.AlreadyExistsError, "non-2xx status code: 409"),
        (412, CREATE, exceptions.AlreadyExistsError, "non-2xx status code: 412"),
        (301, GET, exceptions.GenericError, "BareRedirect"),
        (HANG_UP, PUT, exceptions.GenericError, r"HttpError \{\s*kind: Request"),
    ],
)
def test_the_text_of_a_bad_answer(bad: BadS3, answer: Answer, call: Call, error: type[Exception], text: str) -> None:
    bad.answers = [answer]
    with pytest.raises(error, match=text):
        call(s3(bad.options))


def test_the_text_of_a_retry(bad: BadS3) -> None:
    bad.answers = [500]
    with pytest.raises(exceptions.GenericError, match="after 1 retries"):
        GET(s3(bad.options, retries=1))


def test_the_text_when_nobody_answers(bad: BadS3) -> None:
    with pytest.raises(exceptions.GenericError, match=r"HttpError \{\s*kind: Connect"):
        PUT(s3({**bad.options, "aws_endpoint": "http://127.0.0.1:1"}))


def test_the_text_when_http_is_not_allowed(bad: BadS3) -> None:
    with pytest.raises(exceptions.GenericError, match="BadScheme"):
        GET(s3({**bad.options, "allow_http": "false"}))


@pytest.mark.parametrize("call", [GET, PUT, CREATE, SWAP, LIST], ids=["get", "put", "create", "swap", "list"])
def test_the_text_of_a_missing_bucket(s3_server: S3Server, call: Call) -> None:
    with pytest.raises(
        (FileNotFoundError, exceptions.GenericError, exceptions.PreconditionError), match="<Code>NoSuchBucket</Code>"
    ):
        call(s3(s3_server.options, "no-such-bucket"))


def test_the_error_of_an_unknown_option() -> None:
    with pytest.raises(exceptions.UnknownConfigurationKeyError, match="'zork' is not valid"):
        s3({"zork": "1"})
