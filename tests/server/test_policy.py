"""Policies at the HTTP boundary and in the engine: every route asks for what it needs before it works, and graphs ask again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.errors import Denied
from omnigraph.policy.actions import Need
from omnigraph.policy.bundle import read_bundle
from omnigraph.policy.decide import Policy
from omnigraph.server.app import operations
from tests.policy.bundles import LISTERS, TEAM
from tests.server.serving import ADD, ALL, SCHEMA, Served, assert_error, serving, settings_of

LOAD = '{"type":"Person","data":{"name":"zoe"}}\n'
#: What a request asks the policy: the action, the branch and the target branch.
Told = tuple[str, str | None, str | None]
READ_MAIN: list[Told] = [("read", "main", None)]
READ_NONE: list[Told] = [("read", None, None)]
CHANGE_MAIN: list[Told] = [("change", "main", None)]

#: Each operation: a request that reaches its decision, and all that it must ask for. COMMIT stands for the head of main.
TABLE: dict[str, tuple[str, str, Any, list[Told]]] = {
    "snapshot": ("GET", "/snapshot?branch=topic", None, [("read", "topic", None)]),
    "query": ("POST", "/query", {"query": ALL}, READ_MAIN),
    "read": ("POST", "/read", {"query_source": ALL, "branch": "topic"}, [("read", "topic", None)]),
    "get_schema": ("GET", "/schema", None, READ_NONE),
    "list_branches": ("GET", "/branches", None, READ_NONE),
    "list_commits": ("GET", "/commits", None, READ_MAIN),
    "get_commit": ("GET", "/commits/COMMIT", None, READ_NONE),
    "get_blob": ("GET", "/blob?entity=node&type=Doc&id=hello&property=content", None, READ_MAIN),
    "head_blob": ("HEAD", "/blob?entity=node&type=Doc&id=hello&property=content", None, READ_MAIN),
    "mutate": ("POST", "/mutate", {"query": ADD, "branch": "topic"}, [("change", "topic", None)]),
    "mutate_if_graph_commit": ("POST", "/mutate/if-graph-commit", {"query": ADD}, CHANGE_MAIN),
    "change": ("POST", "/change", {"query": ADD}, CHANGE_MAIN),
    "transact": (
        "POST",
        "/transactions",
        {"mutations": [{"query": ADD}], "branch": "topic"},
        [("change", "topic", None)],
    ),
    "apply_schema": ("POST", "/schema/apply", {"schema_source": SCHEMA}, [("schema_apply", None, "main")]),
    "create_branch": ("POST", "/branches", {"name": "new"}, [("branch_create", "main", "new")]),
    "delete_branch": ("DELETE", "/branches/gone", None, [("branch_delete", None, "gone")]),
    "merge_branches": (
        "POST",
        "/branches/merge",
        {"source": "merged", "delete_branch": True},
        [("branch_merge", "merged", "main"), ("branch_delete", None, "merged")],
    ),
    "rebase_branch": (
        "POST",
        "/branches/rebase",
        {"branch": "topic"},
        [("branch_merge", "main", "topic")],
    ),
    "list_queries": ("GET", "/queries", None, READ_MAIN),
    "invoke_query": (
        "POST",
        "/queries/people",
        {"branch": "topic"},
        [("invoke_query", None, None), ("read", "topic", None)],
    ),
    "invoke_query_if_graph_commit": (
        "POST",
        "/queries/add_person/if-graph-commit",
        {"params": {"name": "x"}},
        [("invoke_query", None, None), ("change", "main", None)],
    ),
    "load": (
        "POST",
        "/load",
        {"data": LOAD, "branch": "fork", "from": "main"},
        [("branch_create", "main", "fork"), ("change", "fork", None)],
    ),
    "load_ndjson": ("POST", "/load/ndjson?branch=topic", LOAD, [("change", "topic", None)]),
    "ingest": ("POST", "/ingest", {"data": LOAD}, CHANGE_MAIN),
    "commit_changes": ("GET", "/commits/COMMIT/changes", None, READ_MAIN),
    "changes": ("GET", "/changes?branch=%20topic%20", None, [("read", "topic", None)]),
    "changes_stream": ("GET", "/changes/stream", None, READ_MAIN),
    "baseline": ("POST", "/changes/baseline", {}, [("export", "main", None)]),
    "export": ("POST", "/export", {"branch": "topic"}, [("export", "topic", None)]),
    "explain": ("POST", "/explain", {"query": ALL}, READ_MAIN),
    "entity": ("GET", "/entity?entity=node&type=Person&id=ada", None, READ_MAIN),
    "diff": (
        "POST",
        "/diff",
        {"before": "main", "after": "topic"},
        [("read", "main", None), ("read", "topic", None)],
    ),
    "list_tags": ("GET", "/tags", None, READ_MAIN),
    "create_tag": ("POST", "/tags", {"name": "v1"}, CHANGE_MAIN),
    "delete_tag": ("DELETE", "/tags/v1", None, CHANGE_MAIN),
    "revert": (
        "POST",
        "/revert",
        {"commit": "COMMIT", "branch": "topic"},
        [("change", "topic", None), ("read", "main", None)],
    ),
    "cherry_pick": (
        "POST",
        "/cherry-pick",
        {"commit": "COMMIT", "branch": "topic"},
        [("change", "topic", None), ("read", "main", None)],
    ),
    "plan_schema": ("POST", "/schema/plan", {"schema_source": SCHEMA}, READ_NONE),
    "catalog": ("GET", "/catalog", None, READ_NONE),
    "lint": ("POST", "/lint", {"query": ALL}, READ_NONE),
    "neighbours": ("GET", "/neighbours?type=Person&id=ada&branch=topic", None, [("read", "topic", None)]),
    "branch_states": ("GET", "/branches/status", None, READ_NONE),
    "compare": (
        "POST",
        "/compare",
        {"before": "main", "after": "topic"},
        [("read", "main", None), ("read", "topic", None)],
    ),
    "stats": ("GET", "/stats?branch=topic", None, [("read", "topic", None)]),
    "get_config": ("GET", "/config", None, READ_MAIN),
    "set_config": ("PUT", "/config", {"name": "merge.level", "value": "property"}, [("admin", None, None)]),
    "recoveries": ("GET", "/recoveries", None, READ_NONE),
    "ensure_indices": ("POST", "/ensure-indices", {}, [("admin", None, None)]),
    "optimize": ("POST", "/optimize", {"branch": "topic"}, [("admin", None, None)]),
    "cleanup": ("POST", "/cleanup", {"keep": 100}, [("admin", None, None)]),
    "declaration_plan": ("POST", "//cluster/plan", {"files": {}}, [("cluster_plan", None, None)]),
    "declaration_apply": ("POST", "//cluster/apply", {"files": {}}, [("cluster_apply", None, None)]),
    "list_graphs": ("GET", "//graphs", None, [("graph_list", None, None)]),
}
#: Operations about which no policy decides, with the reason.
UNDECIDED = {
    "health": "whether the process answers is told to everybody",
    "ready": "graphs are named only to those who have a token",
    "openapi": "the document is the same for everybody",
    "metrics": "needs a token; numbers of the process, nothing of a graph",
    "permissions": "everybody is told what they themselves may do; about others it needs `admin`",
    "mcp": "each call of a tool asks for what the tool needs; see tests/mcp/test_permissions.py",
    "job": "only who started the job finds it",
    "job_events": "only who started the job finds it",
    "job_result": "only who started the job finds it",
    "cancel_job": "only who started the job finds it",
}
#: What a forbidden request looks like where 403 would tell too much.
HIDDEN = {"invoke_query": 404, "invoke_query_if_graph_commit": 404, "commit_changes": 404}


@dataclass
class Asked:
    """An access rule that records each need it is asked about, and allows all of them or none."""

    allows: bool
    needs: list[Told] = field(default_factory=list)

    def check(self, actor: str | None, need: Need) -> None:
        self.needs.append((need.action, need.branch, need.target))
        if not self.allows:
            raise Denied("no", action=need.action, actor=actor)


@pytest.fixture(scope="module")
def server(graph_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("policy")
    shutil.copytree(graph_template, folder / "people.omni")
    with og.open(folder / "people.omni") as graph:
        graph.create_branch("topic")
        graph.create_branch("gone")
        graph.create_branch("merged")
    with serving(settings_of(folder / "people.omni")) as running:
        yield running


def _with_access(server: Served, rule: Asked) -> None:
    graphs = server.state.graphs
    graphs.access = rule
    graphs.healthy["people"] = replace(graphs.healthy["people"], access=rule)


def _sent(server: Served, name: str) -> httpx.Response:
    method, path, body, _ = TABLE[name]
    with og.open(server.path, "ro") as graph:
        head = graph.head().id
    path = path.replace("COMMIT", head)
    url = path[1:] if path.startswith("//") else f"/graphs/people{path}"
    headers = {"Omnigraph-If-Graph-Commit": head} if name.endswith("if_graph_commit") else {}
    options: dict[str, Any] = {}
    if isinstance(body, str):
        options["content"] = body
        headers["Content-Type"] = "application/x-ndjson"
    elif body is not None:
        options["json"] = {key: head if value == "COMMIT" else value for key, value in body.items()}
    with server.http.stream(method, url, headers=headers, **options) as answer:
        if name != "changes_stream" or answer.status_code != 200:
            answer.read()
    return answer


def test_every_route_has_a_decision(server: Served) -> None:
    routed = {operation.name for operation in operations(server.state)}
    undecided = routed - TABLE.keys() - UNDECIDED.keys()
    assert not undecided, f"these routes need a row in TABLE, or a reason in UNDECIDED: {sorted(undecided)}"
    assert not (TABLE.keys() | UNDECIDED.keys()) - routed


@pytest.mark.parametrize("name", TABLE)
def test_a_denied_request_does_no_work(server: Served, name: str) -> None:
    rule = Asked(allows=False)
    _with_access(server, rule)
    with og.open(server.path, "ro") as graph:
        before = [(branch, graph.head(branch).id) for branch in graph.branches()], graph.tags()
    answer = _sent(server, name)
    assert answer.status_code == HIDDEN.get(name, 403), answer.status_code
    assert rule.needs == TABLE[name][3][:1]
    with og.open(server.path, "ro") as graph:
        assert ([(branch, graph.head(branch).id) for branch in graph.branches()], graph.tags()) == before


@pytest.mark.parametrize("name", TABLE)
def test_what_each_route_asks_for(server: Served, name: str) -> None:
    rule = Asked(allows=True)
    _with_access(server, rule)
    _sent(server, name)
    # A stored query is looked up by each step that needs it, and asks each time.
    assert list(dict.fromkeys(rule.needs)) == TABLE[name][3]


def test_a_branch_of_a_snapshot_is_the_one_that_is_checked(server: Served) -> None:
    rule = Asked(allows=True)
    _with_access(server, rule)
    with og.open(server.path) as graph:
        graph.mutate(ADD, params={"name": "ina"}, branch="topic")
        commit = graph.head("topic").id
    for path, body in (("/query", {"query": ALL}), ("/explain", {"query": ALL}), ("/export", {})):
        rule.needs.clear()
        server.post(path, body | {"snapshot": commit})
        assert [branch for _, branch, _ in rule.needs] == ["topic"], path


# --- a policy on a real server ----------------------------------------------------------------------------------------


@pytest.fixture
def policed(graph_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON", '{"ann":"ogt_ann","bob":"ogt_bob","cleo":"ogt_cleo","eve":"ogt_eve"}'
    )
    settings = settings_of(
        graph_path, rights="default-deny", one_time_token=None, policy=read_bundle(LISTERS, "cluster")
    )
    source = replace(settings.graphs[0], policy=read_bundle(TEAM, "graph"))
    with serving(replace(settings, graphs=(source,))) as running:
        yield running


def _as(actor: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer ogt_{actor}"}}


def test_a_policed_server(policed: Served) -> None:
    add = {"query": ADD, "params": {"name": "new"}}
    assert policed.post("/query", {"query": ALL}, **_as("ann")).status_code == 200
    assert_error(
        policed.post("/mutate", add, **_as("ann")),
        403,
        "forbidden",
        "policy denied action 'change' on branch 'main' for actor 'ann'",
    )
    assert_error(
        policed.post("/query", {"query": ALL}, **_as("eve")),
        403,
        "forbidden",
        "policy denied action 'read' for unknown actor 'eve'",
    )
    assert policed.post("/branches", {"name": "topic"}, **_as("bob")).status_code == 200
    assert policed.post("/mutate", add | {"branch": "topic"}, **_as("bob")).status_code == 200
    assert_error(
        policed.post("/branches/merge", {"source": "topic"}, **_as("bob")),
        403,
        "forbidden",
        "policy denied action 'branch_merge' on branch 'topic' targeting branch 'main' for actor 'bob'",
    )
    assert policed.post("/branches/merge", {"source": "topic"}, **_as("cleo")).status_code == 200
    assert_error(policed.post("/queries/people", {}, **_as("ann")), 404, "not_found", "stored query not found")
    assert policed.post("/queries/people", {}, **_as("bob")).status_code == 200
    assert policed.http.get("/graphs", headers=_as("ann")["headers"]).json()["graphs"][0]["graph_id"] == "people"
    assert_error(
        policed.http.get("/graphs", headers=_as("bob")["headers"]), 403, "forbidden", "for unknown actor 'bob'"
    )


# --- the engine -------------------------------------------------------------------------------------------------------

#: It is refused before it is looked at.
NO_STREAM: Any = None

WRITES: dict[str, tuple[Callable[[og.Graph], object], list[Told]]] = {
    "mutate": (lambda g: g.mutate(ADD, params={"name": "x"}), CHANGE_MAIN),
    "mutate_many": (
        lambda g: g.mutate_many([(ADD, "add", {"name": "x"})], branch="topic"),
        [("change", "topic", None)],
    ),
    "transaction": (lambda g: g.transaction(), CHANGE_MAIN),
    "retrying": (lambda g: g.retrying(lambda h: h.mutate(ADD, params={"name": "x"})), CHANGE_MAIN),
    "load": (lambda g: g.load(LOAD.encode(), "merge"), CHANGE_MAIN),
    "ingest": (
        lambda g: g.ingest(LOAD.encode(), "made"),
        [("branch_create", "main", "made"), ("change", "made", None)],
    ),
    "create_branch": (lambda g: g.create_branch("new"), [("branch_create", "main", "new")]),
    "delete_branch": (lambda g: g.delete_branch("topic"), [("branch_delete", None, "topic")]),
    "merge": (
        lambda g: g.merge("merged", delete_branch=True),
        [("branch_merge", "merged", "main"), ("branch_delete", None, "merged")],
    ),
    "rebase": (lambda g: g.rebase("topic"), [("branch_merge", "main", "topic")]),
    "revert": (lambda g: g.revert(g.head().id), CHANGE_MAIN),
    "cherry_pick": (lambda g: g.cherry_pick(g.head().id, "topic"), [("change", "topic", None)]),
    "apply_schema": (lambda g: g.apply_schema(SCHEMA), [("schema_apply", None, "main")]),
    "tag": (lambda g: g.tag("v1"), CHANGE_MAIN),
    "delete_tag": (lambda g: g.delete_tag("v1"), CHANGE_MAIN),
    "set_config": (lambda g: g.set_config("merge.level", "property"), [("admin", None, None)]),
    "optimize": (lambda g: g.optimize(), [("admin", None, None)]),
    "ensure_indices": (lambda g: g.ensure_indices(), [("admin", None, None)]),
    "cleanup": (lambda g: g.cleanup(keep=1), [("admin", None, None)]),
    "repair": (lambda g: g.repair(confirm=True), [("admin", None, None)]),
    "verify": (lambda g: g.verify(record=True), [("admin", None, None)]),
    "backup": (lambda g: g.backup("elsewhere"), [("admin", None, None)]),
    "stream_load": (lambda g: g.stream_load(NO_STREAM, checkpoint="place"), CHANGE_MAIN),
    "discard_operation": (lambda g: g.discard_operation("x"), [("admin", None, None)]),
}


@pytest.mark.parametrize("verb", WRITES)
def test_every_writer_of_the_engine_asks_first(server: Served, verb: str) -> None:
    call, needs = WRITES[verb]
    rule = Asked(allows=False)
    with og.open(server.path, actor="act", guard=rule) as graph:
        before = [(branch, graph.head(branch).id) for branch in graph.branches()], graph.tags()
        with pytest.raises(Denied) as denied:
            call(graph)
        assert (denied.value.action, denied.value.actor) == (needs[0][0], "act")
        assert rule.needs == needs[:1]
        assert ([(branch, graph.head(branch).id) for branch in graph.branches()], graph.tags()) == before


def test_a_handle_bound_to_a_branch_is_guarded_too(server: Served) -> None:
    guard = Policy(read_bundle(TEAM, "graph"), "people")
    with og.open(server.path, actor="bob", guard=guard) as graph:
        with pytest.raises(Denied, match="policy denied action 'change' on branch 'main' for actor 'bob'"):
            graph.mutate(ADD, params={"name": "nobody"})
        assert graph.at("topic").mutate(ADD, params={"name": "bobs"}).commit is not None
        with pytest.raises(Denied, match="for unknown actor 'eve'"):
            graph.at("topic").mutate(ADD, params={"name": "eves"}, actor="eve")


def test_every_verb_that_writes_is_in_the_table() -> None:
    """A verb that goes through the door of writers, and is not listed here, would never have been seen to ask."""
    import ast
    import inspect

    source = Path(inspect.getfile(og.Graph)).parent
    guarded = set()
    for path in source.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                called = {
                    part.func.attr
                    for part in ast.walk(node)
                    if isinstance(part, ast.Call) and hasattr(part.func, "attr")
                }
                if called & {"_allow_write", "_check"}:
                    guarded.add(node.name)
    assert guarded <= WRITES.keys()
