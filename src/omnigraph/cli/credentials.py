"""Tokens of servers: the file `credentials` beside the configuration, and which token goes to which URL."""

from __future__ import annotations

import configparser
import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from omnigraph.cli.operator_config import OperatorConfig, config_path
from omnigraph.errors import BadRequest
from omnigraph.ids import new_ulid

#: What nobody but the owner may have is a mode without these bits.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PORTS = {"http": 80, "https": 443}


def credentials_path() -> Path:
    """Where tokens are kept, whether the file exists or not."""
    return config_path().with_name("credentials")


def store_token(name: str, token: str) -> None:
    """Keep the token of a server, in place of an earlier one. Nobody else can read the file."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadRequest(
            "a token is one word of printable ASCII characters; pass --token, or one line of standard input"
        )
    if not name or not name.isprintable() or "]" in name or name != name.strip():
        raise BadRequest(f"{name!r} can not be the name of a server")
    found = _read()
    if not found.has_section(name):
        found.add_section(name)
    found.set(name, "token", token)
    _write(found)


def remove_token(name: str) -> bool:
    """Forget the token of a server; returns whether there was one."""
    found = _read()
    if not found.remove_section(name):
        return False
    _write(found)
    return True


def token_for(config: OperatorConfig, url: str, called: str) -> str | None:
    """The token for a URL; None when there is none.

    A token belongs to a configured server, and goes only to URLs under that server's: `OMNIGRAPH_TOKEN_<NAME>`, else the one
    of the credentials file. `OMNIGRAPH_BEARER_TOKEN` goes to any. `called`: the name that the server was addressed by.
    """
    under = {name: base for name, base in config.servers.items() if _lies_under(url, base)}
    if under:
        name = max(under, key=lambda found: (len(urlsplit(under[found]).path.rstrip("/")), found == called))
        given = os.environ.get(f"OMNIGRAPH_TOKEN_{name.upper().replace('-', '_')}")
        if given:
            return given
        stored = _read().get(name, "token", fallback=None)
        if stored:
            return stored
    return os.environ.get("OMNIGRAPH_BEARER_TOKEN") or None


def _lies_under(url: str, base: str) -> bool:
    """Whether a URL is another one, or continues it after a slash."""
    asked, known = urlsplit(url), urlsplit(base)
    if _origin(url) != _origin(base):
        return False
    path, prefix = asked.path.rstrip("/"), known.path.rstrip("/")
    return path == prefix or path.startswith(f"{prefix}/")


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise BadRequest(f"the port of {url} is no number") from None
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), port or _PORTS.get(scheme)


def _read() -> configparser.RawConfigParser:
    # No section is special, and no `%` has a meaning.
    found = configparser.RawConfigParser(default_section="", interpolation=None)
    path = credentials_path()
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            raise BadRequest(
                f"{path} holds tokens and can be read by others (mode {stat.S_IMODE(mode):04o}); run `chmod 600 {path}`"
            )
        found.read_string(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return found
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    except configparser.Error:
        # What is wrong may be quoted in the error, and may be a token.
        raise BadRequest(
            f"{path} is not made of `[server]` and `token = …` lines; remove it and log in again"
        ) from None
    return found


def _write(found: configparser.RawConfigParser) -> None:
    path = credentials_path()
    temporary = path.with_name(f".{path.name}.{new_ulid()}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            found.write(file)
        temporary.replace(path)
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
