"""What is told when a store fails: the kind says what a caller may conclude, the message what to do."""

from __future__ import annotations

import errno
import pickle
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage import obstore_objects
from omnigraph.storage.object_errors import from_os
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.s3 import S3Server
from tests.storage.bad_s3 import HANG_UP, Answer, BadS3, bad_s3
from tests.storage.kinds import kind_of

READS: dict[str, Callable[[ObjectStore], object]] = {
    "get": lambda store: store.get("a/b"),
    "list": lambda store: store.list("a"),
    "exists": lambda store: store.exists("a"),
}
WRITES: dict[str, Callable[[ObjectStore], object]] = {
    "put": lambda store: store.put("a/b", b"1"),
    "create": lambda store: store.create("a/b", b"1"),
    "swap": lambda store: store.swap("a/b", b"1", '"tag"'),
    "delete": lambda store: store.delete("a/b"),
}


@pytest.fixture
def bad(monkeypatch: pytest.MonkeyPatch) -> Iterator[BadS3]:
    """A server that answers badly; retries of our own are switched off here and tested below."""
    monkeypatch.setattr(obstore_objects, "_CONDITIONAL_TRIES", 1)
    with bad_s3() as script:
        yield script


@pytest.mark.parametrize(
    ("answer", "read", "write"),
    [
        (500, "transient", "unknown"),
        (502, "transient", "unknown"),
        (503, "transient", "transient"),
        (429, "transient", "transient"),
        (HANG_UP, "transient", "unknown"),
        (401, "configuration", "configuration"),
        (403, "configuration", "configuration"),
        (301, "configuration", "configuration"),
        (400, "permanent", "permanent"),
    ],
)
def test_the_kind_of_a_bad_answer(bad: BadS3, answer: Answer, read: str, write: str) -> None:
    bad.answers = [answer]
    store = open_store(bad.root, retries=0)
    assert {verb: kind_of(partial(call, store)) for verb, call in READS.items()} == dict.fromkeys(READS, read)
    assert {verb: kind_of(partial(call, store)) for verb, call in WRITES.items()} == dict.fromkeys(WRITES, write)


def test_nobody_there_means_nothing_happened(bad: BadS3) -> None:
    nowhere = Root.parse("s3://bucket/graph", {**bad.options, "aws_endpoint": "http://127.0.0.1:1"})
    store = open_store(nowhere, retries=0)
    for call in (*READS.values(), *WRITES.values()):
        assert kind_of(partial(call, store)) == "transient"


def test_a_write_that_was_tried_twice_may_have_happened(bad: BadS3) -> None:
    bad.answers = [500, 503]
    assert kind_of(lambda: open_store(bad.root, retries=1).put("a/b", b"1")) == "unknown"
    assert bad.asked == ["PUT", "PUT"]


def test_reads_and_plain_puts_are_tried_again(bad: BadS3) -> None:
    bad.answers = [500, 503, 200]
    open_store(bad.root, retries=3).put("a/b", b"1")
    assert bad.asked == ["PUT"] * 3


@pytest.mark.parametrize("verb", ["create", "swap"])
@pytest.mark.parametrize("answer", [500, HANG_UP])
def test_a_conditional_write_in_doubt_is_never_repeated(bad: BadS3, verb: str, answer: Answer) -> None:
    """A silent second try would be refused because of the first, and the caller told that nothing was written."""
    bad.answers = [answer, 412]
    store = open_store(bad.root, retries=5)
    assert kind_of(lambda: WRITES[verb](store)) == "unknown"
    assert bad.asked == ["PUT"]


@pytest.mark.parametrize("verb", ["create", "swap"])
@pytest.mark.parametrize("answer", [409, 503])
def test_a_conditional_write_that_was_turned_away_is_tried_again(verb: str, answer: Answer) -> None:
    with bad_s3() as script:
        script.answers = [answer, answer, 200]
        assert WRITES[verb](open_store(script.root)) == '"tag"'
        assert script.asked == ["PUT"] * 3


@pytest.mark.parametrize("verb", ["create", "swap"])
def test_a_conditional_write_is_given_up_at_last(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with bad_s3() as script:
        script.answers = [409]
        assert kind_of(lambda: WRITES[verb](open_store(script.root))) == "transient"
        assert script.asked == ["PUT"] * 5


def test_a_missing_bucket_is_not_a_missing_object(s3_server: S3Server) -> None:
    store = open_store(Root.parse("s3://no-such-bucket/graph", s3_server.options))
    calls: dict[str, Callable[[ObjectStore], object]] = {
        **READS,
        **WRITES,
        "get_or_none": lambda store: store.get_or_none("a/b"),
    }
    for call in calls.values():
        with pytest.raises(StorageError, match="the bucket does not exist; create it or correct the URI") as caught:
            call(store)
        assert caught.value.kind == "configuration"


def test_http_must_be_allowed(s3_server: S3Server) -> None:
    root = Root.parse("s3://bucket/graph", {**s3_server.options, "allow_http": "false"})
    with pytest.raises(StorageError, match="the endpoint is not https; set the storage option allow_http=true"):
        open_store(root).get("a/b")


@pytest.mark.parametrize(
    ("number", "writes", "kind", "part"),
    [
        (errno.ENOSPC, True, "permanent", "the disk is full; free some space"),
        (errno.EDQUOT, True, "permanent", "quota"),
        (errno.EACCES, True, "configuration", "permission denied"),
        (errno.EROFS, True, "configuration", "read-only"),
        (errno.EMFILE, False, "transient", "too many open files"),
        (errno.ENOENT, False, "not_found", "it does not exist"),
        (errno.ENOTDIR, False, "not_found", "it does not exist"),
        (errno.ENOTDIR, True, "configuration", "a file stands where a folder is needed"),
        (errno.EIO, True, "unknown", "it may have happened"),
        (errno.EIO, False, "permanent", "repeating it will not help"),
        (0, True, "unknown", "it may have happened"),
    ],
)
def test_errors_of_the_operating_system(number: int, writes: bool, kind: str, part: str) -> None:
    error = from_os(OSError(number, "text"), action="write", location="/g/a", writes=writes)
    assert (error.kind, error.path) == (kind, "/g/a")
    assert error.message.startswith("can not write /g/a: ")
    assert part in error.message
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()
