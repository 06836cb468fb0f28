"""The remote providers against a real server that speaks their protocols, well and badly."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import EmbeddingError
from tests.embedding.provider_server import Answer, Service, vector

KEY = "key-0123456789"
REMOTE_KINDS = ["openai-compatible", "openai", "gemini"]


def embedder(service: Service, kind: str = "openai", **options: Any) -> Embedder:
    usual = {"model": "m/x", "base_url": service.url, "api_key": KEY, "retry_backoff_ms": 1}
    return Embedder({"kind": kind, **usual, **options})


def unit(text: str, dimension: int) -> list[float]:
    raw = vector(text, dimension)
    return [value / math.hypot(*raw) for value in raw]


# --- the protocols ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", REMOTE_KINDS)
def test_vectors_come_back_normalised_and_in_order(service: Service, kind: str) -> None:
    service.reverse = True
    texts = ["aaa", "b", "", "größe"]
    made = embedder(service, kind).embed_documents(texts, 5)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, [unit(text, 5) for text in texts], rtol=1e-6)
    assert [asked.texts for asked in service.asked] == [texts]


@pytest.mark.parametrize("kind", ["openai-compatible", "openai"])
def test_the_request_of_openai(service: Service, kind: str) -> None:
    embedder(service, kind).embed_query("river", 4)
    (asked,) = service.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "m/x", "input": ["river"], "dimensions": 4, "encoding_format": "float"}


@pytest.mark.parametrize(("stored", "task"), [(True, "RETRIEVAL_DOCUMENT"), (False, "RETRIEVAL_QUERY")])
@pytest.mark.parametrize("model", ["g-1", "models/g-1"])
def test_the_request_of_gemini(service: Service, stored: bool, task: str, model: str) -> None:
    asking = embedder(service, "gemini", model=model)
    if stored:
        asking.embed_documents(["river"], 4)
    else:
        asking.embed_query("river", 4)
    (asked,) = service.asked
    assert asked.path == "/v1/models/g-1:batchEmbedContents"
    assert asked.headers["x-goog-api-key"] == KEY
    content = {"parts": [{"text": "river"}]}
    request = {"model": "models/g-1", "taskType": task, "outputDimensionality": 4, "content": content}
    assert asked.body == {"requests": [request]}


@pytest.mark.parametrize(("kind", "sizes"), [("openai", [256, 256, 88]), ("gemini", [100] * 6)])
def test_many_texts_go_in_batches(service: Service, kind: str, sizes: list[int]) -> None:
    texts = ["x" * (place % 7) for place in range(600)]
    made = embedder(service, kind).embed_documents(texts, 2)
    np.testing.assert_allclose(made, [unit(text, 2) for text in texts], rtol=1e-6)
    assert [len(asked.texts) for asked in service.asked] == sizes


def test_no_texts_no_request(service: Service) -> None:
    assert embedder(service).embed_documents([], 3).shape == (0, 3)
    assert not service.asked


def test_threads_share_an_embedder(service: Service) -> None:
    shared = embedder(service)
    texts = ["x" * place for place in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: shared.embed_query(text, 3), texts))
    np.testing.assert_allclose(found, [unit(text, 3) for text in texts], rtol=1e-6)


# --- the recorded model -----------------------------------------------------------------------------------------------


def test_a_recorded_model_must_be_the_configured_one(service: Service) -> None:
    with pytest.raises(EmbeddingError, match="records the embedding model 'other'.*configured with 'm/x'"):
        embedder(service).embed_query("river", 4, "other")
    assert not service.asked
    embedder(service).embed_query("river", 4, "m/x")
    assert len(service.asked) == 1


def test_the_mock_is_held_to_a_recorded_model_too() -> None:
    with pytest.raises(EmbeddingError, match="records the embedding model 'm/x'"):
        Embedder("mock").embed_documents(["river"], 4, "m/x")
    assert Embedder({"kind": "mock", "model": "m/x"}).embed_query("river", 4, "m/x")


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_password_inside_the_url_is_used_and_never_shown(service: Service) -> None:
    """Also not when the service repeats it."""
    url = service.url.replace("http://", "http://me:ge%2Fheim@")
    service.answers = [
        Answer(401, b'{"error": {"message": "no entry for ge/heim at http://me:ge%2Fheim@there"}}'),
        Answer(hang_up=True),
        Answer(200, b"ge/heim is no JSON"),
    ]
    for _ in range(3):
        with pytest.raises(EmbeddingError, match="at http://\\*\\*\\*@127.0.0.1") as raised:
            embedder(service, base_url=url, retry_attempts=1).embed_query("river", 4)
        shown = f"{raised.value} {raised.value!r} {raised.value.to_dict()}"
        assert "heim" not in shown
        assert KEY not in shown
    assert embedder(service, base_url=url).embed_query("river", 4)


# --- failures ---------------------------------------------------------------------------------------------------------


REFUSALS = [
    pytest.param(Answer(401, b'{"error": {"message": "bad\\nkey"}}'), "answered 401 Unauthorized: bad key", id="401"),
    pytest.param(Answer(400, b"no such\n model"), "answered 400 Bad Request: no such model", id="400"),
    pytest.param(Answer(404, b""), "answered 404 Not Found$", id="404"),
    pytest.param(Answer(302, b"", {"Location": "http://127.0.0.1:1/"}), "answered 302 Found", id="redirect"),
    pytest.param(Answer(200, b"<html>"), "not JSON: <html>", id="not JSON"),
    pytest.param(Answer(200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}'), "not JSON", id="NaN"),
    pytest.param(Answer(200, b"\xff\xfe"), "not JSON", id="not UTF-8"),
    pytest.param(Answer(200, b""), "not JSON", id="nothing"),
    pytest.param(Answer(200, b"[]"), "without vectors", id="an array"),
    pytest.param(Answer(200, b"{}"), "without vectors", id="an empty object"),
    pytest.param(Answer(200, b'{"data": {}}'), "without vectors", id="data is no array"),
    pytest.param(Answer(200, b'{"data": [{"index": 1, "embedding": [1, 2]}]}'), "without vectors", id="index"),
    pytest.param(
        Answer(200, b'{"data": [{"index": [], "embedding": []}]}'), "without vectors", id="index is no number"
    ),
    pytest.param(Answer(200, b'{"data": []}'), "0 vectors for 1 texts", id="too few"),
    pytest.param(
        Answer(200, b'{"data": [{"index": 0, "embedding": [1]}]}'), "1 numbers where the property has 2", id="d"
    ),
    pytest.param(Answer(200, b'{"data": [{"index": 0, "embedding": [1, null]}]}'), "list of numbers", id="null inside"),
    pytest.param(Answer(200, b'{"data": [{"index": 0, "embedding": "AAAA"}]}'), "list of numbers", id="base64"),
    pytest.param(Answer(200, b'{"data": [{"index": 0, "embedding": [0, 0]}]}'), "all zeros", id="zero"),
    pytest.param(Answer(200, b"{}", {"Content-Encoding": "gzip"}), "could not be reached", id="broken compression"),
]


@pytest.mark.parametrize(("answer", "message"), REFUSALS)
def test_refused_without_asking_again(service: Service, answer: Answer, message: str) -> None:
    service.answers = [answer]
    with pytest.raises(EmbeddingError, match=message) as caught:
        embedder(service).embed_query("river", 2)
    assert caught.value.provider == "openai"
    assert "\n" not in str(caught.value)
    assert len(service.asked) == 1


def test_gemini_without_vectors(service: Service) -> None:
    service.answers = [Answer(200, b'{"embeddings": [{"value": [1, 2]}]}')]
    with pytest.raises(EmbeddingError, match="'gemini' answered JSON without vectors"):
        embedder(service, "gemini").embed_query("river", 2)


def test_every_batch_must_be_complete(service: Service) -> None:
    batches = [Answer(body=b'{"embeddings": [%s]}' % b",".join([b'{"values": [1, 2]}'] * size)) for size in (99, 51)]
    service.answers = batches
    with pytest.raises(EmbeddingError, match="99 vectors for 100 texts"):
        embedder(service, "gemini").embed_documents(["x"] * 150, 2)


def test_the_key_is_never_shown(service: Service) -> None:
    service.answers = [Answer(401, f"wrong key {KEY}".encode())]
    with pytest.raises(EmbeddingError, match=r"wrong key \*\*\*"):
        embedder(service).embed_query("river", 2)


BROKEN = [
    pytest.param(Answer(raw=b"\x16\x03\x01 hello\r\n\r\n"), id="no HTTP"),
    pytest.param(Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"), id="cut off"),
    pytest.param(Answer(raw=b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000), id="a header without end"),
    pytest.param(Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), id="no length"),
]


@pytest.mark.parametrize("answer", BROKEN)
def test_a_broken_answer_is_a_typed_error_in_one_line(service: Service, answer: Answer) -> None:
    service.answers = [answer] * 2
    with pytest.raises(EmbeddingError, match=r"could not be reached: .* \(attempt 2\)$") as caught:
        embedder(service, retry_attempts=2).embed_query("river", 3)
    assert "\n" not in str(caught.value)
    assert len(service.asked) == 2


PASSING = [
    pytest.param(Answer(429, b"slow down"), id="429"),
    pytest.param(Answer(500), id="500"),
    pytest.param(Answer(503, headers={"Retry-After": "soon"}), id="503, unclear when"),
    pytest.param(Answer(529), id="529"),
    pytest.param(Answer(hang_up=True), id="connection lost"),
]


@pytest.mark.parametrize("answer", PASSING)
def test_asked_again_until_it_works(service: Service, answer: Answer) -> None:
    service.answers = [answer, answer]
    np.testing.assert_allclose(embedder(service).embed_query("river", 3), unit("river", 3), rtol=1e-6)
    assert len(service.asked) == 3


@pytest.mark.parametrize("answer", PASSING)
def test_given_up_after_the_last_attempt(service: Service, answer: Answer) -> None:
    service.answers = [answer] * 5
    with pytest.raises(EmbeddingError, match=r"\(attempt 3\)"):
        embedder(service, retry_attempts=3).embed_query("river", 3)
    assert len(service.asked) == 3


def test_works_again_after_a_failure(service: Service) -> None:
    service.answers = [Answer(400)]
    same = embedder(service)
    with pytest.raises(EmbeddingError):
        same.embed_query("river", 3)
    assert same.embed_query("river", 3)


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        nobody = Embedder({"kind": "openai", "base_url": url, "api_key": KEY, "retry_backoff_ms": 1})
        with pytest.raises(EmbeddingError, match=r"could not be reached: .* \(attempt 4\)"):
            nobody.embed_query("river", 3)


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Answer(slow=True), Answer(body=b" " * 1000, drip=True)], ids=["late", "dripping"])
def test_a_slow_answer_is_cut_at_the_deadline(service: Service, answer: Answer) -> None:
    service.answers = [answer]
    with pytest.raises(EmbeddingError, match="no answer within the deadline of 150 ms"):
        embedder(service, deadline_ms=150).embed_query("river", 3)
    assert not service.released.is_set()


@pytest.mark.parametrize("answer", [Answer(slow=True), Answer(body=b" " * 1000, drip=True)], ids=["late", "dripping"])
def test_a_request_that_times_out_is_asked_again(service: Service, answer: Answer) -> None:
    service.answers = [answer]
    assert embedder(service, timeout_ms=150, retry_attempts=50).embed_query("river", 3)
    assert len(service.asked) >= 2  # a busy machine may be late once more


def test_headers_without_end_are_cut_at_the_deadline(service: Service) -> None:
    """Every single read is answered in time; the answer is not."""
    service.answers = [Answer(drip_headers=True)]
    with pytest.raises(EmbeddingError, match="no answer within the deadline of 150 ms"):
        embedder(service, deadline_ms=150).embed_query("river", 3)
    assert not service.waited_for


def test_headers_without_end_are_asked_for_again(service: Service) -> None:
    service.answers = [Answer(drip_headers=True)]
    assert embedder(service, timeout_ms=150, retry_attempts=50).embed_query("river", 3)
    assert not service.waited_for


def test_every_attempt_may_time_out(service: Service) -> None:
    service.answers = [Answer(slow=True)] * 3
    with pytest.raises(EmbeddingError, match=r"no answer within the timeout of 60 ms \(attempt 2\)"):
        embedder(service, timeout_ms=60, retry_attempts=2).embed_query("river", 3)


def test_the_deadline_is_for_all_batches_together(service: Service) -> None:
    service.answers = [Answer(body=b'{"embeddings": [%s]}' % b",".join([b'{"values": [1, 2]}'] * 100))]
    service.answers.append(Answer(slow=True))
    with pytest.raises(EmbeddingError, match="deadline of 300 ms"):
        embedder(service, "gemini", deadline_ms=300).embed_documents(["x"] * 150, 2)


def test_retry_after_is_waited_for(service: Service) -> None:
    service.answers = [Answer(429, headers={"Retry-After": "1"})]
    assert embedder(service).embed_query("river", 3)
    first, second = service.asked
    assert second.at - first.at >= 1.0


LATER = {
    "seconds": lambda: "30",
    "date": lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True),
    "absurd": lambda: "9" * 400,
}


@pytest.mark.parametrize("when", LATER.values(), ids=LATER)
def test_retry_after_past_the_deadline_is_not_waited_for(service: Service, when: Callable[[], str]) -> None:
    service.answers = [Answer(429, b"later", headers={"Retry-After": when()})]
    with pytest.raises(
        EmbeddingError, match="429 Too Many Requests: later; waiting to ask again would pass the deadline"
    ):
        embedder(service, deadline_ms=20_000).embed_query("river", 3)
    assert len(service.asked) == 1


@pytest.mark.parametrize("when", ["Thu, 01 Jan 1970 00:00:00 GMT", "-5"], ids=["past", "negative"])
def test_retry_after_that_asks_for_no_wait(service: Service, when: str) -> None:
    service.answers = [Answer(429, headers={"Retry-After": when})]
    assert embedder(service).embed_query("river", 3)
