"""Studio's files as the server gives them: types, rules for the browser, the one-time key. The page itself is in tests/studio."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from omnigraph.server import studio
from tests.server.serving import TOKEN, Served, serving, settings_of

KEY = "ogt_once"


@pytest.fixture
def page(graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server with a small built page and a one-time key."""
    files = tmp_path / "files"
    (files / "assets").mkdir(parents=True)
    (files / "index.html").write_text('<!doctype html><meta name="csp-nonce" content="__NONCE__"><p>Studio</p>')
    (files / "assets" / "index-1.js").write_text("export {}")
    (files / "favicon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(studio, "FILES", files)
    with serving(settings_of(graph_path, studio=True, studio_key=KEY)) as served:
        yield served


@pytest.mark.parametrize("path", ["/", "/g/people/overview", "/g/people/explore?type=Person&id=ada", "/g/x/y/z"])
def test_every_address_of_the_page_is_the_page(page: Served, path: str) -> None:
    answer = httpx.get(page.url + path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    rules = answer.headers["content-security-policy"]
    nonce = re.search(r'content="([^"]+)"', answer.text)
    assert nonce is not None
    assert f"style-src 'self' 'nonce-{nonce[1]}'" in rules
    assert "default-src 'none'; script-src 'self';" in rules
    assert "unsafe" not in rules
    assert "connect-src 'self'" in rules
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert nonce[1] not in httpx.get(page.url + path).text


def test_files_have_their_types_and_stay(page: Served) -> None:
    answer = httpx.get(page.url + "/assets/index-1.js")
    assert answer.text == "export {}"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert httpx.get(page.url + "/favicon.svg").headers["content-type"] == "image/svg+xml"
    plain = httpx.get(page.url + "/assets/index-1.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("path", ["/assets/none.js", "/assets/../../secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt"])
def test_nothing_else_is_a_file(page: Served, path: str) -> None:
    answer = httpx.get(page.url + path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["/snapshot", "/graphs/people", "/openapi", "/index.html"])
def test_other_paths_are_still_the_api(page: Served, path: str) -> None:
    answer = page.http.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_a_key_works_once(page: Served) -> None:
    address = page.url + "/studio/session"
    wrong = httpx.post(address, json={"key": "guess"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "unauthorized")
    right = httpx.post(address, json={"key": KEY})
    assert right.json() == {"token": TOKEN}
    assert right.headers["cache-control"] == "no-store"
    again = httpx.post(address, json={"key": KEY})
    assert again.status_code == 401
    assert TOKEN not in again.text


def test_without_a_build_one_sentence_says_so(page: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio, "FILES", tmp_path / "none")
    answer = httpx.get(page.url + "/")
    assert answer.status_code == 404
    assert "has no Studio" in answer.text


def test_a_server_without_studio_has_nothing_there(reading: Served) -> None:
    assert reading.http.get("/").status_code == 404
    assert reading.http.post("/studio/session", json={"key": "x"}).status_code == 404
