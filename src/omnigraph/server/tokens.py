"""Bearer tokens: their sources, and the actor of a token. Only SHA-256 digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import BadRequest, Unauthorized

SECRET_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
FILE_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
JSON_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
TOKEN_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKEN"

#: The actor of a single token, from the environment or made for one run.
DEFAULT_ACTOR = "default"


@dataclass(frozen=True)
class Tokens:
    """Actors by the digest of their token."""

    actors: tuple[tuple[bytes, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.actors)

    def actor_of(self, token: str) -> str | None:
        """The actor of a token, or None. Every known digest is compared, each in constant time."""
        given = _digest(token)
        found = None
        for digest, actor in self.actors:
            if hmac.compare_digest(digest, given):
                found = actor
        return found


def new_token() -> str:
    """A token that nobody can guess."""
    return f"ogt_{secrets.token_urlsafe(32)}"


def one_token(token: str) -> Tokens:
    """A single token, of the actor `default`."""
    return _tokens([(DEFAULT_ACTOR, token)], "the token")


def read_tokens(environment: Mapping[str, str]) -> Tokens:
    """The tokens of the environment, possibly none. Blank and duplicate tokens are refused."""
    if environment.get(SECRET_VARIABLE):
        return _tokens(_pairs(_aws_secret(environment[SECRET_VARIABLE]), SECRET_VARIABLE), SECRET_VARIABLE)
    if environment.get(FILE_VARIABLE):
        return _tokens(_pairs(_file_text(environment[FILE_VARIABLE]), FILE_VARIABLE), FILE_VARIABLE)
    if environment.get(JSON_VARIABLE):
        return _tokens(_pairs(environment[JSON_VARIABLE].encode(), JSON_VARIABLE), JSON_VARIABLE)
    if TOKEN_VARIABLE in environment:
        return _tokens([(DEFAULT_ACTOR, environment[TOKEN_VARIABLE])], TOKEN_VARIABLE)
    return Tokens()


def bearer_token(header: Iterable[str]) -> str:
    """The token of the Authorization header `Bearer <token>`; raises Unauthorized unless there is exactly one."""
    given = list(header)
    if not given:
        raise Unauthorized("missing bearer token")
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme != "Bearer" or not token or token != token.strip():
        raise Unauthorized("missing bearer token" if scheme != "Bearer" else "invalid bearer token")
    return token


def _tokens(pairs: Iterable[tuple[str, str]], origin: str) -> Tokens:
    known: dict[bytes, str] = {}
    for actor, token in pairs:
        if not actor.strip():
            raise BadRequest(f"{origin}: an actor is blank")
        if not token.strip():
            raise BadRequest(f"{origin}: the token of actor '{actor}' is blank")
        if actor in known.values():
            raise BadRequest(f"{origin}: actor '{actor}' is there twice")
        digest = _digest(token)
        if digest in known:
            raise BadRequest(f"{origin}: actors '{known[digest]}' and '{actor}' have the same token")
        known[digest] = actor
    if not known:
        raise BadRequest(f"{origin} holds no token")
    return Tokens(tuple(known.items()))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class _Entries(list[tuple[str, str]]):
    """The entries of a JSON object, in order."""


def _pairs(text: bytes, origin: str) -> list[tuple[str, str]]:
    """The entries of a JSON object of texts. Duplicate names are kept, so that they can be refused."""
    try:
        found = json.loads(text, object_pairs_hook=_Entries)
    except (ValueError, UnicodeDecodeError, RecursionError):
        found = None
    if not isinstance(found, _Entries) or not all(isinstance(token, str) for _, token in found):
        # The text contains tokens, so none of it is shown.
        raise BadRequest(f'{origin} must be a JSON object from actors to tokens: {{"actor": "token"}}')
    return list(found)


def _file_text(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {FILE_VARIABLE} '{path}': {error.strerror or error}") from None


def _aws_secret(name: str) -> bytes:
    """The text of a secret in AWS Secrets Manager; boto3 is an optional extra."""
    try:
        import boto3
    except ImportError:
        raise BadRequest(f"{SECRET_VARIABLE} needs boto3; run `pip install omnigraph[aws]`") from None
    try:
        found = boto3.client("secretsmanager").get_secret_value(SecretId=name)
    except Exception as error:
        raise BadRequest(f"cannot read the secret '{name}': {type(error).__name__}") from None
    return str(found.get("SecretString", "")).encode()
