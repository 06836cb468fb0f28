"""Which provider it is in the end: the argument over the environment over the defaults, with its key found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.embedding.config import EmbeddingConfig, from_environment, wants_mock
from omnigraph.embedding.kinds import DEFAULT_KIND, LOCAL, LOCAL_MODEL, MOCK, REMOTE
from omnigraph.embedding.patience import Patience
from omnigraph.errors import EmbeddingError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Everything a provider is made from. Plain data, so that executors can be given it."""

    kind: str
    model: str
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    patience: Patience = field(default_factory=Patience)


def settings_of(argument: EmbeddingConfig, environ: Mapping[str, str]) -> EmbeddingSettings:
    """The settings in force. A missing key is an EmbeddingError that names the variables it may be in."""
    if wants_mock(environ):
        return EmbeddingSettings(MOCK, argument.over(from_environment(environ)).model or "")
    config = argument.over(from_environment(environ))
    kind = config.kind or DEFAULT_KIND
    if kind == MOCK:
        return EmbeddingSettings(MOCK, config.model or "")
    if kind == LOCAL:
        return EmbeddingSettings(LOCAL, _local_model(config))
    remote = REMOTE[kind]
    return EmbeddingSettings(
        kind,
        config.model or remote.model,
        (config.base_url or remote.base_url).rstrip("/"),
        _api_key(kind, config.api_key, remote.key_variables, environ),
        _patience(config),
    )


def _local_model(config: EmbeddingConfig) -> str:
    if config.model not in (None, LOCAL_MODEL):
        raise EmbeddingError(
            f"embedding provider '{LOCAL}' has only the model '{LOCAL_MODEL}', not '{config.model}'", provider=LOCAL
        )
    return LOCAL_MODEL


def _api_key(kind: str, given: str | None, usual: tuple[str, ...], environ: Mapping[str, str]) -> str:
    named = _VARIABLE.fullmatch(given.strip()) if given else None
    if given and named is None:
        return given.strip()
    variables = (named[1],) if named else usual
    for variable in variables:
        key = environ.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise EmbeddingError(f"{variable} holds characters that no API key has", provider=kind)
        if key:
            return key
    raise EmbeddingError(
        f"embedding provider '{kind}' has no API key: set {' or '.join(variables)}, "
        "or choose another provider with OMNIGRAPH_EMBED_PROVIDER or the `embedding` option",
        provider=kind,
    )


def _patience(config: EmbeddingConfig) -> Patience:
    names = ("timeout_ms", "deadline_ms", "retry_attempts", "retry_backoff_ms")
    said = {name: getattr(config, name) for name in names}
    return Patience(**{name: value for name, value in said.items() if value is not None})
