"""Which provider is in force: argument over environment over defaults, and what is wrong with what was said."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from omnigraph.embedding.config import EmbeddingSettings, from_argument, settings_of
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, EmbeddingError

KEYS = {"OPENROUTER_API_KEY": "router", "OPENAI_API_KEY": "open", "GEMINI_API_KEY": "gem"}
OPENROUTER = "https://openrouter.ai/api/v1"
OPENAI = "https://api.openai.com/v1"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta"


def settle(argument: Any = None, **environ: str) -> EmbeddingSettings:
    return settings_of(from_argument(argument), environ)


CHOSEN = [
    pytest.param(None, {}, ("openai-compatible", "openai/text-embedding-3-large", OPENROUTER, "router"), id="default"),
    pytest.param("openai", {}, ("openai", "text-embedding-3-large", OPENAI, "open"), id="openai"),
    pytest.param("gemini", {}, ("gemini", "gemini-embedding-2", GOOGLE, "gem"), id="gemini"),
    pytest.param("mock", {}, ("mock", "", "", ""), id="mock"),
    pytest.param({"kind": "mock", "model": "m"}, {}, ("mock", "m", "", ""), id="mock with a model"),
    pytest.param("local", {}, ("local", "all-MiniLM-L6-v2", "", ""), id="local"),
    pytest.param({"provider": "gemini"}, {}, ("gemini", "gemini-embedding-2", GOOGLE, "gem"), id="alias of kind"),
    pytest.param(None, {"PROVIDER": "gemini"}, ("gemini", "gemini-embedding-2", GOOGLE, "gem"), id="environment"),
    pytest.param(
        None,
        {"MODEL": "m", "BASE_URL": "http://h:1/v1/"},
        ("openai-compatible", "m", "http://h:1/v1", "router"),
        id="environment says model and place",
    ),
    pytest.param(
        {"model": "mine"}, {"MODEL": "m"}, ("openai-compatible", "mine", OPENROUTER, "router"), id="argument first"
    ),
    pytest.param(
        "openai",
        {"PROVIDER": "openai", "MODEL": "m"},
        ("openai", "m", OPENAI, "open"),
        id="environment speaks of the same kind",
    ),
    pytest.param(
        "gemini",
        {"PROVIDER": "openai", "MODEL": "m", "BASE_URL": "http://h"},
        ("gemini", "gemini-embedding-2", GOOGLE, "gem"),
        id="environment speaks of another kind",
    ),
    pytest.param({"kind": "openai", "api_key": "k"}, {}, ("openai", "text-embedding-3-large", OPENAI, "k"), id="key"),
    pytest.param(
        {"kind": "openai", "api_key": "${GEMINI_API_KEY}"},
        {},
        ("openai", "text-embedding-3-large", OPENAI, "gem"),
        id="key by name",
    ),
    pytest.param(
        {"kind": "openai", "model": None}, {}, ("openai", "text-embedding-3-large", OPENAI, "open"), id="None"
    ),
]


@pytest.mark.parametrize(("argument", "environ", "expected"), CHOSEN)
def test_chosen(argument: Any, environ: dict[str, str], expected: tuple[str, ...]) -> None:
    settings = settle(argument, **KEYS, **{f"OMNIGRAPH_EMBED_{name}": value for name, value in environ.items()})
    assert (settings.kind, settings.model, settings.base_url, settings.api_key) == expected


def test_the_second_key_variable_serves_when_the_first_is_blank() -> None:
    assert settle(OPENROUTER_API_KEY=" ", OPENAI_API_KEY=" open\n").api_key == "open"


@pytest.mark.parametrize("word", ["1", "true", "ON"])
@pytest.mark.parametrize("argument", [None, "gemini", {"kind": "openai", "api_key": "k"}])
def test_the_mock_variable_beats_everything(word: str, argument: Any) -> None:
    settings = settle(argument, OMNIGRAPH_EMBEDDINGS_MOCK=word, OMNIGRAPH_EMBED_PROVIDER="openai", **KEYS)
    assert (settings.kind, settings.model) == ("mock", "")


def test_the_mock_has_the_model_that_was_given() -> None:
    assert settle({"kind": "openai", "model": "m"}, OMNIGRAPH_EMBEDDINGS_MOCK="1").model == "m"
    assert settle(OMNIGRAPH_EMBEDDINGS_MOCK="1", OMNIGRAPH_EMBED_MODEL="e").model == "e"


@pytest.mark.parametrize("word", ["", "0", "false"])
def test_the_mock_variable_can_say_no(word: str) -> None:
    assert settle(OMNIGRAPH_EMBEDDINGS_MOCK=word, **KEYS).kind == "openai-compatible"


def test_patience() -> None:
    environ = {
        "OMNIGRAPH_EMBED_TIMEOUT_MS": "11",
        "OMNIGRAPH_EMBED_DEADLINE_MS": "12",
        "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "13",
        "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "14",
    }
    patience = settle("gemini", **KEYS, **environ).patience
    found = (patience.timeout_ms, patience.deadline_ms, patience.retry_attempts, patience.retry_backoff_ms)
    assert found == (11, 12, 13, 14)
    assert settle({"kind": "gemini", "timeout_ms": 5}, **KEYS, **environ).patience.timeout_ms == 5


MISSING_KEYS = [
    pytest.param(None, ["OPENROUTER_API_KEY", "OPENAI_API_KEY"], id="SEA-15 default"),
    pytest.param("openai", ["OPENAI_API_KEY"], id="SEA-15 openai"),
    pytest.param("gemini", ["GEMINI_API_KEY"], id="SEA-15 gemini"),
    pytest.param({"kind": "openai", "api_key": "${MY_KEY}"}, ["MY_KEY"], id="SEA-15 named variable"),
]


@pytest.mark.parametrize(("argument", "variables"), MISSING_KEYS)
def test_a_missing_key_is_named(argument: Any, variables: list[str]) -> None:
    embedder = Embedder(argument)
    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query("river", 4)
    assert "set " + " or ".join(variables) in str(caught.value)
    assert "\n" not in str(caught.value)


WRONG_ARGUMENTS = [
    pytest.param("opnai", "kind is one of openai-compatible, openai, gemini, mock, local, not 'opnai'", id="kind"),
    pytest.param({"kind": ["mock"]}, "kind is one of", id="kind is a list"),
    pytest.param({"modle": "m"}, "unknown field 'modle'", id="field"),
    pytest.param({3: "m"}, "unknown field '3'", id="field that is no text"),
    pytest.param({"kind": "mock", "provider": "mock"}, "another word", id="kind twice"),
    pytest.param({"model": " "}, "model is a text", id="blank model"),
    pytest.param({"base_url": "ftp://x"}, "base_url is an http", id="scheme"),
    pytest.param({"base_url": "http://"}, "base_url is an http", id="no host"),
    pytest.param({"base_url": "http://h:x"}, "base_url is an http", id="port"),
    pytest.param({"base_url": "http://[::1"}, "base_url is an http", id="brackets"),
    pytest.param({"base_url": "http://u:a b@h"}, "base_url is an http.*not this one", id="space"),
    pytest.param({"base_url": "u:geheim@h"}, "base_url is an http.*not this one", id="no scheme"),
    pytest.param({"timeout_ms": 0}, "timeout_ms is a whole number from 1", id="zero"),
    pytest.param({"deadline_ms": True}, "deadline_ms is a whole number from 1", id="boolean"),
    pytest.param({"retry_attempts": "3"}, "retry_attempts is a whole number from 1", id="text for a number"),
    pytest.param(7, "a kind of provider or a mapping", id="number"),
]


@pytest.mark.parametrize(("argument", "message"), WRONG_ARGUMENTS)
def test_wrong_arguments(argument: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        Embedder(argument)


def test_a_wrong_key_is_not_shown() -> None:
    with pytest.raises(BadRequest) as caught:
        Embedder({"api_key": "geheim\nß"})
    assert "geheim" not in str(caught.value)


WRONG_ENVIRONMENTS = [
    pytest.param({"OMNIGRAPH_EMBED_PROVIDER": "x"}, "OMNIGRAPH_EMBED_PROVIDER is one of", id="kind"),
    pytest.param(
        {"OMNIGRAPH_EMBED_TIMEOUT_MS": "fast"}, "TIMEOUT_MS is a whole number from 1, not 'fast'", id="number"
    ),
    pytest.param({"OMNIGRAPH_EMBED_TIMEOUT_MS": "-1"}, "TIMEOUT_MS is a whole number from 1", id="negative"),
    pytest.param({"OMNIGRAPH_EMBED_DEADLINE_MS": "0"}, "DEADLINE_MS is a whole number from 1", id="zero"),
    pytest.param({"OMNIGRAPH_EMBED_BASE_URL": "host"}, "BASE_URL is an http", id="place"),
    pytest.param({"OMNIGRAPH_EMBEDDINGS_MOCK": "maybe"}, "OMNIGRAPH_EMBEDDINGS_MOCK is 1 or 0", id="mock"),
    pytest.param({"OPENROUTER_API_KEY": "a\x07b"}, "OPENROUTER_API_KEY holds characters", id="key"),
    pytest.param(
        {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "m"}, "only the model", id="model of local"
    ),
]


@pytest.mark.parametrize(("environ", "message"), WRONG_ENVIRONMENTS)
def test_wrong_environments(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], message: str) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    embedder = Embedder()  # who never embeds is not bothered
    with pytest.raises(EmbeddingError, match=message):
        embedder.embed_query("river", 4)


def test_settings_travel_and_hide_the_key() -> None:
    settings = settle({"kind": "openai", "api_key": "geheim"})
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert "geheim" not in repr(settings)
    assert "geheim" not in repr(from_argument({"api_key": "geheim"}))


def test_a_changed_environment_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Embedder()
    with pytest.raises(EmbeddingError, match="no API key"):
        embedder.embed_query("river", 4)
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    assert embedder.embed_query("river", 4) == Embedder("mock").embed_query("river", 4)
    for model in ("a", "b"):
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", model)
        assert embedder.embed_query("river", 4, model)
