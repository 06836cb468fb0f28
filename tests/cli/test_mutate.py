"""`omnigraph mutate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import Outcome, call, spawn
from tests.mutation.org_graph import ids, level

Capsys = pytest.CaptureFixture[str]


def put(capsys: Capsys, *flags: str, handle: str = "eve") -> Outcome:
    params = json.dumps({"h": handle, "n": 7})
    return call(capsys, "mutate", "put", "--query", "w.gq", "--params", params, "--store", "org.omni", *flags)


def graph() -> og.Graph:
    return og.open("org.omni", "ro")


def test_what_people_see(capsys: Capsys, org: Path) -> None:
    outcome = put(capsys)
    assert (outcome.code, outcome.out, outcome.err) == (0, "changed main via put: 1 nodes, 0 edges\n", "")
    assert level(graph(), "eve") == 7


def test_the_actor(capsys: Capsys, org: Path, home: Path) -> None:
    (home / "config.yaml").write_text("operator: { actor: act-me }")
    assert put(capsys).out.endswith("\nactor_id: act-me\n")
    assert put(capsys, "--as", "other", handle="fay").out.endswith("\nactor_id: other\n")
    assert [commit.actor for commit in graph().commits()[:2]] == ["other", "act-me"]


def test_a_repeat_with_the_same_key(capsys: Capsys, org: Path) -> None:
    first = put(capsys, "--json", "--idempotency-key", "k")
    head = graph().head()
    assert (first.code, put(capsys, "--json", "--idempotency-key", "k").out) == (0, first.out)
    assert graph().head() == head
    other = put(capsys, "--idempotency-key", "k", handle="fay")
    assert (other.code, graph().head()) == (1, head), "the key belongs to another request"
    assert put(capsys, "--idempotency-key", "").code == 2


def test_json(capsys: Capsys, org: Path) -> None:
    outcome = put(capsys, "--json", "--as", "me")
    head = graph().head()
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == {
        "branch": "main",
        "query_name": "put",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": "me",
        "commit": {
            "graph_commit_id": head.id,
            "graph_branch": None,
            "graph_manifest_version": head.manifest_version,
            "parent_commit_id": head.parent,
            "merged_parent_commit_id": None,
            "actor_id": "me",
            "created_at": head.created_at,
            "kind": "mutation",
            "changed": {"nodes": 1, "edges": 0},
        },
    }


def test_no_effect_is_no_commit(capsys: Capsys, org: Path) -> None:
    outcome = call(
        capsys, "mutate", "drop_staff", "--query=w.gq", "--params", '{"h": "nobody"}', "--store=org.omni", "--json"
    )
    shown = json.loads(outcome.out)
    assert (shown["affected_nodes"], shown["affected_edges"], shown["commit"]) == (0, 0, None)


def test_edges_are_counted_with_their_cascades(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "mutate", "drop_staff", "--query=w.gq", "--params", '{"h": "ada"}', "--store=org.omni")
    assert outcome.out == "changed main via drop_staff: 1 nodes, 3 edges\n"


def test_on_a_branch(capsys: Capsys, org: Path) -> None:
    og.open("org.omni").create_branch("b")
    outcome = put(capsys, "--branch", "b", "--json")
    assert json.loads(outcome.out)["commit"]["graph_branch"] == "b"
    assert "eve" in ids(graph(), "node:Staff", "b")
    assert "eve" not in ids(graph(), "node:Staff")


def test_sources(capsys: Capsys, org: Path) -> None:
    text = 'query one() { insert Staff { handle: "from text" } }'
    assert call(capsys, "mutate", "-e", text, "--store=org.omni").code == 0
    (org / "params.json").write_text('{"h": "from file", "n": 1}')
    assert (
        call(capsys, "mutate", "--name=put", "--query=w.gq", "--params-file=params.json", "--store=org.omni").code == 0
    )
    assert {"from text", "from file"} <= set(ids(graph(), "node:Staff"))


def test_the_old_name_warns(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "change", "put", "--query=w.gq", "--params", '{"h": "eve", "n": 1}', "--store", "org.omni")
    assert (outcome.code, outcome.err) == (0, "warning: `omnigraph change` is now `omnigraph mutate`\n")


# --- only while a commit is the head ----------------------------------------------------------------------------------


def test_if_commit_holds(capsys: Capsys, org: Path) -> None:
    assert put(capsys, "--if-commit", graph().head().id).code == 0


def test_a_lost_if_commit_is_exit_4(capsys: Capsys, org: Path) -> None:
    stale, head = graph().head().parent, graph().head().id
    assert stale is not None
    outcome = put(capsys, "--if-commit", stale)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("Error: branch 'main' is at commit")
    outcome = put(capsys, "--if-commit", stale, "--json")
    assert (outcome.code, outcome.err) == (4, "")
    shown = json.loads(outcome.out)
    assert shown["precondition_failure"] == {"expected": stale, "actual": head}
    assert "is at commit" in shown["error"]
    assert graph().head().id == head


def test_a_lost_if_commit_as_a_process(org: Path) -> None:
    stale = graph().head().parent
    text = 'query one() { insert Staff { handle: "x" } }'
    done = spawn("mutate", "-e", text, "--store", "org.omni", "--if-commit", str(stale), cwd=org)
    assert (done.returncode, done.stdout) == (4, "")


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("link", "--query=w.gq", "--params", '{"a": "ada", "b": "Missing"}'), "not found", id="unknown-endpoint"
        ),
        pytest.param(("--query", "w.gq"), "query file contains multiple queries; pass --name", id="several"),
        pytest.param(("nope", "--query", "w.gq"), "query 'nope' not found", id="unknown-query"),
        pytest.param(("put",), "by-name invocation needs a server", id="stored"),
        pytest.param(("-e", " "), "-e/--query-string must not be empty", id="empty"),
        pytest.param(("-e", "load.gq"), "parse error: ", id="a-path-is-no-query"),
        pytest.param(("--query", "no.gq"), "cannot read 'no.gq': No such file or directory", id="missing-file"),
        pytest.param(("put", "--query", "w.gq"), "parameter 'h' not provided", id="no-params"),
        pytest.param(("put", "--query", "w.gq", "--params", "[1]"), "--params must be a JSON object", id="a-list"),
        pytest.param(("put", "--query", "w.gq", "--params", "{"), "--params is not valid JSON", id="bad-json"),
        pytest.param(("put", "--query", "w.gq", "--params-file", "s.pg"), "s.pg is not valid JSON", id="bad-file"),
        pytest.param(("--query", "load.gq", "--branch", "b"), "branch 'b' not found", id="unknown-branch"),
        pytest.param(
            ("-e", "query q() { match { $s: Staff } return { $s.handle } }"), "'q' is a read query", id="a-read"
        ),
    ],
)
def test_failures_change_nothing(capsys: Capsys, org: Path, arguments: tuple[str, ...], message: str) -> None:
    head = graph().head().id
    outcome = call(capsys, "mutate", "--store", "org.omni", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert message in outcome.err
    assert graph().head().id == head


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--query", "w.gq", "-e", "x"),
        ("put", "--name", "put", "--query", "w.gq"),
        ("put", "--query", "w.gq", "--params", "{}", "--params-file", "p.json"),
    ],
    ids=" ".join,
)
def test_usage(capsys: Capsys, org: Path, arguments: tuple[str, ...]) -> None:
    assert call(capsys, "mutate", "--store", "org.omni", *arguments).code == 2


def test_a_type_error_names_the_file_and_points(capsys: Capsys, org: Path) -> None:
    (org / "bad.gq").write_text('query q() {\n  insert Staff { handel: "x" }\n}\n')
    outcome = call(capsys, "mutate", "--query", "bad.gq", "--store", "org.omni")
    first, source_line, caret = outcome.err.splitlines()
    assert first.startswith("Error: bad.gq:2:")
    assert "did you mean `handle`?" in first
    assert source_line == '  2 |   insert Staff { handel: "x" }'
    assert caret.index("^") == source_line.index("handel")


# --- several mutations ------------------------------------------------------------------------------------------------


def many(capsys: Capsys, *arguments: str, params: dict[str, object] | None = None) -> Outcome:
    return call(capsys, "mutate", *arguments, "--params", json.dumps(params or {}), "--store", "org.omni")


def test_several_names_are_one_commit(capsys: Capsys, org: Path) -> None:
    before = graph().head()
    params = {"h": "eve", "n": 7, "a": "eve", "b": "ada"}
    outcome = many(capsys, "put", "link", "relevel", "--query", "w.gq", "--message", "hired", params=params)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "changed main via put, link, relevel: 2 nodes, 1 edges\n"
    assert (graph().head().parent, graph().head().message) == (before.id, "hired")
    shown = call(capsys, "commit", "show", graph().head().id, "--uri", "org.omni").out
    assert "message: hired" in shown


def test_several_files_and_texts(capsys: Capsys, org: Path) -> None:
    (org / "a.gq").write_text('query a() { insert Team { code: "a" } }')
    (org / "b.gq").write_text('query b($t: String) { insert MemberOf { from: "ada", to: $t } }')
    assert many(capsys, "--query", "a.gq", "--query", "b.gq", params={"t": "a"}).code == 0
    head = graph().head()
    texts = ("-e", 'query x() { insert Team { code: "x" } }', "-e", 'query y() { delete Team where code = "x" }')
    assert many(capsys, *texts).out == "changed main via x, y: 2 nodes, 0 edges\n"
    assert graph().head() == head, "what is made and removed again is no commit"


def test_when_one_fails_nothing_is_written(capsys: Capsys, org: Path) -> None:
    head = graph().head()
    params = {"h": "eve", "n": 7, "a": "eve", "b": "nobody"}
    outcome = many(capsys, "put", "link", "--query", "w.gq", params=params)
    assert (outcome.code, outcome.out) == (1, "")
    assert "'nobody' not found" in outcome.err
    assert graph().head() == head


@pytest.mark.parametrize(
    ("arguments", "params", "code", "message"),
    [
        (("put", "nothing", "--query", "w.gq"), {}, 1, "no query is called 'nothing'; there are put, "),
        (("put", "link", "--query", "w.gq"), {"z": 1}, 1, "none of these queries declares a parameter 'z'"),
        (("put", "link"), {}, 2, "give the queries"),
        (("--query", "w.gq", "-e", "query q() { }"), {}, 2, "exclude each other"),
    ],
)
def test_several_that_do_not_fit(
    capsys: Capsys, org: Path, arguments: tuple[str, ...], params: dict[str, object], code: int, message: str
) -> None:
    outcome = many(capsys, *arguments, params=params)
    assert (outcome.code, message in outcome.err) == (code, True), outcome.err


def test_several_with_if_commit(capsys: Capsys, org: Path) -> None:
    head = graph().head().id
    params = {"h": "eve", "n": 7}
    assert many(capsys, "put", "relevel", "--query", "w.gq", "--if-commit", head, params=params).code == 0
    assert many(capsys, "put", "relevel", "--query", "w.gq", "--if-commit", head, params=params).code == 4
