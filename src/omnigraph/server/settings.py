"""The settings of a server: its graphs, its address and its limits. They can be pickled for worker processes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from omnigraph.errors import BadRequest
from omnigraph.policy.bundle import Bundle
from omnigraph.query.limits import parse_size

MIB = 2**20
GIB = 2**30

GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
RESERVED_IDS = frozenset({"policies", "healthz", "openapi", "graphs"})

#: The error message for an unreadable request, or one with too large a head.
HEAD_TOO_LARGE = "this is no HTTP request, or its head is too large"

#: The permissions without a policy: "open" (no tokens), "default-deny" (a token may read only), "full" (a token may do
#: everything).
Rights = Literal["open", "default-deny", "full"]


@dataclass(frozen=True)
class GraphSource:
    """A served graph. `queries`: files or folders of stored queries. `policy`: its policy, or None."""

    graph_id: str
    uri: str
    queries: tuple[str, ...] = ()
    policy: Bundle | None = None


@dataclass(frozen=True)
class Limits:
    """The bounds of a server; `OMNIGRAPH_…` variables and the configuration file change them."""

    #: The most bytes of a request body, and of a body that is streamed into a load.
    body_bytes: int = MIB
    load_bytes: int = GIB
    #: Concurrent writing requests per actor: their number, and their estimated bytes.
    actor_requests: int = 16
    actor_bytes: int = 4 * GIB
    #: Seconds a read query may take.
    query_seconds: float = 30.0
    #: Threads for calls that read, and for calls that write.
    read_threads: int = 16
    write_threads: int = 8
    #: Seconds a request waits for a thread.
    queue_seconds: float = 10.0
    #: Concurrent exports of one graph, and in this process; and the seconds that an export waits for a slot.
    graph_exports: int = 1
    exports: int = 8
    export_wait_seconds: float = 0.25
    #: The most bytes of the results of export jobs.
    job_result_bytes: int = 4 * GIB
    #: Seconds between two parts of a request body; `send_seconds`: until the client accepts a part of the answer.
    receive_seconds: float = 30.0
    #: Bytes a second: a body (except of a streamed load) may take `receive_seconds`, and longer only at this rate.
    receive_rate: int = 4096
    send_seconds: float = 60.0
    #: How many wrong tokens from an address within a minute are answered at once, and the delay in seconds of further ones.
    free_failures: int = 100
    failure_seconds: float = 1.0
    #: The most bytes of the head of a request: the request line and all headers.
    head_bytes: int = 64 * 1024


@dataclass(frozen=True)
class Settings:
    """The settings of a server process."""

    graphs: tuple[GraphSource, ...] = ()
    #: The cluster whose applied revision is served, instead of `graphs`.
    cluster: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    rights: Rights = "full"
    #: The policy for the server as a whole.
    policy: Bundle | None = None
    #: A token made for one run of the server; None when tokens come from the environment or are not needed.
    one_time_token: str | None = None
    read_only: bool = False
    require_all_graphs: bool = False
    #: Whether Studio is served at `/`, and the one-time key for the browser that is opened for it.
    studio: bool = False
    studio_key: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    drain_seconds: int = 30
    #: A folder that the worker processes of this run share; None when there is one process.
    shared_folder: str | None = None
    #: The process id of the supervisor of this run's workers; None when there is one process.
    supervisor: int | None = None
    limits: Limits = field(default_factory=Limits)


def graph_source(text: str) -> GraphSource:
    """The graph of a command line argument: a URI, whose file name gives the id, or `name=URI`."""
    name, equals, rest = text.partition("=")
    if equals and rest and GRAPH_ID.fullmatch(name):
        return checked_source(GraphSource(name, rest))
    return checked_source(GraphSource(PurePosixPath(text.rstrip("/")).name.removesuffix(".omni"), text))


def checked_source(source: GraphSource) -> GraphSource:
    """The source; raises BadRequest when its id can not be part of a URL path."""
    if not GRAPH_ID.fullmatch(source.graph_id) or source.graph_id in RESERVED_IDS:
        raise BadRequest(
            f"'{source.graph_id}' can not be the id of a graph: it has 1 to 64 letters, digits and `-`, and is none of "
            f"{', '.join(sorted(RESERVED_IDS))}; give it as name={source.uri}"
        )
    return source


def refuse_twice(sources: tuple[GraphSource, ...]) -> None:
    """Raise BadRequest when two graphs have the same id."""
    seen: set[str] = set()
    for source in sources:
        if source.graph_id in seen:
            raise BadRequest(f"two graphs have the id '{source.graph_id}'; name one of them with name={source.uri}")
        seen.add(source.graph_id)


def split_address(text: str) -> tuple[str, int]:
    """The host and port of `host:port` or `[v6]:port`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise BadRequest(f"an address is host:port, such as 127.0.0.1:8080, not '{text}'")
    return host.removeprefix("[").removesuffix("]"), int(port)


def limits_of_environment(environment: Mapping[str, str], base: Limits) -> Limits:
    """The limits with the values of environment variables."""
    changes: dict[str, Any] = {}
    for variable, name, read in (
        ("OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", "actor_requests", _whole),
        ("OMNIGRAPH_PER_ACTOR_BYTES_MAX", "actor_bytes", parse_size),
        ("OMNIGRAPH_QUERY_TIMEOUT", "query_seconds", _seconds),
    ):
        if environment.get(variable):
            changes[name] = read(environment[variable], variable)
    return _changed(base, changes)


# --- the configuration file -------------------------------------------------------------------------------------------

#: The keys of `server.yaml` that are also command line flags; `graphs` and `limits` exist only in the file.
FILE_KEYS = frozenset(
    {
        "bind",
        "workers",
        "read_only",
        "unauthenticated",
        "full_access",
        "tls_cert",
        "tls_key",
        "drain_seconds",
        "require_all_graphs",
        "studio",
        "graphs",
        "limits",
    }
)


def read_config(path: str) -> dict[str, Any]:
    """The content of `server.yaml`; unknown keys are refused. Relative paths are relative to the file."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise BadRequest(f"cannot read '{path}': {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} is not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict):
        raise BadRequest(f"{path} must be a mapping")
    found = {str(key).replace("-", "_"): value for key, value in content.items()}
    if unknown := sorted(found.keys() - FILE_KEYS):
        raise BadRequest(f"{path}: unknown key '{unknown[0]}'; the keys are {', '.join(sorted(FILE_KEYS))}")
    return found


def graphs_of_config(given: object, folder: Path) -> tuple[GraphSource, ...]:
    """The graphs of the key `graphs` of the file: ids with a URI, or with `{uri, queries}`."""
    if not isinstance(given, dict):
        raise BadRequest("`graphs` maps ids to a URI, or to {uri: …, queries: …}")
    found = []
    for graph_id, told in given.items():
        about = {"uri": told} if isinstance(told, str) else told
        if not isinstance(about, dict) or not isinstance(about.get("uri"), str) or about.keys() - {"uri", "queries"}:
            raise BadRequest(f"graph '{graph_id}' needs a URI, or a mapping of `uri` and, if it has some, `queries`")
        queries = about.get("queries", [])
        listed = [queries] if isinstance(queries, str) else queries
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise BadRequest(f"`queries` of graph '{graph_id}' is a folder, a file, or a list of them")
        places = tuple(str(folder / item) for item in listed)
        found.append(checked_source(GraphSource(str(graph_id), _placed(about["uri"], folder), places)))
    return tuple(found)


def _placed(uri: str, folder: Path) -> str:
    return uri if "://" in uri else str(folder / uri)


def limits_of_config(given: object) -> Limits:
    """The limits of the key `limits` of the file, by the names of `Limits`; sizes may be texts such as 512MiB."""
    if not isinstance(given, dict):
        raise BadRequest("`limits` is a mapping")
    known = {limit.name: limit.type for limit in fields(Limits)}
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise BadRequest(f"unknown limit '{name}'; the limits are {', '.join(known)}")
        if str(name).endswith("_bytes"):
            changes[name] = parse_size(value, name)
        elif known[name] == "float":
            changes[name] = _seconds(value, name)
        else:
            changes[name] = _whole(value, name)
    return _changed(Limits(), changes)


def _changed(base: Limits, changes: Mapping[str, Any]) -> Limits:
    return replace(base, **changes) if changes else base


def _whole(value: object, name: str) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) < 1:
        raise BadRequest(f"{name} is a whole number above 0, not {value!r}")
    return int(text)


def _seconds(value: object, name: str) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 2**31:
        raise BadRequest(f"{name} is a number of seconds above 0, not {value!r}")
    return seconds


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_set(environment: Mapping[str, str], variable: str) -> bool:
    """Whether a switch of the environment is on."""
    return environment.get(variable, "") == "1"
