"""What a server of a cluster starts with: variables, flags, where tokens come from, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from omnigraph.cli import output
from omnigraph.cli.serve import main
from omnigraph.errors import BadRequest, OmnigraphError
from omnigraph.server import process
from omnigraph.server.settings import Settings
from omnigraph.server.state import open_state
from omnigraph.server.tokens import read_tokens
from tests.cli.calling import call
from tests.clusters.declaring import declare, started

Capsys = pytest.CaptureFixture[str]
Asked = Callable[..., tuple[int, Settings | None, str]]
PREFIX = "OMNIGRAPH_SERVER_BEARER_TOKEN"


@pytest.fixture(scope="module")
def policed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(declare(tmp_path_factory.mktemp("boot") / "policed"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster without a policy."""
    folder = declare(tmp_path_factory.mktemp("boot") / "plain")
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(text[: text.index("policies:")])
    return started(folder)


@pytest.fixture
def asked(capsys: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    """Starts `serve` up to the point where it would listen: its exit code, its settings, and what it said."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))

    def ask(cluster: Path, *flags: str, **variables: str) -> tuple[int, Settings | None, str]:
        found: list[Settings] = []

        def run(settings: Settings, announce: object) -> None:
            state = open_state(settings)
            for graph_id, reason in state.graphs.quarantined.items():
                output.note(f"quarantined {graph_id}: {reason}")
            state.close()
            found.append(settings)

        with monkeypatch.context() as patch:
            patch.setattr(process, "run", run)
            for name, value in variables.items():
                patch.setenv(name, value)
            outcome = call(capsys, "serve", "--cluster", str(cluster), *flags)
        return outcome.code, found[0] if found else None, outcome.err

    return ask


TOKEN = {PREFIX: "t"}
FLAG, VARIABLE = ("--unauthenticated",), {"OMNIGRAPH_UNAUTHENTICATED": "1"}
#: Tokens, a policy, what else is said; the rights that the server has then, None when it does not start.
TABLE: list[tuple[dict[str, str], str, tuple[str, ...], dict[str, str], str | None]] = [
    ({}, "plain", (), {}, None),
    ({}, "plain", FLAG, {}, "open"),
    ({}, "plain", (), VARIABLE, "open"),
    ({}, "policed", (), {}, None),
    ({}, "policed", FLAG, {}, None),
    ({}, "policed", (), VARIABLE, None),
    (TOKEN, "plain", (), {}, "default-deny"),
    (TOKEN, "plain", FLAG, {}, "default-deny"),
    (TOKEN, "plain", (), VARIABLE, "default-deny"),
    (TOKEN, "policed", (), {}, "default-deny"),
    (TOKEN, "policed", FLAG, {}, "default-deny"),
]


@pytest.mark.parametrize(("tokens", "which", "flags", "variables", "rights"), TABLE)
def test_who_gets_in(
    asked: Asked,
    plain: Path,
    policed: Path,
    tokens: dict[str, str],
    which: str,
    flags: tuple[str, ...],
    variables: dict[str, str],
    rights: str | None,
) -> None:
    code, settings, said = asked({"plain": plain, "policed": policed}[which], *flags, **tokens, **variables)
    if rights is None:
        assert (code, settings) == (1, None)
        assert said.startswith("Error: ")
        assert "set tokens" in said or "with tokens" in said
    else:
        assert settings is not None, said
        assert (code, settings.rights) == (0, rights)


@pytest.mark.parametrize(
    "variables", [{}, {"OMNIGRAPH_REQUIRE_ALL_GRAPHS": "1"}, {"OMNIGRAPH_REQUIRE_ALL_GRAPHS": "0"}]
)
@pytest.mark.parametrize("flags", [(), ("--require-all-graphs",)])
def test_a_broken_graph_and_who_requires_all(
    asked: Asked, plain: Path, tmp_path: Path, flags: tuple[str, ...], variables: dict[str, str]
) -> None:
    cluster = Path(shutil.copytree(plain, tmp_path / "c"))
    shutil.rmtree(cluster / "graphs" / "tasks.omni")
    code, settings, said = asked(cluster, *flags, **TOKEN, **variables)
    if flags or variables.get("OMNIGRAPH_REQUIRE_ALL_GRAPHS") == "1":
        assert (code, settings) == (1, None)
        assert "there is no graph at" in said
    else:
        assert code == 0, said
        assert said.startswith("quarantined tasks: there is no graph at")


def test_limits_of_the_environment(asked: Asked, plain: Path) -> None:
    _, settings, said = asked(plain, **TOKEN)
    assert settings is not None, said
    assert (settings.limits.actor_requests, settings.limits.actor_bytes) == (16, 4 * 2**30)
    _, settings, said = asked(
        plain, **TOKEN, OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX="3", OMNIGRAPH_PER_ACTOR_BYTES_MAX="1000"
    )
    assert settings is not None, said
    assert (settings.limits.actor_requests, settings.limits.actor_bytes) == (3, 1000)
    for wrong in ("0", "-1", "many"):
        code, settings, said = asked(plain, **TOKEN, OMNIGRAPH_PER_ACTOR_BYTES_MAX=wrong)
        assert (code, settings) == (1, None)
        assert "OMNIGRAPH_PER_ACTOR_BYTES_MAX" in said


@pytest.mark.parametrize(
    "words", [["c"], ["--cluster", "c", "--config", "x"], ["--cluster", "c", "--workers", "2"], []]
)
def test_omnigraph_server_takes_nothing_else(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


# --- where tokens come from -------------------------------------------------------------------------------------------


def test_the_order_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret of AWS wins over a file, that over JSON, that over a single token."""
    file = tmp_path / "tokens.json"
    file.write_text('{"of-file":"f"}')
    environment = {PREFIX: "single"}
    assert read_tokens(environment).actor_of("single") == "default"
    environment[f"{PREFIX}S_JSON"] = '{"of-json":"j"}'
    assert (read_tokens(environment).actor_of("j"), read_tokens(environment).actor_of("single")) == ("of-json", None)
    environment[f"{PREFIX}S_FILE"] = str(file)
    assert (read_tokens(environment).actor_of("f"), read_tokens(environment).actor_of("j")) == ("of-file", None)
    for name, value in (("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        secret = json.dumps({"of-aws": "a"})
        boto3.client("secretsmanager").create_secret(Name="graph/tokens", SecretString=secret)
        environment[f"{PREFIX}S_AWS_SECRET"] = "graph/tokens"
        found = read_tokens(environment)
        assert (found.actor_of("a"), found.actor_of("f")) == ("of-aws", None)
        with pytest.raises(BadRequest, match="cannot read the secret 'none': ResourceNotFoundException"):
            read_tokens({f"{PREFIX}S_AWS_SECRET": "none"})


def test_only_digests_are_kept() -> None:
    tokens = read_tokens({f"{PREFIX}S_JSON": '{"a":"very-secret"}'})
    assert "very-secret" not in repr(tokens)
    assert [len(digest) for digest, _ in tokens.actors] == [32]


@pytest.mark.parametrize(
    "text", ['{"a":"x","b":" "}', '{"":"x"}', '{"a":"x","b":"x"}', '{"a":"x","a":"y"}', "{}", "[]", "{", '{"a":1}']
)
def test_tokens_that_are_refused(asked: Asked, plain: Path, text: str) -> None:
    variables: dict[str, Any] = {f"{PREFIX}S_JSON": text}
    code, settings, said = asked(plain, "--unauthenticated", **variables)
    assert (code, settings) == (1, None)
    assert f"{PREFIX}S_JSON" in said
    with pytest.raises(OmnigraphError):
        read_tokens(variables)
