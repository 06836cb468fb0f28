"""One process of the soak: random operations of every kind on one graph until its time is up, or until it is killed.

    python -m tests.soak.worker SETTINGS_JSON

It writes a line before each operation (what it is about to do) and one after it (how it went): acknowledged with the commit,
refused with a typed error, or neither because it died. The names of operations are the actors of their commits, so the
checker finds the commit of each, also of those that were never answered.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import CommitStateUnknown, OmnigraphError, RecoveryRequired
from tests.soak.model import EDGES, NODES, digest, state_of

#: Few, so that operations meet.
ITEMS, GROUPS, OWNERS, MARKS = 24, 5, 6, 60
#: Operations with how often each is chosen.
WEIGHTS = {
    "together": 10,
    "insert": 24,
    "update": 14,
    "delete": 8,
    "load": 12,
    "ingest": 2,
    "merge": 7,
    "revert": 3,
    "cherry_pick": 3,
    "branch": 5,
    "delete_branch": 3,
    "tag": 2,
    "delete_tag": 1,
    "schema": 2,
    "ensure_indices": 2,
    "optimize": 2,
    "cleanup": 2,
    "repair": 1,
    "read": 8,
    "export": 2,
    "feed": 4,
}
#: Modules whose failpoints a worker may die at; they are declared when the module is imported.
DECLARING = ("commit.protocol", "mutation.execute", "load.execute", "merge.execute", "evolution.apply",
             "maintenance.optimize", "maintenance.reclaim", "commit.branches", "commit.groups")  # fmt: skip
DEATHS_IN_A_THOUSAND = 20
#: Threads of one process that write at once.
MOST_AT_ONCE = 6
#: What the failpoints of an operation are called after; those of the commit protocol and of recovery belong to all.
OWN_FAILPOINTS = {"together": "mutation", "insert": "mutation", "update": "mutation", "delete": "mutation",
                  "load": "load", "ingest": "load", "merge": "branch_merge", "revert": "branch_merge",
                  "cherry_pick": "branch_merge", "schema": "schema_apply", "branch": "branch_create",
                  "delete_branch": "branch_delete"}  # fmt: skip
SHARED_FAILPOINTS = ("table_commit.", "publisher.", "recovery.", "undo.", "staging.", "group.")


@dataclass(frozen=True)
class Settings:
    """What the driver tells a worker."""

    uri: str
    options: dict[str, str]
    folder: str
    number: int
    life: str
    seed: str
    seconds: float
    #: No branch is made in the first seconds of a round: a schema change needs a graph with only main.
    alone_seconds: float
    spark: bool

    @property
    def journal(self) -> Path:
        return Path(self.folder) / f"journal-{self.number}"


class Worker:
    """The state of one process between operations."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.random = random.Random(settings.seed)
        self.journal = settings.journal.open("a")
        self.writing = threading.Lock()
        self.journal.write("\n")  # behind the half line of a process that was killed
        self.started = time.monotonic()
        self.count = 0
        self.graph = og.open(settings.uri, storage_options=settings.options or None)
        self.cursor: str | None = None
        self.tags: list[str] = []

    # --- the journal ----------------------------------------------------------------------------------------------

    def note(self, **entry: Any) -> None:
        line = json.dumps(entry) + "\n"
        with self.writing:
            self.journal.write(line)
            self.journal.flush()

    def carry_out(self, intent: Mapping[str, Any]) -> None:
        """Try an operation and write down how it went."""
        name = intent["name"]
        try:
            answer = self.act(intent)
        except (CommitStateUnknown, RecoveryRequired) as error:
            self.note(name=name, outcome="unknown", error=type(error).__name__, message=error.message)
        except OmnigraphError as error:
            kind = getattr(error, "kind", None)
            self.note(name=name, outcome="refused", error=type(error).__name__, kind=kind, message=error.message)
        except Exception as error:
            self.note(name=name, outcome="untyped", error=type(error).__name__, trace=traceback.format_exc())
        else:
            self.note(name=name, outcome="done", **answer)

    # --- the loop -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self.repeat_the_unanswered()
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        while time.monotonic() - self.started < self.settings.seconds:
            (op,) = self.random.choices(names, weights)
            try:
                intents = self.choose(op)
            except OmnigraphError as error:
                self.note(unprepared=op, error=type(error).__name__, message=error.message)
                continue
            if not intents:
                continue
            with self._mortal(op), ThreadPoolExecutor(len(intents)) as threads:
                for intent in intents:
                    self.note(intent=intent)
                list(threads.map(self.carry_out, intents))
                if intents[0].get("key") and self.random.random() < 0.3:
                    self.note(again=intents[0]["name"])
                    self.carry_out(intents[0])

    def choose(self, op: str) -> list[dict[str, Any]]:
        """The next intents: one, or for "together" some mutations of one branch that threads of this process send at once."""
        if op != "together":
            return self._named(op)
        branch = self._branch()
        ops = self.random.choices(["insert", "update", "delete"], [24, 14, 4], k=self.random.randint(2, MOST_AT_ONCE))
        return [intent for op in ops for intent in self._named(op, branch)]

    def _named(self, op: str, branch: str | None = None) -> list[dict[str, Any]]:
        """An intent with a name of its own; nothing when there is nothing to choose from."""
        self.count += 1
        prepared = self.prepare(op, branch)
        return [] if prepared is None else [{"name": f"{self.settings.life}-{self.count}", "op": op, **prepared}]

    def repeat_the_unanswered(self) -> None:
        """Repeat the operations during which the predecessor of this worker was killed, if they can be repeated safely."""
        entries = read_journal(self.settings.journal)
        answered = {entry["name"] for entry in entries if "outcome" in entry}
        begun = [entry["intent"] for entry in entries if "intent" in entry]
        for intent in begun[-MOST_AT_ONCE:]:
            if intent["name"] not in answered and intent.get("key"):
                self.note(again=intent["name"])
                self.carry_out(intent)

    def _mortal(self, op: str) -> AbstractContextManager[None]:
        """Sometimes a failpoint kills this process during the operation, at one of its first passings."""
        if self.random.randrange(1000) >= DEATHS_IN_A_THOUSAND:
            return nullcontext()
        left = [self.random.choice([1, 1, 1, 2, 3])]

        def die() -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        own = f"{OWN_FAILPOINTS.get(op, op)}."
        names = [name for name in failpoints.NAMES if name.startswith((own, *SHARED_FAILPOINTS))]
        return failpoints.armed(self.random.choice(sorted(names)), die)

    # --- choosing -------------------------------------------------------------------------------------------------

    def prepare(self, op: str, branch: str | None = None) -> dict[str, Any] | None:
        """The rest of an intent, chosen at random, for a given branch if any; None when there is nothing to choose from."""
        intent: dict[str, Any] | None = getattr(self, f"_choose_{op}", dict)()
        if intent is None:
            return None
        if branch is not None:
            intent["branch"] = branch
        if op in ("insert", "update", "delete", "load", "merge") and self.random.random() < 0.2:
            intent["key"] = f"key-{self.settings.life}-{self.count}"
        if op in ("insert", "update", "delete") and self.random.random() < 0.1:
            intent["if_commit"] = self.graph.head(intent["branch"]).id
        return intent

    def _branch(self) -> str:
        others = self.graph.branches()[1:]
        return self.random.choice(others) if others and self.random.random() < 0.45 else "main"

    def _other_branch(self) -> str | None:
        others = self.graph.branches()[1:]
        return self.random.choice(others) if others else None

    def _properties(self) -> tuple[str, list[str]]:
        """What `rank` is called now, and the properties that schema changes have added."""
        names = list(self.graph.contract().catalog.nodes["Item"].properties)
        rank = next(name for name in names if name.startswith("rank_"))
        return rank, [name for name in names if name.startswith("x")]

    def _size(self, name: str) -> dict[str, Any]:
        return {"type": "Group", "data": {"name": name, "size": self.random.randrange(50)}}

    def _item(self, code: str | None = None) -> dict[str, Any]:
        rank, added = self._properties()
        data: dict[str, Any] = {"code": code or self._code(), "owner": self._owner(), rank: self.random.randrange(1000)}
        if self.random.random() < 0.15:
            data["mark"] = self.random.randrange(MARKS)
        if self.random.random() < 0.5:
            data["note"] = f"note {self.random.randrange(100)} é𝄞"
        if added and self.random.random() < 0.5:
            data[self.random.choice(added)] = self.random.randrange(1000)
        return {"type": "Item", "data": data}

    def _code(self) -> str:
        return f"c{self.random.randrange(ITEMS):03}"

    def _group(self) -> str:
        return f"g{self.random.randrange(GROUPS)}"

    def _owner(self) -> str:
        return f"o{self.random.randrange(OWNERS)}"

    def _edge(self, number: int) -> dict[str, Any]:
        kind = self.random.choice(list(EDGES))
        if kind == "Next":
            data: dict[str, Any] = {"weight": self.random.randrange(100)}
            return {"edge": kind, "from": self._code(), "to": self._code(), "data": data}
        data = {"token": f"{self.settings.life}-{self.count}-{number}"}
        if kind == "Joins":
            data["level"] = self.random.randrange(10)
        return {"edge": kind, "from": self._code(), "to": self._group(), "data": data}

    def _lines(self, most: int) -> list[dict[str, Any]]:
        """Some nodes and edges; no entity twice."""
        lines: list[dict[str, Any]] = []
        for number in range(self.random.randint(1, most)):
            drawn = self.random.random()
            if drawn < 0.45:
                lines.append(self._item())
            elif drawn < 0.55:
                lines.append(self._size(self._group()))
            else:
                edge = self._edge(number)
                lines.append(edge)
                if self.random.random() < 0.5:
                    # With its ends, or many edges would be refused for want of them.
                    lines.append(self._item(edge["from"]))
                    there = edge["edge"] == "Next"
                    lines.append(self._item(edge["to"]) if there else self._size(edge["to"]))
        named = {_identity(line): line for line in lines}
        return list(named.values())

    def _choose_insert(self) -> dict[str, Any]:
        return {"branch": self._branch(), "lines": self._lines(4)}

    def _choose_update(self) -> dict[str, Any]:
        rank, added = self._properties()
        column = self.random.choice([rank, "note", *added])
        value: Any = f"set {self.random.randrange(100)}" if column == "note" else self.random.randrange(1000)
        if self.random.random() < 0.2:
            value = None
        where = ["code", self._code()] if self.random.random() < 0.7 else ["owner", self._owner()]
        identity = column.partition("_")[0]
        return {"branch": self._branch(), "type": "Item", "column": column, "set": {identity: value}, "where": where}

    def _choose_delete(self) -> dict[str, Any]:
        where = self.random.choice(
            [("Item", "code", self._code()), ("Item", "code", self._code()), ("Item", "mark", self.random.randrange(MARKS)),
             ("Group", "name", self._group()), ("Next", "src", self._code()), ("Leads", "dst", self._group())]
        )  # fmt: skip
        return {"branch": self._branch(), "type": where[0], "where": list(where[1:])}

    def _choose_load(self) -> dict[str, Any]:
        mode = self.random.choices(["append", "merge", "overwrite"], [3, 5, 2])[0]
        if mode == "overwrite":
            lines = self._overwrite()
        else:
            lines = self._lines(12)
        if mode == "append":
            # Mostly entities that are not there yet, or nothing would ever be accepted.
            for number, line in enumerate(line for line in lines if line.get("type") == "Item"):
                line["data"]["code"] = f"n{self.settings.life}-{self.count}-{number}"
                line["data"].pop("mark", None)
            lines = [line for line in lines if line.get("type") == "Item" or line.get("edge") in ("Joins", "Leads")]
        if not lines:
            return self._choose_load()
        spark = self.settings.spark and self.random.random() < 0.08
        return {"branch": self._branch(), "mode": mode, "lines": lines, "engine": "spark" if spark else "local"}

    def _overwrite(self) -> list[dict[str, Any]]:
        """A new image of one or two types; whether it is accepted depends on the edges that stay."""
        if self.random.random() < 0.5:
            names = {self._group() for _ in range(GROUPS * 2)}
            return [{"type": "Group", "data": {"name": name, "size": 1}} for name in sorted(names)]
        edges = [self._edge(number) for number in range(12)]
        kind = self.random.choice(["Joins", "Next"])
        named = {_identity(line): line for line in edges if line["edge"] == kind}
        return list(named.values())

    def _choose_ingest(self) -> dict[str, Any] | None:
        branch = self._new_branch()
        return None if branch is None else {"branch": branch, "base": "main", "mode": "merge", "lines": self._lines(10)}

    def _new_branch(self) -> str | None:
        crowded = len(self.graph.branches()) > 4
        early = time.monotonic() - self.started < self.settings.alone_seconds
        return None if crowded or early else f"b-{self.settings.life}-{self.count}"

    def _choose_merge(self) -> dict[str, Any] | None:
        branch = self._other_branch()
        if branch is None:
            return None
        source, into = (branch, "main") if self.random.random() < 0.75 else ("main", branch)
        return {
            "branch": into,
            "source": source,
            "strategy": self.random.choice([None, "ours", "theirs", "theirs"]),
            "by_property": self.random.random() < 0.4,
            "delete": source != "main" and self.random.random() < 0.4,
        }

    def _choose_revert(self) -> dict[str, Any]:
        branch = self._branch()
        found = self.random.choice(self.graph.commits(branch)[:8])
        return {"branch": branch, "of": found.id, "strategy": self.random.choice([None, "ours", "theirs"])}

    def _choose_cherry_pick(self) -> dict[str, Any] | None:
        branch, source = self._branch(), self._branch()
        if branch == source:
            return None
        found = self.random.choice(self.graph.commits(source)[:8])
        return {"branch": branch, "of": found.id, "strategy": self.random.choice([None, "ours", "theirs"])}

    def _choose_branch(self) -> dict[str, Any] | None:
        branch = self._new_branch()
        return None if branch is None else {"branch": branch, "base": self._branch()}

    def _choose_delete_branch(self) -> dict[str, Any] | None:
        branch = self._other_branch()
        return None if branch is None else {"branch": branch}

    def _choose_tag(self) -> dict[str, Any]:
        tag = f"t-{self.settings.life}-{self.count}"
        found = [commit for commit in self.graph.commits("main")[:10] if commit.branch == "main"]
        return {"tag": tag, "of": self.random.choice(found).id}

    def _choose_delete_tag(self) -> dict[str, Any] | None:
        return {"tag": self.tags.pop(0)} if self.tags else None

    def _choose_schema(self) -> dict[str, Any] | None:
        if self.graph.branches() != ["main"]:
            return None
        text = self.graph.schema()
        rank, added = self._properties()
        if self.random.random() < 0.5 and len(added) < 6:
            name = f"x{self.settings.life}{self.count}".replace("-", "")
            return {"text": text.replace("  note:", f"  {name}: I64?\n  note:")}
        later = f"rank_{int(rank.partition('_')[2]) + 1}"
        line = next(line for line in text.splitlines() if line.strip().startswith(rank))
        return {"text": text.replace(line, f'  {later}: I64? @rename_from("{rank}")')}

    def _choose_maintenance(self) -> dict[str, Any]:
        return {"branch": self._branch()}

    _choose_ensure_indices = _choose_optimize = _choose_read = _choose_export = _choose_maintenance

    def _choose_cleanup(self) -> dict[str, Any]:
        return {"keep": self.random.choice([3, 5, 20])}

    # --- acting ---------------------------------------------------------------------------------------------------

    def act(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        """Carry an intent out; returns what to write down of the answer."""
        return dict(getattr(self, f"_do_{intent['op']}")(intent))

    def _mutate(
        self, intent: Mapping[str, Any], statements: str, declared: str = "", params: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = self.graph.mutate(
            f"query q({declared}) {{ {statements} }}",
            params=params,
            branch=intent["branch"],
            actor=intent["name"],
            if_commit=intent.get("if_commit"),
            idempotency_key=intent.get("key"),
        )
        return _made(result.commit)

    def _do_insert(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        return self._mutate(intent, " ".join(_insert(line) for line in intent["lines"]))

    def _do_update(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        (value,) = intent["set"].values()
        column, wanted = intent["where"]
        declared = "$v: String?" if intent["column"] == "note" else "$v: I64?"
        text = f"update Item set {{ {intent['column']}: $v }} where {column} = {json.dumps(wanted)}"
        return self._mutate(intent, text, declared, {"v": value})

    def _do_delete(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        column, wanted = intent["where"]
        column = {"src": "from", "dst": "to"}.get(column, column)
        return self._mutate(intent, f"delete {intent['type']} where {column} = {json.dumps(wanted)}")

    def _do_load(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        result = self.graph.load(
            intent["lines"],
            intent["mode"],
            branch=intent["branch"],
            base=intent.get("base"),
            actor=intent["name"],
            engine=intent.get("engine", "local"),
            idempotency_key=intent.get("key"),
        )
        return _made(result.commit)

    _do_ingest = _do_load

    def _do_merge(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        result = self.graph.merge(
            intent["source"],
            intent["branch"],
            delete_branch=intent["delete"],
            strategy=intent["strategy"],
            property_level=intent["by_property"],
            actor=intent["name"],
            idempotency_key=intent.get("key"),
        )
        return {**_made(result.commit), "base": result.stats.get("base"), "result": result.outcome}

    def _do_revert(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        result = self.graph.revert(intent["of"], intent["branch"], strategy=intent["strategy"], actor=intent["name"])
        return _made(result.commit)

    def _do_cherry_pick(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        result = self.graph.cherry_pick(
            intent["of"], intent["branch"], strategy=intent["strategy"], actor=intent["name"]
        )
        return _made(result.commit)

    def _do_branch(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        return {"at": self.graph.create_branch(intent["branch"], intent["base"]).commit}

    def _do_delete_branch(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        self.graph.delete_branch(intent["branch"])
        return {}

    def _do_tag(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        self.graph.tag(intent["tag"], intent["of"])
        self.tags.append(intent["tag"])
        return {}

    def _do_delete_tag(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        self.graph.delete_tag(intent["tag"])
        return {}

    def _do_schema(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        self.graph.apply_schema(intent["text"], actor=intent["name"])
        return {}

    def _do_ensure_indices(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        self.graph.ensure_indices(intent["branch"], actor=intent["name"])
        return {}

    def _do_optimize(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        self.graph.optimize(intent["branch"], actor=intent["name"])
        return {}

    def _do_cleanup(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        return {"datasets": len(self.graph.cleanup(keep=intent["keep"]).datasets)}

    def _do_repair(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        report = self.graph.repair(confirm=True, actor=intent["name"])
        return {"actions": sorted({table.action for table in report.datasets})}

    def _do_read(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        """The whole graph at one snapshot, and the same numbers by queries."""
        view = self.graph.snapshot(intent["branch"])
        state = state_of(read_lines(self.graph, snapshot=view))
        counts = {}
        for name in NODES:
            text = f"query q() {{ match {{ $n: {name} }} return {{ count($n) as n }} }}"
            counts[name] = self.graph.query(text, snapshot=view).rows[0]["n"]
        text = "query q() { match { $a: Item $a next $b } return { $a.code, $b.code } }"
        hops = self.graph.query(text, snapshot=view).rows
        found = sorted(f"{row['a.code']}>{row['b.code']}" for row in hops)
        if counts != {name: len(state[name]) for name in NODES} or found != sorted(state["Next"]):
            self.note(violation=f"queries and export of {view.id} ({view.commit}) disagree: {counts}, {found}")
        return {"commit_read": view.commit, "digest": digest(state)}

    def _do_export(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        folder = Path(self.settings.folder) / "exports"
        folder.mkdir(exist_ok=True)
        path = folder / f"{intent['name']}.jsonl"
        try:
            count = self.graph.export(path, branch=intent["branch"])
            return {"count": count, "lines": len(path.read_text().splitlines())}
        finally:
            path.unlink(missing_ok=True)

    def _do_feed(self, intent: Mapping[str, Any]) -> dict[str, Any]:
        """One poll of main's feed from where the last one ended: the commits that it told."""
        cursor, self.cursor = self.cursor, None
        page = self.graph.changes("main", cursor=cursor, limit=2000)
        told = [block.commit.id for block in page.blocks]
        while page.next_page_token is not None:
            page = self.graph.changes("main", page_token=page.next_page_token, limit=2000)
            told += [block.commit.id for block in page.blocks]
        self.cursor = page.cursor
        return {"told": list(dict.fromkeys(told)), "fresh": cursor is None}


# --- texts ------------------------------------------------------------------------------------------------------------


def _identity(line: Mapping[str, Any]) -> tuple[str, ...]:
    if "type" in line:
        return line["type"], line["data"][NODES[line["type"]]]
    # Two edges of a kind with a key or a cardinality from one item are one too many.
    return (line["edge"], line["from"], line["to"]) if line["edge"] == "Next" else (line["edge"], line["from"])


def _insert(line: Mapping[str, Any]) -> str:
    values = dict(line["data"])
    if "edge" in line:
        values = {"from": line["from"], "to": line["to"], **values}
    assigned = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return f"insert {line.get('type') or line['edge']} {{ {assigned} }}"


def _made(commit: og.Commit | None) -> dict[str, Any]:
    return {"commit": None if commit is None else commit.id}


def read_lines(graph: og.Graph, **where: Any) -> Iterator[dict[str, Any]]:
    """The export of a branch or snapshot, line by line."""
    for line in b"".join(graph.export_chunks(**where)).splitlines():
        yield json.loads(line)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The entries of a journal; the last line of a process that was killed may be a part of one."""
    entries = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            entries.append(json.loads(line))
    return entries


def main(argument: str) -> None:
    faulthandler.register(signal.SIGUSR1)
    for module in DECLARING:
        importlib.import_module(f"omnigraph.{module}")
    settings = Settings(**json.loads(argument))
    while True:
        try:
            worker = Worker(settings)
            break
        except OmnigraphError as error:
            # Opening heals; a store that fails meanwhile is tried again, as a user would.
            print(f"open: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            time.sleep(0.5)
    worker.run()


if __name__ == "__main__":
    main(sys.argv[1])
