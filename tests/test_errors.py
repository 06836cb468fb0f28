"""What every error owes its reader: no password and no token inside a URL, wherever it came from."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.cli.main import run
from omnigraph.errors import redacted

HIDDEN = [
    ("http://user:geheim@host:80/v1 failed", "http://***@host:80/v1 failed"),
    ("HTTPS://user:geheim@Host", "HTTPS://***@Host"),
    ("https://geheim@host/x", "https://***@host/x"),
    ("'http://u:ge@heim@host/x'", "'http://***@host/x'"),
    ("http://u:ge/heim@host/x", "http://***@host/x"),
    ("http://u:geheim@[::1]:80/x", "http://***@[::1]:80/x"),
    ("s3://key:geheim@bucket/prefix", "s3://***@bucket/prefix"),
    ("a http://u:geheim@a and b http://u:geheim@b", "a http://***@a and b http://***@b"),
    ("https://h/p?api_key=geheim&x=1#token=geheim", "https://h/p?api_key=***&x=1#token=***"),
    (
        "https://b.example/k?X-Amz-Signature=geheim&X-Amz-Expires=5",
        "https://b.example/k?X-Amz-Signature=***&X-Amz-Expires=5",
    ),
    ("https://h/?sig=geheim; try again", "https://h/?sig=***; try again"),
]
SHOWN = [
    "http://host:80/a@b",
    "http://host:8080",
    "https://h/@scope/package",
    "http://[::1]:80/x",
    "https://h/p?page=2&limit=5",
    "write to me@example.org about http://host/x",
    "acct:me@example.org",
    "s3://bucket/prefix",
]


@pytest.mark.parametrize(("text", "expected"), HIDDEN)
def test_redacted(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert "geheim" not in str(errors.BadRequest(text))


@pytest.mark.parametrize("text", SHOWN)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ["http://" + "a:" * 50_000, "://" * 30_000, "x?" + "key" * 30_000 + " ://", "a" * 10**6 + "://"]
)
def test_long_texts_are_read_once(text: str) -> None:
    assert redacted(text) == text


def test_errors_and_what_is_made_of_them() -> None:
    url = "https://me:geheim@host/x"
    rejected = errors.LoadRejected("1 problem", errors=[("f", 1, f"no blob at {url}")], total=1)
    failed = errors.SparkFailed("a task failed", kind="task", detail=f"Caused by: {url}")
    made: list[errors.OmnigraphError] = [
        errors.ExternalBlobDenied(f"{url} is not allowed", uri=url),
        rejected,
        failed,
        errors.EmbeddingError(f"no answer from {url}", provider="openai"),
        errors.GraphNotFound(f"there is no graph at {url}", uri=url),
        errors.StorageError(f"can not read {url}", kind="permanent", path=url),
    ]
    for error in made:
        revived = pickle.loads(pickle.dumps(error))
        assert "geheim" not in f"{error} {error!r} {error.args} {error.to_dict()} {revived} {revived.message}"
    assert rejected.errors == [("f", 1, "no blob at https://***@host/x")]
    assert failed.detail == "Caused by: https://***@host/x"


def test_what_the_command_line_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://me:geheim@host/x"
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text(
        f"servers: {{ prod: {{ url: '{url}' }} }}\nprofiles: {{ p: {{ server: prod }}, q: {{ server: '{url}' }} }}"
    )
    for words, said in (
        (["branch", "list", "--store", url], "http://***@host/x is not a graph's storage"),
        (["branch", "list", "--debug", "--store", url], "http://***@host/x is not a graph's storage"),
        (["export", "--engine", url], "http://***@host/x"),
        (["profile", "show", "p"], "http://***@host/x"),
        (["profile", "list"], "http://***@host/x"),
    ):
        run(words)
        shown = capsys.readouterr()
        assert said in shown.out + shown.err
        assert "geheim" not in shown.out + shown.err


@pytest.mark.parametrize("uri", ["http://me:geheim@host/g", "s3://me:geheim@bucket/g?x", "gs://me:geheim@bucket/g"])
def test_addresses_of_graphs(uri: str) -> None:
    with pytest.raises(og.OmnigraphError) as raised:
        og.open(uri)
    assert "geheim" not in str(raised.value)
    assert "***@" in str(raised.value)
