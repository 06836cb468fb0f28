"""The main job from end to end, run with `make demo`: load a library of papers on Spark, search it, branch, compare, merge.

Everything happens in a scratch folder. `python examples/demo.py 1000` does it with fewer papers.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from library import SCHEMA, Library, mistakes, topic_vector, write_lines

import omnigraph as og
from omnigraph.errors import LoadRejected
from omnigraph.server.studio import is_built

PAPERS = 13_000

QUERIES = """\
query reached($code: String) {
  match {
    $start: Paper { code: $code }
    $start cites{1,3} $p
    $a wrote $p
    $a.country = "Norway"
  }
  return { $a.name, count($p) as papers }
  order { papers desc, $a.name }
  limit 5
}
query relevant($topic: String, $text: String, $like: Vector(32)) {
  match {
    $t: Topic { name: $topic }
    $p about $t
    $p.status = "published"
    $p.year >= 2000
  }
  return { $p.code, $p.title, $p.year }
  order { rrf(nearest($p.embedding, $like), bm25($p.abstract, $text)) desc }
  limit 5
}
query topics() {
  match { $p: Paper  $p about $t }
  return { $t.name as topic, count($p) as papers, avg($p.year) as mean_year, max($p.year) as newest }
  order { papers desc, topic }
  limit 5
}
query move($who: String, $where: String) { update Author set { country: $where } where name = $who }
query retracted() {
  match { $p: Paper $p.status = "retracted" }
  return { count($p) as papers }
}
"""


def main(papers: int) -> None:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        run(Path(scratch), Library(papers))
    print(f"\nAll of it took {time.perf_counter() - started:.1f} s.")


def run(folder: Path, library: Library) -> None:
    with step("Generate a library of research papers"):
        count = write_lines(folder / "library.jsonl", library.lines())
        revised = write_lines(folder / "revision.jsonl", library.revision())
        size = (folder / "library.jsonl").stat().st_size / 1e6
        print(f"{count:,} entities in one JSONL file of {size:.0f} MB; a revision of {revised:,} for later")

    with step("Create a graph from its schema"):
        print(SCHEMA)
        graph = og.init(folder / "library.omni", SCHEMA, actor="demo")

    with step("A load with mistakes writes nothing and names every one of them"):
        write_lines(folder / "bad.jsonl", mistakes())
        try:
            graph.load(folder / "bad.jsonl")
        except LoadRejected as rejected:
            for _, line, message in rejected.errors:
                print(f"line {line}: {message}")

    with step("Load everything on Spark, as one commit"):
        loaded = graph.load(folder / "library.jsonl", engine="spark")
        for table in loaded.tables:
            print(f"{table.type:<8}{table.rows:>8,}")
        print(f"{loaded.nodes_loaded:,} nodes and {loaded.edges_loaded:,} edges in commit {loaded.commit.id}")

    with step("Build the indexes that the schema declares"):
        report = graph.ensure_indices()
        print(", ".join(f"{index.type_key}.{index.column} {index.kind}" for index in report.built))

    with step("Traverse: who in Norway wrote what P000042 cites, up to three steps away"):
        print(graph.query(QUERIES, "reached", {"code": "P000042"}))

    with step("Search: text, vectors and the graph in one query"):
        wanted = {"topic": "climate", "text": "ocean warming", "like": topic_vector("climate").tolist()}
        print(graph.query(QUERIES, "relevant", wanted))

    with step("Aggregate: the largest topics"):
        print(graph.query(QUERIES, "topics"))

    with step("Branch: an agent loads its revision where nobody else sees it"):
        before = graph.head()
        graph.create_branch("agent/1")
        graph.load(folder / "revision.jsonl", mode="merge", branch="agent/1", actor="agent-1")
        for name in ("main", "agent/1"):
            print(f"{name:<8} has {retracted(graph, branch=name)} retracted papers")

    with step("Compare the branch with main"):
        difference = graph.diff("main", "agent/1")
        stats = difference.stats
        print(f"{stats.inserts:,} inserted, {stats.updates:,} updated, {stats.deletes:,} deleted")
        change = next(change for change in difference if change.op == "update")
        old, new = change.before or {}, change.after or {}
        print(f"for example {change.type} {change.id}: {old['title']!r} → {new['title']!r}")

    with step("Merge it into main, which has moved on meanwhile"):
        graph.mutate(QUERIES, "move", {"who": "Ada Abel 1", "where": "Norway"})
        merged = graph.merge("agent/1", delete_branch=True)
        print(f"{merged.outcome}: commit {graph.head().id}; branches now: {', '.join(graph.branches())}")

    with step("Travel in time"):
        print(
            f"before the merge main had {retracted(graph, snapshot=before.id)} retracted papers, now {retracted(graph)}"
        )
        for commit in graph.commits():
            print(f"  {commit.id}  {commit.kind:<9} {commit.actor or '-'}")

    with step("Look at it in the browser"):
        look(folder / "library.omni")

    with step("Export it"):
        written = graph.export(folder / "out.jsonl")
        print(f"{written:,} entities, {(folder / 'out.jsonl').stat().st_size / 1e6:.0f} MB")


def look(graph: Path) -> None:
    """Serve the graph with its web page: while somebody sits at the terminal until Ctrl-C, else only to show that it answers."""
    if not is_built():
        print("this checkout has no built page; `python scripts/build_studio.py` builds it, or says what is missing")
        return
    command = [sys.executable, "-m", "omnigraph", "studio", str(graph), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as studio:
        assert studio.stdout is not None
        address = studio.stdout.readline().strip()
        try:
            with urlopen(address) as page:
                print(f"{address}\nanswers with {page.status}; the key in it works once")
            if sys.stdin.isatty() and sys.stdout.isatty():
                print("Open it in a browser. Ctrl-C goes on.", flush=True)
                studio.wait()
        except KeyboardInterrupt:
            print()
        finally:
            studio.terminate()


def retracted(graph: og.Graph, branch: str | None = None, snapshot: str | None = None) -> int:
    return int(graph.query(QUERIES, "retracted", branch=branch, snapshot=snapshot).rows[0]["papers"])


NUMBERS = itertools.count(1)


@contextmanager
def step(title: str) -> Iterator[None]:
    """A heading, what the step prints, and how long it took."""
    heading = f"{next(NUMBERS)}. {title}"
    print(f"\n{heading}\n{'-' * len(heading)}", flush=True)
    started = time.perf_counter()
    yield
    print(f"[{time.perf_counter() - started:.2f} s]", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PAPERS)
