"""Servers as the command line addresses them: by name or URL, with the token that belongs there."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.cli.credentials import token_for
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest, Denied, redacted


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
