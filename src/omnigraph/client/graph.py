"""`RemoteGraph`: the verbs of a graph, over HTTP. Results and errors are those of `omnigraph.open`."""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from omnigraph.client.history import Reference, RemoteHistory, new_key, refuse_actor, segment
from omnigraph.client.transport import encoded
from omnigraph.client.uploads import upload_of
from omnigraph.client.values import RemoteBlob, RemoteSnapshot
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, Conflict, ManifestContention, OmnigraphError, PreconditionFailed
from omnigraph.evolution.apply import Applied
from omnigraph.evolution.plan import Plan
from omnigraph.graph.loading import edges_again_text
from omnigraph.graph.sources import read_source
from omnigraph.graph.verbs import AnyGraph
from omnigraph.ids import new_ulid
from omnigraph.load.model import LoadResult
from omnigraph.merge.result import MergeResult
from omnigraph.mutation.execute import MutationResult
from omnigraph.query.explain import Explanation
from omnigraph.query.limits import Cancel, parse_size
from omnigraph.query.result import Result
from omnigraph.wire import results
from omnigraph.wire.arrow import ARROW_STREAM, result_of
from omnigraph.wire.failures import LIBRARY, LIBRARY_JSON

_Done = TypeVar("_Done")


class RemoteGraph(RemoteHistory):
    """A graph of a server. Safe to use from threads; bound to a branch, main unless `at` says otherwise."""

    #: Of a handle that `retrying` gives out: the head at the call.
    _since: str | None = None

    def at(self, branch: str) -> RemoteGraph:
        """A handle on the same graph that is bound to another branch."""
        bound = RemoteGraph(self._transport, branch)
        bound.head()
        return bound

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self.is_closed = True
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteGraph({self.uri!r}, branch={self.branch!r})"

    # --- queries ----------------------------------------------------------------------------------------------------

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: str = "local",
        schema: Literal["now", "then"] = "now",
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Result:
        """Run a read query on a branch as it is now, or on a snapshot; see `Graph.query`."""
        if engine != "local":
            raise BadRequest(f"engine '{engine}' is not available; the engines are local")
        body = self._asked(source, name, params, branch, snapshot)
        if schema != "now":
            body["schema"] = schema
        if memory_limit is not None:
            body["memory_limit"] = parse_size(memory_limit, "memory_limit")
        headers = {"Accept": f"{ARROW_STREAM}, {LIBRARY_JSON}", "Content-Type": "application/json"}
        answer = self._transport.request(
            "POST", "/query", content=encoded(body), headers=headers | _deadline(timeout), safe=True, cancel=cancel
        )
        return result_of(answer.content)

    def explain(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        analyze: bool = False,
        timeout: float | None = None,
    ) -> Explanation:
        """How a read query is answered."""
        body = self._asked(source, name, params, branch, snapshot) | {"analyze": analyze}
        return Explanation(**self._transport.post("/explain", body, safe=True, headers=_deadline(timeout)))

    def _asked(
        self,
        source: str | Path,
        name: str | None,
        params: Mapping[str, object] | None,
        branch: str | None,
        snapshot: Reference,
    ) -> dict[str, Any]:
        if branch is not None and snapshot is not None:
            raise BadRequest("branch and snapshot exclude each other: a snapshot says itself what is read; give one")
        text, _ = read_source(source)
        place = {"branch": self._named(branch)} if snapshot is None else {"snapshot": self._reference(snapshot)}
        return {"query": text, "name": name, "params": None if params is None else dict(params)} | place

    # --- writing ----------------------------------------------------------------------------------------------------

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        message: str | None = None,
    ) -> MutationResult:
        """Run a mutation: one commit for all of its statements, or none when nothing changed."""
        refuse_actor(actor)
        text, _ = read_source(source)
        body = {
            "query": text,
            "name": name,
            "params": None if params is None else dict(params),
            "branch": self._named(branch),
            "message": message,
        }
        required = if_commit or (self._since if self._named(branch) == self.branch else None)
        path = "/mutate" if required is None else "/mutate/if-graph-commit"
        condition = {} if required is None else {"Omnigraph-If-Graph-Commit": required}
        return results.mutation_of(self._written(path, body, idempotency_key, condition))

    def load(
        self,
        data: Any,
        mode: Literal["append", "merge", "update", "overwrite"] = "append",
        *,
        branch: str | None = None,
        base: str | None = None,
        actor: str | None = None,
        lenient: bool = False,
        format: Literal["jsonl", "parquet", "csv"] | None = None,
        type: str | None = None,
        edge: str | None = None,
        mapping: Mapping[str, str] | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> LoadResult:
        """Load rows: all of them in one commit, or none. They are sent as a stream of JSON lines."""
        refuse_actor(actor)
        upload = upload_of(data, format, type, edge, mapping)
        params = {"branch": self._named(branch), "from": base, "mode": mode, "if_commit": if_commit}
        headers = {
            "Content-Type": "application/x-ndjson",
            "Idempotency-Key": idempotency_key or new_ulid(),
        }
        try:
            answer = self._transport.request(
                "POST",
                "/load/ndjson",
                params=params | ({"lenient": "true"} if lenient else {}),
                content=_Again(upload.content),
                headers=headers,
                safe=upload.repeatable,
            )
        except OmnigraphError as error:
            raise upload.placed(error) from None
        loaded = results.load_of(answer.json()[LIBRARY])
        if loaded.report.edges_again:
            warnings.warn(edges_again_text(loaded.report.edges_again), stacklevel=2)
        return loaded

    def ingest(
        self,
        data: Any,
        branch: str,
        base: str | None = None,
        mode: Literal["append", "merge", "update", "overwrite"] = "merge",
        **options: Any,
    ) -> LoadResult:
        """Load into a branch that is created from `base` when there is none of its name."""
        return self.load(data, mode, branch=branch, base=self._named(base), **options)

    def _written(
        self, path: str, body: Any, idempotency_key: str | None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The library's form of the answer to a write. A key is made for it, so that it may be sent again."""
        sent = {"Idempotency-Key": idempotency_key or new_ulid(), **(headers or {})}
        return self._transport.post(path, body, safe=True, headers=sent)[LIBRARY]

    def retrying(self, work: Callable[[RemoteGraph], _Done], *, attempts: int = 20) -> _Done:
        """Read, decide and write as if nobody else wrote: `work` is called again when the branch has moved meanwhile."""
        if attempts < 1:
            raise BadRequest(f"attempts is at least 1, not {attempts}")
        for number in range(1, attempts + 1):
            handle = RemoteGraph(self._transport, self.branch)
            handle._since = self.head().id
            try:
                return work(handle)
            except (PreconditionFailed, ManifestContention):
                if number == attempts:
                    raise
            time.sleep(random.uniform(0, min(0.5, 0.005 * 2**number)))
        raise AssertionError("the last attempt has returned or raised")

    # --- branches ---------------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of all branches: main first, then by name."""
        names: list[str] = self._transport.get("/branches")["branches"]
        return [MAIN, *(name for name in names if name != MAIN)]

    def create_branch(self, name: str, base: str | None = None, *, actor: str | None = None) -> RemoteSnapshot:
        """Make a branch at the current head of `base` (this handle's branch unless given)."""
        refuse_actor(actor)
        self._transport.post("/branches", {"name": name, "from": self._named(base)}, safe=True, headers=new_key())
        return self.snapshot(name)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Remove a branch that no other branch depends on."""
        refuse_actor(actor)
        if name == self.branch and name != MAIN:
            raise Conflict(f"cannot delete branch '{name}': it is the currently active branch of this handle")
        self._transport.request("DELETE", f"/branches/{segment(name)}", headers=new_key(), safe=True)

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        delete_branch: bool = False,
        actor: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> MergeResult:
        """Merge a branch into another one (this handle's branch unless given): one commit with two parents."""
        refuse_actor(actor)
        body = {
            "source": source,
            "target": self._named(into),
            "delete_branch": delete_branch,
            "options": _merge_options(options),
        }
        return results.merge_of(self._written("/branches/merge", body, idempotency_key))

    def revert(self, commit: str, branch: str | None = None, **options: Any) -> MergeResult:
        """Publish the inverse of a commit on a branch."""
        return self._picked("/revert", commit, branch, options)

    def cherry_pick(self, commit: str, onto: str | None = None, **options: Any) -> MergeResult:
        """Apply to a branch what one commit changed against its first parent."""
        return self._picked("/cherry-pick", commit, onto, options)

    def _picked(self, path: str, commit: str, branch: str | None, options: dict[str, Any]) -> MergeResult:
        refuse_actor(options.pop("actor", None))
        key = options.pop("idempotency_key", None)
        body = {"commit": commit, "branch": self._named(branch), "options": _merge_options(options)}
        return results.merge_of(self._written(path, body, key))

    # --- entities ---------------------------------------------------------------------------------------------------

    def entity(
        self,
        kind: Literal["node", "edge"],
        type_name: str,
        entity_id: str,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
    ) -> dict[str, Any] | None:
        """One entity as a dict, or None when there is none with this id."""
        asked = {"entity": kind, "type": type_name, "id": entity_id} | self._place(branch, snapshot)
        found: dict[str, Any] | None = self._transport.get("/entity", asked)["entity"]
        return found

    def read_blob(
        self,
        kind: Literal["node", "edge"],
        type_name: str,
        entity_id: str,
        property: str,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
    ) -> RemoteBlob:
        """One blob value: its size and ETag at once, its bytes by `read(start, end)`."""
        asked = {"entity": kind, "type": type_name, "id": entity_id, "property": property}
        params = asked | self._place(branch, snapshot)
        try:
            answer = self._transport.request("HEAD", "/blob", params=params, safe=True)
        except OmnigraphError:
            # The answer to HEAD has no body that says what is wrong; that to GET has one.
            answer = self._transport.request("GET", "/blob", params=params, headers={"Range": "bytes=0-0"}, safe=True)
        snapshot_id = answer.headers["omnigraph-snapshot-id"]
        if answer.status_code == 302:
            return RemoteBlob("external", None, None, answer.headers["location"], snapshot_id, lambda start, end: b"")

        def fetch(start: int, end: int) -> bytes:
            pinned = asked | {"snapshot": snapshot_id}
            part = {"Range": f"bytes={start}-{end - 1}"}
            return self._transport.request("GET", "/blob", params=pinned, headers=part, safe=True).content

        length = int(answer.headers["content-length"])
        return RemoteBlob("managed", length, answer.headers["etag"].strip('"'), None, snapshot_id, fetch)

    # --- schema -----------------------------------------------------------------------------------------------------

    def schema(self) -> str:
        """The accepted schema source."""
        return str(self._transport.get("/schema")["schema_source"])

    def plan_schema(self, schema: str | Path, *, allow_data_loss: bool = False) -> Plan:
        """What applying a schema would do."""
        body = {"schema_source": read_source(schema, ".pg")[0], "allow_data_loss": allow_data_loss}
        return results.plan_of(self._transport.post("/schema/plan", body, safe=True))

    def apply_schema(self, schema: str | Path, *, allow_data_loss: bool = False, actor: str | None = None) -> Applied:
        """Make a schema the accepted one, in one commit; none when it is already."""
        refuse_actor(actor)
        body = {"schema_source": read_source(schema, ".pg")[0], "allow_data_loss": allow_data_loss}
        told = self._transport.post("/schema/apply", body, safe=True, headers=new_key())
        return results.applied_of(told, told[LIBRARY]["commit"])

    # --- export -----------------------------------------------------------------------------------------------------

    def export(
        self,
        out: str | os.PathLike[str],
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        types: Collection[str] | None = None,
        format: Literal["jsonl", "parquet"] = "jsonl",
        files: Literal["one", "many"] = "one",
    ) -> int:
        """Write the nodes and edges of a snapshot as JSON lines; returns how many there are."""
        from omnigraph.storage.outputs import Output

        if format != "jsonl" or files != "one":
            raise BadRequest("a served export is one stream of JSON lines; open the graph with og.open for other files")
        count = 0

        def counted() -> Iterator[bytes]:
            nonlocal count
            for piece in self.export_chunks(branch=branch, snapshot=snapshot, types=types):
                count += piece.count(b"\n")
                yield piece

        place = os.fspath(out)
        if place == "-":
            for piece in counted():
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        else:
            Output.parse(place).write(counted())
        return count

    def export_chunks(
        self, *, branch: str | None = None, snapshot: Reference = None, types: Collection[str] | None = None
    ) -> Iterator[bytes]:
        """The lines of an export, piece by piece."""
        named = [types] if isinstance(types, str) else types
        body = self._place(branch, snapshot) | ({} if named is None else {"type_names": list(named)})
        with self._transport.stream("/export", body) as pieces:
            yield from pieces

    def refresh(self) -> list[Any]:
        """Nothing is kept that could be old; recovery is the server's."""
        return []


class _Again:
    """A body that is made anew each time it is sent."""

    def __init__(self, make: Callable[[], Iterator[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return self._make()


def _deadline(timeout: float | None) -> dict[str, str]:
    if timeout is None:
        return {}
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 2**31:
        raise BadRequest(f"timeout is a number of seconds above 0, not {timeout!r}")
    return {"Omnigraph-Timeout-Ms": str(max(1, round(timeout * 1000)))}


def _merge_options(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The options of a merge as the server takes them; where it is judged is the server's affair."""
    return {name: value for name, value in options.items() if name != "engine" and value is not None} or None


def _has_every_verb(graph: RemoteGraph) -> AnyGraph:
    """The type checker compares the class with the protocol here."""
    return graph
