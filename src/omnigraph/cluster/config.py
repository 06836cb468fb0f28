"""cluster.yaml as data. Unknown keys are refused, so that a typo never silently changes a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.cluster.sources import FILE, Source
from omnigraph.embedding.provider import DEFAULT_KIND, KINDS, REMOTE
from omnigraph.errors import BadRequest
from omnigraph.policy.strict_yaml import DuplicateKey, read_yaml
from omnigraph.storage.root import Root

PROVIDER_PREFIX = "provider.embedding."
#: The address of the cluster as a whole in `applies_to` of a policy.
CLUSTER = "cluster"

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_FUTURE = frozenset({"apply", "env_file", "pipelines", "embeddings", "ui", "aliases", "bindings"})
_PROFILE = ("kind", "base_url", "model", "api_key")


def is_resource_id(text: str) -> bool:
    """Whether a text can be the id of a graph, a policy or a provider."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True)
class QuerySource:
    """A file of stored queries. `names`: the queries listed in the map form, which the file must contain; None: all."""

    file: str
    path: str
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class GraphConfig:
    """One declared graph. `query_folder`: the folder whose `.gq` files are its queries, None when files are listed."""

    graph_id: str
    schema: str
    query_folder: str | None = None
    query_files: tuple[QuerySource, ...] = ()
    #: The address of its embedding provider.
    provider: str | None = None
    #: `{"allow": [{"base": …, "scope": …}]}`, None when no external blob is allowed.
    external_blobs: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class PolicyConfig:
    """A declared policy, and the addresses to which it applies: graphs, or `cluster`."""

    name: str
    file: str
    applies_to: tuple[str, ...]

    @property
    def kind(self) -> Literal["graph", "cluster"]:
        return "cluster" if self.applies_to == (CLUSTER,) else "graph"


@dataclass(frozen=True)
class ClusterConfig:
    """The content of cluster.yaml."""

    source: Source = field(repr=False)
    root: Root
    is_locking: bool
    providers: Mapping[str, Mapping[str, str]]
    graphs: Mapping[str, GraphConfig]
    policies: Mapping[str, PolicyConfig]
    #: The content of the file as plain data, for its digest.
    content: Mapping[str, Any] = field(repr=False)


def read_config(source: Source, findings: Findings) -> ClusterConfig:
    """Read the cluster.yaml of a declaration. Errors are added to `findings`; raises Stop when there is any."""
    config = _Reader(source, findings).config(_content(source.config_text(findings), findings))
    if not findings.ok:
        raise Stop
    return config


def _content(text: str, findings: Findings) -> dict[str, Any]:
    try:
        found = read_yaml(text)
    except DuplicateKey as error:
        findings.error("duplicate_yaml_key", FILE, error.message)
        raise Stop from None
    except BadRequest as error:
        findings.error("invalid_cluster_yaml", FILE, error.message)
        raise Stop from None
    if not isinstance(found, dict):
        findings.error("invalid_cluster_yaml", FILE, "cluster.yaml must be a mapping")
        raise Stop
    return found


class _Reader:
    """Reads the parts of the file and reports the errors of each; an unusable part is left out."""

    def __init__(self, source: Source, findings: Findings) -> None:
        self._source = source
        self._findings = findings

    def config(self, content: dict[str, Any]) -> ClusterConfig:
        version = content.get("version")
        if version != 1 or not isinstance(version, int) or isinstance(version, bool):
            self._findings.error("unsupported_cluster_config_version", "version", f"version must be 1, not {version!r}")
            raise Stop
        for key in sorted(_FUTURE & content.keys()):
            self._findings.error("future_phase_field", key, f"`{key}` is not supported by this version")
        keys = ("version", "metadata", "storage", "state", "providers", "graphs", "policies")
        given = self._mapping({key: value for key, value in content.items() if key not in _FUTURE}, "", keys)
        self._metadata(given.get("metadata"))
        root = self._storage(given.get("storage"))
        is_locking = self._state(given.get("state"))
        providers = self._providers(given.get("providers"))
        graphs = self._graphs(given.get("graphs"), providers)
        policies = self._policies(given.get("policies"), graphs)
        if root is None or not self._findings.ok:
            raise Stop
        return ClusterConfig(self._source, root, is_locking, providers, graphs, policies, content)

    # --- the head -----------------------------------------------------------------------------------------------------

    def _metadata(self, given: object) -> None:
        about = self._mapping(given, "metadata", ("name",))
        name = about.get("name")
        if "name" in about and (not isinstance(name, str) or not name.strip()):
            self._findings.error("empty_metadata_name", "metadata.name", "the name of a cluster must not be empty")

    def _storage(self, given: object) -> Root | None:
        if given is not None and (not isinstance(given, str) or not given.strip()):
            self._findings.error("invalid_storage_root", "storage", "storage must be a path or a URI")
            return None
        try:
            return self._source.storage(given)
        except BadRequest as error:
            self._findings.error("invalid_storage_root", "storage", error.message)
            return None

    def _state(self, given: object) -> bool:
        about = self._mapping(given, "state", ("backend", "lock"))
        backend, lock = about.get("backend", "cluster"), about.get("lock", True)
        if backend != "cluster":
            self._findings.error(
                "unsupported_state_backend", "state.backend", f"backend must be cluster, not {backend!r}"
            )
        if not isinstance(lock, bool):
            self._invalid("state.lock", "lock must be true or false")
        return lock is not False

    # --- providers ----------------------------------------------------------------------------------------------------

    def _providers(self, given: object) -> dict[str, dict[str, str]]:
        outer = self._mapping(given, "providers", ("embedding",))
        found = {}
        for name, told in self._named(outer.get("embedding"), "providers.embedding"):
            profile = self._provider(told, f"providers.embedding.{name}")
            if profile is not None:
                found[PROVIDER_PREFIX + name] = profile
        return found

    def _provider(self, given: object, path: str) -> dict[str, str] | None:
        told = self._mapping(given, path, (*_PROFILE, "provider"))
        if "provider" in told and "kind" in told:
            self._findings.error(
                "invalid_embedding_provider", path, "`provider` is another word for `kind`; give one of them"
            )
            return None
        kind = told.get("kind", told.get("provider", DEFAULT_KIND))
        if kind not in KINDS:
            self._findings.error(
                "invalid_embedding_provider", f"{path}.kind", f"kind is one of {', '.join(KINDS)}, not {kind!r}"
            )
            return None
        for name in _PROFILE[1:]:
            if name in told and not isinstance(told[name], str):
                self._findings.error("invalid_embedding_provider", f"{path}.{name}", f"{name} must be a text")
                return None
        key = told.get("api_key")
        if key is not None and not _VARIABLE.fullmatch(key):
            # The value may be an API key, so it is not shown.
            self._findings.error(
                "embedding_api_key_inline",
                f"{path}.api_key",
                "api_key names a variable as ${NAME}; never write the key itself",
            )
            return None
        if key is None and kind in REMOTE:
            self._findings.error(
                "embedding_api_key_required", f"{path}.api_key", f"a provider of kind {kind} needs api_key: ${{NAME}}"
            )
            return None
        return {"kind": kind} | {name: told[name] for name in _PROFILE[1:] if name in told}

    # --- graphs -------------------------------------------------------------------------------------------------------

    def _graphs(self, given: object, providers: Mapping[str, object]) -> dict[str, GraphConfig]:
        found = {}
        for graph_id, told in self._named(given, "graphs"):
            path = f"graphs.{graph_id}"
            about = dict(told) if isinstance(told, dict) else told
            if isinstance(about, dict) and "streaming" in about:
                del about["streaming"]
                self._findings.error(
                    "removed_streaming_declaration", f"{path}.streaming", "streaming is no longer declared; remove it"
                )
            graph = self._graph(graph_id, about, path, providers)
            if graph is not None:
                found[graph_id] = graph
        return found

    def _graph(self, graph_id: str, given: object, path: str, providers: Mapping[str, object]) -> GraphConfig | None:
        about = self._mapping(given, path, ("schema", "queries", "embedding_provider", "external_blobs"))
        schema = about.get("schema")
        if not isinstance(schema, str) or not schema.strip():
            self._invalid(f"{path}.schema", "schema must be the path of a .pg file")
            return None
        folder, files = self._queries(about.get("queries"), f"{path}.queries")
        return GraphConfig(
            graph_id,
            schema,
            folder,
            files,
            self._bound_provider(about.get("embedding_provider"), f"{path}.embedding_provider", providers),
            self._external_blobs(about.get("external_blobs"), f"{path}.external_blobs"),
        )

    def _queries(self, given: object, path: str) -> tuple[str | None, tuple[QuerySource, ...]]:
        """The folder and files of `queries:`, which is a folder, a file, a list of files, or a map of names to `{file: …}`."""
        if given is None:
            return None, ()
        if isinstance(given, str):
            return (None, (QuerySource(given, path),)) if given.endswith(".gq") else (given, ())
        if isinstance(given, list):
            if not all(isinstance(item, str) for item in given):
                self._invalid(path, "queries must be a list of files")
                return None, ()
            return None, tuple(QuerySource(item, f"{path}[{place}]") for place, item in enumerate(given))
        if not isinstance(given, dict):
            self._invalid(path, "queries must be a folder, a list of files, or a mapping of names to {file: …}")
            return None, ()
        by_file: dict[str, list[str]] = {}
        for name, told in self._named(given, path):
            file = self._mapping(told, f"{path}.{name}", ("file",)).get("file")
            if not isinstance(file, str):
                self._invalid(f"{path}.{name}.file", "file must be the path of a .gq file")
            else:
                by_file.setdefault(file, []).append(name)
        return None, tuple(QuerySource(file, path, tuple(names)) for file, names in by_file.items())

    def _bound_provider(self, given: object, path: str, providers: Mapping[str, object]) -> str | None:
        if given is None:
            return None
        if not isinstance(given, str) or not given:
            self._invalid(path, "embedding_provider must be the name of a provider")
            return None
        if "." in given and not given.startswith(PROVIDER_PREFIX):
            self._findings.error("wrong_kind_reference", path, f"'{given}' is not an embedding provider")
            return None
        address = given if given.startswith(PROVIDER_PREFIX) else PROVIDER_PREFIX + given
        if address not in providers:
            self._findings.error(
                "dangling_embedding_provider_reference", path, f"no embedding provider '{given}' is declared"
            )
            return None
        return address

    def _external_blobs(self, given: object, path: str) -> dict[str, Any] | None:
        if given is None:
            return None
        if not isinstance(given, dict) or given.keys() != {"allow"} or not isinstance(given["allow"], list):
            self._findings.error(
                "invalid_external_blob_policy", path, "external_blobs must be {allow: [{base, scope}]}"
            )
            return None
        listed = []
        for place, item in enumerate(given["allow"]):
            where = f"{path}.allow[{place}]"
            if not isinstance(item, dict) or item.keys() != {"base", "scope"}:
                self._findings.error("invalid_external_blob_policy", where, "an entry is {base: URI, scope: …}")
                continue
            if item["scope"] not in ("server_safe", "embedded_only"):
                self._findings.error(
                    "invalid_external_blob_policy", f"{where}.scope", "scope is server_safe or embedded_only"
                )
            base = item["base"]
            if not isinstance(base, str) or not re.fullmatch(r"(s3://[^/?#]+|file://)/([^?#]*/)?", base):
                self._findings.error(
                    "invalid_external_blob_base",
                    f"{where}.base",
                    "base is an s3:// or file:// URI that ends in a slash",
                )
            listed.append({"base": base, "scope": item["scope"]})
        return {"allow": listed} if listed else None

    # --- policies -----------------------------------------------------------------------------------------------------

    def _policies(self, given: object, graphs: Mapping[str, object]) -> dict[str, PolicyConfig]:
        found: dict[str, PolicyConfig] = {}
        bound: dict[str, str] = {}
        for name, told in self._named(given, "policies"):
            path = f"policies.{name}"
            about = self._mapping(told, path, ("file", "applies_to"))
            file, listed = about.get("file"), about.get("applies_to")
            if not isinstance(file, str) or not file.strip():
                self._invalid(f"{path}.file", "file must be the path of a policy file")
                continue
            if not isinstance(listed, list) or not listed or not all(isinstance(item, str) for item in listed):
                self._findings.error(
                    "policy_missing_applies_to", f"{path}.applies_to", "a policy applies to graphs, or to [cluster]"
                )
                continue
            scopes = [scope for item in listed if (scope := self._scope(item, path, graphs)) is not None]
            if CLUSTER in scopes and set(scopes) != {CLUSTER}:
                self._findings.error(
                    "policy_mixed_binding_kinds",
                    f"{path}.applies_to",
                    "a policy applies to graphs or to the cluster, not to both; split it",
                )
                continue
            for scope in dict.fromkeys(scopes):
                if scope in bound:
                    self._findings.error(
                        "duplicate_policy_binding",
                        f"{path}.applies_to",
                        f"policies '{bound[scope]}' and '{name}' both apply to {scope}; one policy per scope",
                    )
                bound.setdefault(scope, name)
            found[name] = PolicyConfig(name, file, tuple(sorted(set(scopes))))
        return found

    def _scope(self, item: str, path: str, graphs: Mapping[str, object]) -> str | None:
        """The address of an `applies_to` entry of a policy; None when it is invalid."""
        if item == CLUSTER:
            return CLUSTER
        if "." in item and not item.startswith("graph."):
            self._findings.error("wrong_kind_reference", f"{path}.applies_to", f"'{item}' is not a graph")
            return None
        graph_id = item.removeprefix("graph.")
        if graph_id not in graphs:
            self._findings.error("dangling_graph_reference", f"{path}.applies_to", f"no graph '{graph_id}' is declared")
            return None
        return f"graph.{graph_id}"

    # --- shapes -------------------------------------------------------------------------------------------------------

    def _mapping(self, given: object, path: str, known: tuple[str, ...]) -> dict[str, Any]:
        """A mapping with known keys; None counts as an empty mapping."""
        if given is None:
            return {}
        if not isinstance(given, dict):
            self._invalid(path, "must be a mapping")
            return {}
        for key in given:
            if key not in known:
                names = ", ".join(f"`{name}`" for name in known)
                self._invalid(f"{path}.{key}" if path else str(key), f"unknown field `{key}`, expected one of {names}")
        return {key: value for key, value in given.items() if key in known}

    def _named(self, given: object, path: str) -> list[tuple[str, object]]:
        """The entries of a mapping whose keys are ids; entries with an invalid id are reported and left out."""
        if given is None:
            return []
        if not isinstance(given, dict):
            self._invalid(path, "must be a mapping")
            return []
        found = []
        for name, value in given.items():
            if isinstance(name, str) and is_resource_id(name):
                found.append((name, value))
            else:
                self._findings.error(
                    "invalid_resource_id",
                    f"{path}.{name}",
                    f"'{name}' is no id: it begins with a letter or `_`, then letters, digits, `_` and `-`",
                )
        return found

    def _invalid(self, path: str, message: str) -> None:
        self._findings.error("invalid_cluster_yaml", path or FILE, message)
