"""The configuration of a provider: the `embedding` argument, then the environment, then the defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from urllib.parse import urlsplit

from omnigraph.embedding.provider import DEFAULT_KIND, KINDS, LOCAL, LOCAL_MODEL, MOCK, REMOTE
from omnigraph.errors import BadRequest, EmbeddingError, redacted


@dataclass(frozen=True, slots=True)
class Patience:
    """`timeout_ms` bounds one request, `deadline_ms` all requests and waits of one call together."""

    timeout_ms: int = 30_000
    deadline_ms: int = 120_000
    retry_attempts: int = 4
    #: The wait before the first repetition; it doubles with each.
    retry_backoff_ms: int = 250


#: A kind of provider, or a mapping with the names of `EmbeddingConfig`; `provider` is another word for `kind`.
EmbeddingArgument = str | Mapping[str, object]

MOCK_VARIABLE = "OMNIGRAPH_EMBEDDINGS_MOCK"
_VARIABLES = {
    "kind": "OMNIGRAPH_EMBED_PROVIDER",
    "model": "OMNIGRAPH_EMBED_MODEL",
    "base_url": "OMNIGRAPH_EMBED_BASE_URL",
    "timeout_ms": "OMNIGRAPH_EMBED_TIMEOUT_MS",
    "deadline_ms": "OMNIGRAPH_EMBED_DEADLINE_MS",
    "retry_attempts": "OMNIGRAPH_EMBED_RETRY_ATTEMPTS",
    "retry_backoff_ms": "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS",
}
_ON = frozenset({"1", "true", "yes", "on"})
#: Characters that a URL has only in escaped form.
_UNSAFE = re.compile(r"""[\s'"`<>]""")
_OFF = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """The configuration of one source (None: not given). `api_key` is a key, or `${NAME}` for an environment variable."""

    kind: str | None = None
    model: str | None = None
    base_url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    timeout_ms: int | None = None
    deadline_ms: int | None = None
    retry_attempts: int | None = None
    retry_backoff_ms: int | None = None

    def over(self, below: EmbeddingConfig) -> EmbeddingConfig:
        """This configuration, with missing values taken from `below`."""
        if self.kind not in (None, below.kind or DEFAULT_KIND):
            # The model, URL and key of one kind of provider do not apply to another.
            below = replace(below, model=None, base_url=None, api_key=None)
        pairs = {part.name: (getattr(self, part.name), getattr(below, part.name)) for part in fields(self)}
        return EmbeddingConfig(**{name: lower if upper is None else upper for name, (upper, lower) in pairs.items()})


def from_argument(given: EmbeddingArgument | None) -> EmbeddingConfig:
    """The configuration of the `embedding` argument; raises BadRequest for a wrong name or value."""
    if given is None:
        return EmbeddingConfig()
    if not isinstance(given, str | Mapping):
        raise BadRequest(f"embedding is a kind of provider or a mapping, not {given!r}")
    said: dict[str, object] = {"kind": given} if isinstance(given, str) else dict(given)
    if "provider" in said:
        if "kind" in said:
            raise BadRequest("embedding: `provider` is another word for `kind`; give one of them")
        said["kind"] = said.pop("provider")
    unknown = sorted(str(name) for name in said.keys() - _CHECKS.keys())
    if unknown:
        raise BadRequest(f"embedding: unknown field '{unknown[0]}'; the fields are {', '.join(_CHECKS)}")
    try:
        return _checked({name: value for name, value in said.items() if value is not None}, "embedding: {}".format)
    except ValueError as problem:
        raise BadRequest(str(problem)) from None


def from_environment(environ: Mapping[str, str]) -> EmbeddingConfig:
    """The configuration of the environment; raises EmbeddingError with the variable's name for a wrong value."""
    texts = {name: environ.get(variable, "").strip() for name, variable in _VARIABLES.items()}
    said = {name: int(text) if _is_number(name, text) else text for name, text in texts.items() if text}
    try:
        return _checked(said, _VARIABLES.__getitem__)
    except ValueError as problem:
        raise EmbeddingError(str(problem), provider=texts["kind"] or DEFAULT_KIND) from None


def wants_mock(environ: Mapping[str, str]) -> bool:
    """Whether the environment replaces every provider by the mock."""
    text = environ.get(MOCK_VARIABLE, "").strip().lower()
    if text not in _ON | _OFF:
        raise EmbeddingError(f"{MOCK_VARIABLE} is 1 or 0, not {text!r}", provider=MOCK)
    return text in _ON


# --- values -----------------------------------------------------------------------------------------------------------


def _is_number(name: str, text: str) -> bool:
    return _CHECKS[name] is _positive and text.isdecimal()


def _checked(said: Mapping[str, object], shown: Callable[[str], str]) -> EmbeddingConfig:
    """The values as a configuration; raises ValueError for a wrong value, with its name as shown by `shown`."""
    for name, value in said.items():
        expected = _CHECKS[name](value)
        if expected is not None:
            raise ValueError(f"{shown(name)} is {expected}, not {_shown_value(name, value)}")
    return EmbeddingConfig(**said)  # type: ignore[arg-type]


def _shown_value(name: str, value: object) -> str:
    """A refused value for a message; a key, or a URL that may contain a password, is not shown."""
    is_secret = name == "api_key" or (name == "base_url" and "@" in str(value))
    return "this one" if is_secret else redacted(repr(value))


def _kind(value: object) -> str | None:
    return None if value in KINDS else f"one of {', '.join(KINDS)}"


def _text(value: object) -> str | None:
    return None if isinstance(value, str) and value.strip() else "a text that is not blank"


def _key(value: object) -> str | None:
    # Other characters are not allowed in an HTTP header.
    fits = isinstance(value, str) and value.strip() and value.isascii() and value.strip().isprintable()
    return None if fits else "a text of printable ASCII characters, or `${NAME}`"


def _url(value: object) -> str | None:
    if isinstance(value, str):
        try:
            parts = urlsplit(value)
            fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
            # An unusual URL might not be recognised by the function that redacts passwords.
            if fits and value.isprintable() and not _UNSAFE.search(value):
                return None
        except ValueError:
            pass
    return "an http:// or https:// URL"


def _positive(value: object) -> str | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return None if fits else "a whole number from 1"


#: The checks of values; each returns None, or what the value should be.
_CHECKS: Mapping[str, Callable[[object], str | None]] = {
    "kind": _kind,
    "model": _text,
    "base_url": _url,
    "api_key": _key,
    "timeout_ms": _positive,
    "deadline_ms": _positive,
    "retry_attempts": _positive,
    "retry_backoff_ms": _positive,
}


# The resolved configuration of a provider: the argument, the environment and the defaults, with its key.


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
