"""Servers as the command line addresses them: by name or URL, with their tokens; `omnigraph login` and `logout`."""

from __future__ import annotations

import configparser
import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.operator_config import OperatorConfig, config_path
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest, Denied, redacted
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


@dataclass(frozen=True)
class Server:
    """A server: what it was called, its URL, and the token for it."""

    called: str
    url: str
    token: str | None = field(repr=False)

    def graphs(self) -> list[dict[str, str]]:
        """Its graphs, by id: `graph_id` and `uri` of each."""
        from omnigraph.client.graph import served_graphs

        return served_graphs(self.url, token=self.token)

    def only_graph(self) -> str:
        """The id of its only graph; an error that lists them when there are several."""
        try:
            found = [entry["graph_id"] for entry in self.graphs()]
        except Denied as error:
            raise Denied(
                f"server scope '{redacted(self.called)}' needs a graph: pass --graph <id>; the server does not list its "
                f"graphs ({error.message})",
                action=error.action,
                actor=error.actor,
            ) from error
        if len(found) != 1:
            raise BadRequest(
                f"server scope '{redacted(self.called)}' has {len(found)} graphs: [{', '.join(found)}]; "
                "pass --graph <id> to select one"
            )
        return found[0]


def server_at(settings: Settings, address: str) -> Server:
    """The server that a name of the configuration or a URL means."""
    config = settings.config
    url = config.servers.get(address, address)
    if not is_web_address(url):
        if address in config.servers:
            raise BadRequest(f"servers.{address}.url in {config.path} begins with http:// or https://, unlike '{url}'")
        raise BadRequest(f"no server '{address}' is configured; name it under `servers:` in {config.path}")
    return Server(address, url.rstrip("/"), token_for(config, url, address))


def is_web_address(uri: str) -> bool:
    """Whether an address is a server's, and no storage."""
    return uri.lower().startswith(("http://", "https://"))


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@click.option("--token", metavar="TOKEN", help="The credential; one line of stdin unless given.")
@json_option
@click.pass_obj
def login(settings: Settings, name: str, token: str | None, as_json: bool) -> None:
    """Keep a credential for the server NAME."""
    store_token(name, _typed(name) if token is None else token)
    if name not in settings.config.servers:
        output.warn(f"no server '{name}' is configured yet; name it under `servers:` in {settings.config.path}")
    _told(settings, name, f"stored credential for '{name}' in {credentials_path()}", as_json=as_json)


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@json_option
@click.pass_obj
def logout(settings: Settings, name: str, as_json: bool) -> None:
    """Forget the credential for the server NAME."""
    what = "removed credential" if remove_token(name) else "there was no credential"
    _told(settings, name, f"{what} for '{name}' in {credentials_path()}", as_json=as_json)


def _typed(name: str) -> str:
    """One line of standard input; a person at a terminal is asked, and what they type is not shown."""
    if output.is_terminal(sys.stdin):
        typed: str = click.prompt(f"Token for '{name}'", hide_input=True, err=True)
        return typed.strip()
    return "" if sys.stdin is None else sys.stdin.readline().strip()


def _told(settings: Settings, name: str, line: str, *, as_json: bool) -> None:
    if as_json:
        declared = name in settings.config.servers
        output.json({"server": name, "credentials_path": str(credentials_path()), "declared": declared})
    else:
        output.line(line)
