"""Commands over a server: how it is addressed, which token it gets, and what commands do there."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.operator_config import OperatorConfig
from omnigraph.cli.servers import credentials_path, token_for
from omnigraph.server.settings import GraphSource
from tests.cli.calling import Outcome, call
from tests.server.conftest import graph_path, graph_template, reading, served
from tests.server.serving import ADD, ALL, TOKEN, Served, serving, settings_of

__all__ = ["graph_path", "graph_template", "reading", "served"]

Capsys = pytest.CaptureFixture[str]
Run = Callable[..., Outcome]

CONFIG = """
servers: {prod: {url: https://x}}
profiles: {served: {server: prod}, stored: {store: g.omni}}
aliases:
  who: {server: prod, graph: g, query: find_person, args: [name], params: {limit: 3}, format: csv}
  none: {server: prod}
  wrong: {server: prod, query: q, args: name}
"""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("alias", "nope"), 1, "alias 'nope' is not in {home}/config.yaml; defined are: none, who, wrong"),
        (("alias", "who"), 1, "alias 'who' takes 1 positional arg(s) (name), got 0"),
        (("alias", "who", "a", "b"), 1, "alias 'who' takes 1 positional arg(s) (name), got 2"),
        (("alias", "who", "a", "--params", "[]"), 1, "--params must be a JSON object"),
        (("alias", "who", "a", "--format", "xml"), 2, "'xml' is not one of"),
        (("alias", "none"), 1, "it needs a server and a query"),
        (("alias", "wrong"), 1, "aliases.wrong.args is a list of parameter names, not 'name'"),
        (("graphs", "list", "--profile", "stored"), 1, "`graphs list` asks a server"),
        (("graphs", "list", "--server", "nope"), 1, "no server 'nope' is configured"),
        (("policy", "test"), 2, "Missing option '--tests'"),
        (("policy", "explain", "--actor", "a"), 2, "Missing option '--action'"),
        (("cluster", "approve"), 2, "Missing argument 'RESOURCE'"),
        (("login",), 2, "Missing argument 'NAME'"),
        (("graphs", "list", "--store", "g"), 2, "`graphs list` is a served command; `--store` addresses"),
        (("graphs", "list", "--graph", "g"), 2, "`graphs list` is a served command; `--graph` selects"),
        (("cluster", "plan", "--as", "me"), 2, "`cluster plan` is a cluster control command; `--as` names the actor"),
        (("cluster", "apply", "--store", "g"), 2, "`cluster apply` is a cluster control command; `--store` addresses"),
        (("policy", "validate", "--as", "me"), 2, "`policy validate` is a cluster control command; `--as` names"),
        (("queries", "list", "--server", "s"), 2, "`queries list` is a cluster control command; `--server` addresses"),
        (("alias", "who", "a", "--server", "s"), 2, "`alias` is a local command; `--server` addresses a served graph"),
        (("--graph", "g", "login", "prod"), 2, "`login` is a local command; `--graph` selects a graph"),
        (("logout", "prod", "--profile", "p"), 2, "`logout` is a local command; `--profile` selects an address"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said_first(
    capsys: Capsys, home: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (home / "config.yaml").write_text(CONFIG)
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message.format(home=home) in outcome.err


# --- addresses and tokens ---------------------------------------------------------------------------------------------


def configure(home: Path, url: str, **more: Any) -> None:
    """A configuration that calls a server `team`."""
    document = {"servers": {"team": {"url": url}, "other": {"url": "http://127.0.0.1:1"}}} | more
    (home / "config.yaml").write_text(json.dumps(document))


@pytest.fixture
def run(capsys: Capsys, home: Path, reading: Served) -> Run:
    """A call of the command line by an operator who is logged in to the server `team`."""
    configure(
        home,
        reading.url,
        profiles={"mine": {"server": "team", "default_graph": "people"}, "bare": {"server": "team"}},
        aliases={
            "who": {"server": "team", "graph": "people", "query": "one", "args": ["name"], "format": "csv"},
            "all": {"server": "team", "query": "people"},
            "least": {"server": "team", "graph": "people", "query": "one", "args": ["name"], "params": {"least": 1}},
            "add": {"server": "team", "graph": "people", "query": "add_person", "args": ["name"]},
        },
    )
    assert call(capsys, "login", "team", "--token", TOKEN).code == 0
    return lambda *arguments: call(capsys, *arguments)


def test_ways_to_address_a_served_graph(run: Run, reading: Served, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "main\n"
    assert run("branch", "list", "--server", "team", "--graph", "people") == Outcome(0, listed, "")
    assert run("--server", reading.url, "--graph", "people", "branch", "list") == Outcome(0, listed, "")
    assert run("branch", "list", "--profile", "mine") == Outcome(0, listed, "")
    assert run("branch", "list", "--profile", "bare", "--graph", "people") == Outcome(0, listed, "")
    # The only graph of a server need not be named.
    assert run("branch", "list", "--server", "team") == Outcome(0, listed, "")
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "mine")
    assert run("branch", "list") == Outcome(0, listed, "")
    monkeypatch.delenv("OMNIGRAPH_PROFILE")
    configure(home, reading.url, defaults={"server": "team", "default_graph": "people"})
    assert run("branch", "list") == Outcome(0, listed, "")
    assert run("config").out.splitlines()[3:5] == [f"server: {reading.url}", "graph: people"]


def test_a_server_of_several_graphs_lists_them(
    capsys: Capsys, graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copytree(graph_path, tmp_path / "other.omni")
    graphs = (GraphSource("people", str(graph_path)), GraphSource("other", str(other)))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
    with serving(settings_of(graph_path, graphs=graphs)) as both:
        outcome = call(capsys, "branch", "list", "--server", both.url)
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err == (
            f"Error: server scope '{both.url}' has 2 graphs: [other, people]; pass --graph <id> to select one\n"
        )
        assert call(capsys, "branch", "list", "--server", both.url, "--graph", "other").out == "main\n"
        missing = call(capsys, "branch", "list", "--server", both.url, "--graph", "none")
        assert missing == Outcome(1, "", "Error: graph 'none' not found\n")
        listed = call(capsys, "graphs", "list", "--server", both.url)
        assert listed.out == f"other\t{other}\npeople\t{graph_path}\n"
        told = json.loads(call(capsys, "graphs", "list", "--server", both.url, "--json").out)
        assert [entry["graph_id"] for entry in told["graphs"]] == ["other", "people"]


def test_a_server_that_does_not_list_its_graphs(capsys: Capsys, graph_path: Path) -> None:
    with serving(settings_of(graph_path, rights="open", one_time_token=None)) as open_server:
        outcome = call(capsys, "snapshot", "--server", open_server.url)
        assert (outcome.code, outcome.out) == (1, "")
        assert "needs a graph: pass --graph <id>; the server does not list its graphs" in outcome.err
        assert call(capsys, "snapshot", "--server", open_server.url, "--graph", "people").code == 0


def test_no_answer_is_one_line(capsys: Capsys) -> None:
    outcome = call(capsys, "branch", "list", "--server", "http://127.0.0.1:1", "--graph", "g")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: no answer from http://127.0.0.1:1: ")
    assert outcome.err.count("\n") == 1


def test_wrong_tokens(capsys: Capsys, reading: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    address = ("branch", "list", "--server", reading.url, "--graph", "people")
    assert call(capsys, *address) == Outcome(1, "", "Error: missing bearer token\n")
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "wrong-token")
    assert call(capsys, *address) == Outcome(1, "", "Error: invalid bearer token\n")


def test_the_order_of_tokens(home: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    config = OperatorConfig(
        home / "config.yaml", servers={"a-b": "https://x/one", "long": "https://x/one/two", "same": "https://X:443/one"}
    )

    def found(url: str, called: str = "") -> str | None:
        return token_for(config, url, called)

    monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN", raising=False)
    assert found("https://x/one") is None
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "any")
    call(capsys, "login", "a-b", "--token", "kept")
    call(capsys, "login", "long", "--token", "kept-long")
    assert found("https://x/one/", "a-b") == "kept"
    assert found("https://x/one/more", "a-b") == "kept"
    assert found("https://x/one/two/three") == "kept-long"
    # Another host, another scheme, and a path that only begins alike get no token of the server's.
    for url in ("https://y/one", "http://x/one", "https://x/onetwo", "https://x/", "https://x:444/one"):
        assert found(url) == "any"
    monkeypatch.setenv("OMNIGRAPH_TOKEN_A_B", "of-the-environment")
    assert found("https://x/one", "a-b") == "of-the-environment"
    # Two names for one URL: the one it was addressed by.
    assert found("https://x/one", "same") == "any"


def test_login_and_logout(
    capsys: Capsys, home: Path, reading: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configure(home, reading.url)
    path = home / "credentials"
    assert credentials_path() == path
    outcome = call(capsys, "login", "team", "--token", "secret-1")
    assert outcome == Outcome(0, f"stored credential for 'team' in {path}\n", "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "[team]\ntoken = secret-1\n\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\nmore\n"))
    told = json.loads(call(capsys, "login", "team", "--json").out)
    assert told == {"server": "team", "credentials_path": str(path), "declared": True}
    assert path.stat().st_mode & 0o777 == 0o600
    assert call(capsys, "branch", "list", "--server", "team", "--graph", "people").out == "main\n"
    undeclared = call(capsys, "login", "new", "--token", "secret-2", "--json")
    assert json.loads(undeclared.out)["declared"] is False
    assert "no server 'new' is configured yet" in undeclared.err
    assert call(capsys, "logout", "new").out == f"removed credential for 'new' in {path}\n"
    assert call(capsys, "logout", "new").out == f"there was no credential for 'new' in {path}\n"
    assert path.read_text() == f"[team]\ntoken = {TOKEN}\n\n"
    assert sorted(file.name for file in home.iterdir()) == ["config.yaml", "credentials"]


@pytest.mark.parametrize("token", ["", "two words", "a\nb", "umlaut-ä"])
def test_what_is_no_token(capsys: Capsys, home: Path, token: str) -> None:
    outcome = call(capsys, "login", "team", "--token", token)
    assert (outcome.code, outcome.out) == (1, "")
    assert "a token is one word of printable ASCII characters" in outcome.err
    assert list(home.iterdir()) == []


def test_tokens_that_others_can_read_are_refused(run: Run, home: Path) -> None:
    (home / "credentials").chmod(0o644)
    for arguments in (("branch", "list", "--profile", "mine"), ("login", "team", "--token", "x"), ("logout", "team")):
        outcome = run(*arguments)
        assert (outcome.code, outcome.out) == (1, "")
        assert f"run `chmod 600 {home}/credentials`" in outcome.err
        assert TOKEN not in outcome.err
    (home / "credentials").write_text(f"token = {TOKEN}\n")
    (home / "credentials").chmod(0o600)
    outcome = run("branch", "list", "--profile", "mine")
    assert "is not made of `[server]` and `token = …` lines" in outcome.err
    assert TOKEN not in outcome.err


def test_a_token_is_never_shown(run: Run, home: Path, reading: Served) -> None:
    configure(home, reading.url.replace("http://", f"http://someone:{TOKEN}@"))
    for arguments in (
        ("--debug", "branch", "list", "--server", "team", "--graph", "none"),
        ("--debug", "load", "--server", "team", "--graph", "people", "--data", "none.jsonl", "--mode", "append"),
        ("config", "--server", "team"),
        ("profile", "list"),
    ):
        outcome = run(*arguments)
        assert TOKEN not in outcome.out + outcome.err


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def write(capsys: Capsys, served: Served, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A call of the command line on a served graph that tests write to."""
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
    return lambda *arguments: call(capsys, *arguments, "--server", served.url, "--graph", "people")


def test_writes_say_where_and_who(write: Run, served: Served, tmp_path: Path) -> None:
    place = f"{served.url}/graphs/people"
    made = write("branch", "create", "b", "--json")
    assert made.err == f"omnigraph branch create → {place} (served)\n"
    assert json.loads(made.out) == {"uri": place, "from": "main", "name": "b", "actor_id": "default"}
    changed = write("mutate", "-e", ADD, "--params", '{"name": "eve"}', "--branch", "b")
    assert (changed.out, changed.err) == ("changed b via add: 1 nodes, 0 edges\nactor_id: default\n", "")
    merged = json.loads(write("branch", "merge", "b", "--json", "--quiet").out)
    assert merged == {
        "source": "b",
        "target": "main",
        "outcome": "fast_forward",
        "actor_id": "default",
    }
    (tmp_path / "rows.jsonl").write_text('{"type": "Person", "data": {"name": "fay"}}\n')
    loaded = write("load", "--data", str(tmp_path / "rows.jsonl"), "--mode", "append", "--json")
    assert json.loads(loaded.out)["uri"] == place
    assert json.loads(loaded.out)["commit"]["graph_commit_id"] == served.head()
    none = json.loads(
        write("mutate", "-e", ADD.replace("insert", "upsert"), "--params", '{"name": "fay"}', "--json").out
    )
    assert (none["commit"], none["actor_id"]) == (None, "default")


def test_the_actor_is_the_servers(write: Run, served: Served, home: Path) -> None:
    (home / "config.yaml").write_text("operator: {actor: carol}")
    refused = write("branch", "create", "b", "--as", "carol")
    assert (refused.code, refused.out) == (1, "")
    assert "`--as` is not allowed on a served write" in refused.err
    assert json.loads(write("branch", "create", "b", "--json").out)["actor_id"] == "default"


def test_destructive_writes_need_a_yes(write: Run, served: Served, tmp_path: Path) -> None:
    write("branch", "create", "b")
    for arguments in (
        ("branch", "delete", "b"),
        ("load", "--data", "none.jsonl", "--mode", "overwrite"),
    ):
        outcome = write(*arguments, "--json")
        assert (outcome.code, outcome.out) == (1, "")
        assert "refusing destructive `" in outcome.err
        assert f"against non-local target {served.url}/graphs/people" in outcome.err
    assert write("branch", "delete", "b", "--yes").out == "deleted branch b\n"


def test_a_lost_compare_and_swap(write: Run, served: Served) -> None:
    head = served.head()
    mutation = ("mutate", "-e", ADD, "--params", '{"name": "eve"}', "--if-commit", head)
    assert write(*mutation).code == 0
    lost = write(*mutation, "--json")
    assert (lost.code, lost.err) == (4, "")
    told = json.loads(lost.out)
    assert told["precondition_failure"] == {"expected": head, "actual": served.head()}
    stored = write("mutate", "add_person", "--params", '{"name": "fay"}', "--if-commit", head, "--json")
    assert stored.code == 4
    assert json.loads(stored.out)["precondition_failure"]["expected"] == head


def test_an_older_server_without_the_conditional_route_fails(
    write: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = served.head()
    monkeypatch.setattr("omnigraph.client.handle.CONDITIONAL", "/if-none")
    outcome = write("mutate", "-e", ADD, "--params", '{"name": "eve"}', "--if-commit", head)
    assert (outcome.code, outcome.out) == (1, "")
    assert served.head() == head


def test_stored_queries_by_name(run: Run, reading: Served) -> None:
    table = run("query", "people", "--profile", "mine")
    assert table.out.splitlines()[0] == "2 rows from branch main via people"
    one = json.loads(run("query", "one", "--profile", "mine", "--param", "name=ada", "--json").out)
    assert (one["query_name"], one["rows"]) == ("one", [{"who": "ada"}])
    assert one["target"] == {"branch": "main", "snapshot": None}
    kinds = run("query", "add_person", "--profile", "mine", "--param", "name=x")
    assert kinds == Outcome(1, "", "Error: 'add_person' is a mutation — use omnigraph mutate add_person\n")
    assert "'people' is a read — use omnigraph query people" in run("mutate", "people", "--profile", "mine").err
    assert run("query", "none", "--profile", "mine") == Outcome(1, "", "Error: stored query not found\n")
    assert "by-name invocation needs a server" in run("query", "people", "--store", str(reading.path)).err


def test_aliases(run: Run) -> None:
    assert run("alias", "who", "ada").out == "who\nada\n"
    assert run("alias", "who", "ada", "--params", '{"name": "ben"}').out == "who\nben\n"
    assert json.loads(run("alias", "who", "ada", "--json").out)["rows"] == [{"who": "ada"}]
    assert run("alias", "all", "--format", "jsonl").out.splitlines()[1] == '{"p.name":"ada","p.age":36}'
    assert json.loads(run("alias", "least", "ada", "--json").out)["row_count"] == 1
    assert run("alias", "nope").err.startswith("Error: alias 'nope' is not in")


def test_a_stored_mutation_and_an_alias_of_it(capsys: Capsys, home: Path, served: Served) -> None:
    configure(home, served.url, aliases={"add": {"server": "team", "query": "add_person", "args": ["name"]}})
    call(capsys, "login", "team", "--token", TOKEN)
    made = call(capsys, "mutate", "add_person", "--param", "name=eve", "--server", "team", "--message", "by name")
    assert made.out == "changed main via add_person: 1 nodes, 0 edges\nactor_id: default\n"
    told = json.loads(call(capsys, "alias", "add", "fay", "--json").out)
    assert (told["query_name"], told["affected_nodes"]) == ("add_person", 1)
    shown = call(capsys, "commit", "show", told["commit"]["parent_commit_id"], "--server", "team").out
    assert "message: by name" in shown
    once = ("alias", "add", "gil", "--json", "--idempotency-key", "k")
    assert call(capsys, *once).out == call(capsys, *once).out
    assert json.loads(call(capsys, *once).out)["commit"]["graph_commit_id"] == served.head()


def test_several_mutations_are_one_commit(write: Run, served: Served) -> None:
    before = len(served.get("/commits").json()["commits"])
    two = ("-e", 'query a() { insert Person { name: "x" } }', "-e", 'query b() { delete Person where name = "ada" }')
    told = json.loads(write("mutate", *two, "--json").out)
    assert (told["query_name"], told["affected_nodes"]) == ("a, b", 2)
    assert len(served.get("/commits").json()["commits"]) == before + 1
    failed = write("mutate", *two[:2], "-e", "query c() { insert None { name: 1 } }")
    assert failed.code == 1
    assert len(served.get("/commits").json()["commits"]) == before + 1


def test_the_shell_on_a_server(write: Run, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = (
        'insert Person { name: "eve" };\n:schema Doc\nbegin;\ninsert Person { name: "fay" };\ncommit;\n'
        f"{ALL}\nbegin;\nmatch {{ $p: Person }} return {{ $p.name }};\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    outcome = write("shell", "--format", "csv")
    assert outcome.out == (
        "changed main via shell: 1 nodes, 0 edges\nactor_id: default\n"
        "node Doc {\n  content: Blob?\n  title: String @key\n}\n"
        "transaction on main: commit writes what follows, rollback forgets it\n"
        "noted; a server carries it out at the commit\n"
        "changed main via transaction: 1 nodes, 0 edges\nactor_id: default\n"
        "p.name,p.age\nada,36\nben,25\neve,null\nfay,null\n"
        "transaction on main: commit writes what follows, rollback forgets it\n"
    )
    assert "a served transaction is carried out at its commit" in outcome.err
    assert outcome.code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("load", "--data", "r.csv", "--mode", "append", "--type", "Person"), "a served load takes JSON lines"),
        (("load", "--data", "r.csv", "--mode", "append"), "a served load takes JSON lines"),
        (
            ("load", "--data", "r.jsonl", "--mode", "append", "--engine", "spark"),
            "`engine` of a served load is the server's",
        ),
        (
            ("load", "--data", "r.jsonl", "--mode", "append", "--spark-master", "local"),
            "--spark-master, --spark-conf and --spark-ship-package",
        ),
        (("export", "--format", "parquet", "--out", "x"), "a served export is one stream of JSON lines"),
        (("optimize",), "`optimize` is a direct (storage-native) command and needs direct storage access"),
        (("stats",), "`stats` is a direct (storage-native) command and needs direct storage access"),
        (("schema", "plan", "--schema", "s.pg"), "`schema plan` is a direct (storage-native) command and needs direct"),
        (("viz", "--out", "x.svg"), "`viz` is a direct (storage-native) command and needs direct storage access"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_server_does_not_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("name\nx\n")
    (tmp_path / "r.jsonl").write_text("")
    (tmp_path / "s.pg").write_text("node A {\n  n: String @key\n}\n")
    outcome = run(*arguments, "--profile", "mine", "--quiet")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"Error: {message}")
    assert outcome.err.count("\n") == 1


def test_compressed_lines(write: Run, served: Served, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(b'{"type": "Person", "data": {"name": "eve"}}\n'))
    assert write("load", "--data", str(tmp_path / "rows.jsonl.gz"), "--mode", "append").code == 0
    assert served.post("/query", {"query": ALL}).json()["row_count"] == 3
