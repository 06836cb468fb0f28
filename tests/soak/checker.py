"""What must be true of a graph after a round of the soak, told from the journals alone.

The model is carried along the history: the state of a commit is what its operation makes of the state of its parent. So the
order that the engine chose is taken from the history, and everything else from what the workers wrote down.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import omnigraph as og
from omnigraph.errors import ChangeSchemaBoundary, HistoricalVersionReclaimed
from tests.soak.model import (
    EMPTY,
    SCHEMA,
    Impossible,
    Intent,
    Node,
    State,
    bases,
    combine,
    difference,
    digest,
    faults,
    placed,
    state_of,
    write,
)
from tests.soak.worker import read_journal, read_lines

#: What the commits of an operation are called.
KINDS = {
    "insert": "mutation", "update": "mutation", "delete": "mutation", "load": "load", "ingest": "load", "merge": "merge",
    "revert": "revert", "cherry_pick": "cherry_pick", "schema": "schema", "ensure_indices": "maintenance",
    "optimize": "maintenance", "repair": "maintenance",
}  # fmt: skip
#: Errors that an operation may meet while others work on the same graph; all of them say that nothing happened.
FAIR = {
    "Conflict", "KeyConflict", "ExpectedVersionMismatch", "ReadSetChanged", "SchemaChanged", "ManifestContention",
    "PreconditionFailed", "MergeConflicts", "CommitHasNoParent", "ChangeSchemaBoundary", "BranchNotFound", "CommitNotFound",
    "NotFound", "AlreadyExists", "ValidationError", "LoadRejected", "SchemaChangeRefused", "TypecheckError",
    "HistoricalVersionReclaimed", "ChangeFeedGap",
}  # fmt: skip
#: The newest commits of a branch that every cleanup of the soak keeps.
KEPT = 3


@dataclass
class Operation:
    """One intent and everything that was written down about it."""

    intent: Intent
    tries: int = 1
    outcomes: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def commits(self) -> set[str]:
        """The commits that were acknowledged; more than one is a fault."""
        return {entry["commit"] for entry in self.outcomes if entry.get("commit")}

    @property
    def undecided(self) -> bool:
        """Whether it may have happened without being acknowledged."""
        return self.tries > len(self.outcomes) or not all(map(self._is_refusal, self.outcomes))

    def _is_refusal(self, entry: Mapping[str, Any]) -> bool:
        """Whether an answer promises that nothing happened. What is no commit has no record to settle a lost answer by."""
        unsettled = self.intent["op"] not in KINDS and entry.get("error") in ("StorageError", "CommitUnknown")
        return entry["outcome"] == "refused" and not unsettled

    @property
    def acknowledged(self) -> bool:
        return any(entry["outcome"] == "done" for entry in self.outcomes)


class Checker:
    """What is known of one graph, from its first commit on."""

    def __init__(self, uri: str, options: Mapping[str, str], folder: Path, seed: str) -> None:
        self.uri, self.options, self.folder = uri, dict(options), folder
        self.random = Random(seed)
        self.nodes: dict[str, Node] = {}
        self.states: dict[str, State | None] = {}
        self.operations: dict[str, Operation] = {}
        self.cursor: str | None = None
        self.found: list[str] = []
        self.counts: Counter[str] = Counter()
        self._read_entries: Counter[Path] = Counter()
        self._errors: list[Mapping[str, Any]] = []

    def begin(self, items: int, groups: int) -> None:
        """Create the graph and load what operations can refer to."""
        graph = og.init(self.uri, SCHEMA, storage_options=self.options or None)
        lines: list[dict[str, Any]] = [
            {"type": "Item", "data": {"code": f"c{n:03}", "owner": f"o{n % 6}"}} for n in range(items)
        ]
        lines += [{"type": "Group", "data": {"name": f"g{n}"}} for n in range(groups)]
        made = graph.load(lines, mode="append", actor="begin").commit
        intent = {"name": "begin", "op": "load", "branch": "main", "mode": "append", "lines": lines}
        self.operations["begin"] = Operation(intent, 1, [{"outcome": "done", "commit": made.id}])

    # --- a round --------------------------------------------------------------------------------------------------

    def check(self, *, faulty_store: bool) -> list[str]:
        """Everything that is wrong now."""
        self.found = []
        self._read_journals(faulty_store)
        graph = og.open(self.uri, storage_options=self.options or None)
        graph.refresh()
        if waiting := graph.pending_operations():
            self.wrong(f"after recovery {len(waiting)} operations are still pending: {waiting}")
        self._write_once_more(graph)
        alive = graph.branches()
        self._branches(alive)
        histories = {branch: graph.commits(branch) for branch in alive}
        for branch, commits in histories.items():
            self._history(branch, commits)
        self._follow(graph, histories)
        self._acknowledged(histories)
        if not all(self._compare(graph, graph.head(branch).id, f"head of {branch}", branch=branch) for branch in alive):
            return self.found  # what follows would only say the same again
        self._tags(graph)
        self._past(graph, histories["main"])
        self._reads()
        self._feed(graph, histories["main"])
        self._export(graph)
        self._queries(graph)
        for damage in graph.verify().damages:
            self.wrong(f"verify: {damage}")
        return self.found

    def wrong(self, what: str) -> None:
        self.found.append(what)

    def _read_journals(self, faulty_store: bool) -> None:
        for path in sorted(self.folder.glob("journal-*")):
            entries = read_journal(path)
            for entry in entries[self._read_entries[path] :]:
                self._take(entry)
            self._read_entries[path] = len(entries)
        # Whether a branch was deleted is known when all journals are read.
        for unjudged in self._errors:
            self._judge(unjudged, faulty_store)
        self._errors = []

    def _take(self, entry: Mapping[str, Any]) -> None:
        if "intent" in entry:
            self.operations[entry["intent"]["name"]] = Operation(entry["intent"])
        elif "again" in entry:
            self.operations[entry["again"]].tries += 1
        elif "violation" in entry:
            self.wrong(entry["violation"])
        elif "outcome" in entry:
            operation = self.operations[entry["name"]]
            operation.outcomes.append(entry)
            told = entry.get("error") or ("done" if entry.get("commit", "") is not None else "done, no change")
            where = " on Spark" if operation.intent.get("engine") == "spark" else ""
            self.counts[f"{operation.intent['op']}{where}: {told}"] += 1
        if "error" in entry:
            self._errors.append(entry)

    def _judge(self, entry: Mapping[str, Any], faulty_store: bool) -> None:
        """An error is one of ours, and one that the operation may meet here."""
        error, fair = entry["error"], FAIR
        if self._was_deleted(entry):
            # Staging and reading fail in many ways when a branch is deleted meanwhile, but nothing is damaged.
            fair = fair | {"StorageError", "Missing"}
            if "try again" in entry.get("message", ""):
                fair = fair | {"Corrupt"}
        if faulty_store:
            fair = fair | {"StorageError", "CommitUnknown"}
        if entry.get("outcome") == "unknown" or error in fair:
            return
        intent = self.operations[entry["name"]].intent if "name" in entry else entry.get("unprepared")
        self.wrong(f"{error}: {entry.get('trace') or entry.get('message')} | {_short(intent)}")

    def _was_deleted(self, entry: Mapping[str, Any]) -> bool:
        """Whether somebody wanted to delete the branch of an operation."""
        if "name" not in entry:
            return True
        intent = self.operations[entry["name"]].intent
        named = {intent.get("branch"), intent.get("source"), intent.get("base")} - {"main", None}
        return bool(named & self._maybe_deleted())

    def _maybe_deleted(self) -> set[str]:
        gone = set()
        for operation in self.operations.values():
            if operation.intent["op"] == "delete_branch" and operation.undecided:
                gone.add(operation.intent["branch"])
            if operation.intent["op"] == "merge" and operation.intent["delete"]:
                gone.add(operation.intent["source"])
        return gone

    def _write_once_more(self, graph: og.Graph) -> None:
        """Every branch still accepts a write."""
        for branch in graph.branches():
            name = f"check-{len(self.operations)}"
            line: dict[str, Any] = {"type": "Group", "data": {"name": "checked", "size": len(self.operations)}}
            operation = Operation({"name": name, "op": "insert", "branch": branch, "lines": [line]})
            self.operations[name] = operation
            text = f'query q() {{ insert Group {{ name: "checked", size: {len(self.operations) - 1} }} }}'
            line["data"]["size"] = len(self.operations) - 1
            try:
                made = graph.mutate(text, branch=branch, actor=name).commit
                operation.outcomes.append({"outcome": "done", "commit": made and made.id})
            except Exception as error:
                self.wrong(f"{branch} can not be written any more: {type(error).__name__}: {error}")
                operation.outcomes.append({"outcome": "refused"})

    def forget_branch(self, name: str, branch: str) -> None:
        """A branch was deleted from outside."""
        self.operations[name] = Operation(
            {"name": name, "op": "delete_branch", "branch": branch}, 1, [{"outcome": "done"}]
        )

    # --- branches and history -------------------------------------------------------------------------------------

    def _branches(self, alive: list[str]) -> None:
        gone = self._maybe_deleted()
        known = {"main"}
        for operation in self.operations.values():
            intent = operation.intent
            if intent["op"] in ("branch", "ingest"):
                if operation.undecided:
                    known.add(intent["branch"])
                if operation.acknowledged and intent["branch"] not in gone and intent["branch"] not in alive:
                    self.wrong(f"branch {intent['branch']} was made and is not there")
            if intent["op"] == "delete_branch" and operation.acknowledged and intent["branch"] in alive:
                self.wrong(f"branch {intent['branch']} was deleted and is there")
        if surplus := set(alive) - known:
            self.wrong(f"branches nobody made: {surplus}")

    def _history(self, branch: str, commits: list[og.Commit]) -> None:
        """One line of commits from the head of a branch, each with an intent; new ones are taken over."""
        listed = {commit.id: commit for commit in commits}
        if len(listed) != len(commits):
            self.wrong(f"a commit is twice in the history of {branch}")
        children = Counter(commit.parent for commit in commits if commit.branch == branch)
        if any(count > 1 for count in children.values()):
            self.wrong(f"two commits of {branch} share a parent")
        names = Counter(name for commit in commits if (name := self._name(commit)) is not None)
        if doubled := [name for name, count in names.items() if count > 1]:
            self.wrong(f"operations with two commits on {branch}: {doubled}")
        for commit in commits:
            if commit.parent is not None and commit.parent not in listed:
                self.wrong(f"the parent of {commit.id} is not in the history of {branch}")
            known = self.nodes.setdefault(commit.id, Node(commit.id, commit.parent, commit.merged_parent))
            if known != Node(commit.id, commit.parent, commit.merged_parent):
                self.wrong(f"the history was rewritten: {known} is {commit} now")

    def _name(self, commit: og.Commit) -> str | None:
        """The operation that made a commit; None for those of nobody: the first one, and undone writes."""
        if commit.kind in ("init", "recovery"):
            return None
        return commit.recovery_for_actor or commit.actor

    def _acknowledged(self, histories: Mapping[str, list[og.Commit]]) -> None:
        """What was acknowledged is there, what was refused is not."""
        gone = self._maybe_deleted()
        ids = {branch: {commit.id for commit in commits} for branch, commits in histories.items()}
        made: dict[str, set[str]] = defaultdict(set)
        for commits in histories.values():
            for commit in commits:
                if (name := self._name(commit)) is not None:
                    made[name].add(commit.id)
        for name, operation in self.operations.items():
            intent = operation.intent
            if len(operation.commits) > 1:
                self.wrong(f"{name} was answered with several commits: {operation.commits}")
            for commit_id in operation.commits:
                branch = intent["branch"]
                if branch not in gone and commit_id not in ids.get(branch, ()):
                    self.wrong(f"LOST: {commit_id} on {branch} was acknowledged: {_short(intent)}")
            if operation.commits and made[name] - operation.commits:
                self.wrong(f"{name} made other commits than it was told: {made[name]} | {_short(intent)}")
            if made[name] and not operation.undecided:
                self.wrong(f"refused, and yet there: {made[name]} | {operation.outcomes} | {_short(intent)}")

    # --- the model ------------------------------------------------------------------------------------------------

    def _follow(self, graph: og.Graph, histories: Mapping[str, list[og.Commit]]) -> None:
        """Give every new commit its state, parents first."""
        new = {
            commit.id: commit for commits in histories.values() for commit in commits if commit.id not in self.states
        }
        waiting = list(new.values())
        while waiting:
            commit = waiting.pop()
            if commit.id in self.states:
                continue
            missing = [new[up] for up in (commit.parent, commit.merged_parent) if up in new and up not in self.states]
            if missing:
                waiting += [commit, *missing]
                continue
            self.states[commit.id] = self._state(graph, commit)
            self.counts["commits"] += 1

    def _state(self, graph: og.Graph, commit: og.Commit) -> State | None:
        try:
            state = self._expected(commit)
        except Impossible as error:
            self.wrong(f"{commit.kind} {commit.id} had to be refused: {error} | {_short(self._intent(commit))}")
            state = None
        if state is None:
            state = self._adopted(graph, commit)
        for fault in faults(state or EMPTY):
            self.wrong(f"{commit.kind} {commit.id} broke a rule: {fault} | {_short(self._intent(commit))}")
        return state

    def _intent(self, commit: og.Commit) -> Intent | None:
        operation = self.operations.get(self._name(commit) or "")
        return None if operation is None else operation.intent

    def _expected(self, commit: og.Commit) -> State | None:
        """What a commit makes of its parents; None when the model can not tell."""
        if commit.kind == "init":
            return EMPTY
        before = self.states.get(commit.parent or "")
        intent = self._intent(commit)
        if commit.kind == "recovery" or before is None:
            return before
        if intent is None:
            raise Impossible("nobody intended it")
        if KINDS.get(intent["op"]) != commit.kind:
            raise Impossible(f"a {intent['op']} made a commit of kind {commit.kind}")
        if intent.get("if_commit") not in (None, commit.parent):
            raise Impossible(f"it was to be made on {intent['if_commit']} only, not on {commit.parent}")
        if commit.kind in ("schema", "maintenance"):
            return before
        if commit.kind in ("mutation", "load"):
            return write(before, intent)
        return self._three_way(commit, before, intent)

    def _three_way(self, commit: og.Commit, ours: State, intent: Intent) -> State | None:
        if commit.kind == "merge":
            assert commit.parent is not None
            assert commit.merged_parent is not None
            found = bases(self.nodes, commit.parent, commit.merged_parent)
            if len(found) > 1:
                self.counts["merges with several bases, taken as they are"] += 1
                return None
            (start,) = found
            end = commit.merged_parent
        else:
            of = self.nodes.get(intent["of"])
            if of is None or of.parent is None:
                return None
            start, end = (of.id, of.parent) if commit.kind == "revert" else (of.parent, of.id)
        base, theirs = self.states.get(start), self.states.get(end)
        if base is None or theirs is None:
            return None
        merged = combine(base, ours, theirs, intent["strategy"], intent.get("by_property", False))
        if merged.conflicts:
            raise Impossible(f"conflicts without a strategy: {merged.conflicts[:3]}")
        return merged.state

    def _adopted(self, graph: og.Graph, commit: og.Commit) -> State | None:
        """The state of a commit that the model can not tell, as it is read; None when it can not be read any more."""
        self.counts["states taken as they are"] += 1
        try:
            return state_of(read_lines(graph, snapshot=commit.id))
        except HistoricalVersionReclaimed:
            return None
        except Impossible as error:
            self.wrong(f"{commit.id}: {error}")
            return None

    # --- contents -------------------------------------------------------------------------------------------------

    def _compare(self, graph: og.Graph, commit: str, what: str, **where: Any) -> bool:
        """Whether a state is as the model has it; a fault names the first commit that went wrong."""
        expected = self.states.get(commit)
        try:
            actual = state_of(read_lines(graph, **where))
        except Impossible as error:
            self.wrong(f"{what} ({commit}): {error}")
            return False
        if expected is None:
            self.states[commit] = actual
            return True
        self.counts["states compared"] += 1
        differing = difference(expected, actual)
        if differing:
            listed = [f"{at}: {sides[0]} is {sides[1]}" for at, sides in sorted(differing.items())[:3]]
            self.wrong(
                f"{what} ({commit}) differs from the model in {len(differing)}: {listed} | {self._blame(graph, commit)}"
            )
            self.states[commit] = actual
        return not differing

    def _blame(self, graph: og.Graph, commit: str) -> str:
        """The oldest readable commit on the way to this one that is not as the model has it."""
        worst = "no other commit"
        at: str | None = commit
        for _ in range(200):
            expected = self.states.get(at or "")
            if at is None or expected is None:
                break
            try:
                if not difference(expected, state_of(read_lines(graph, snapshot=at))):
                    break
            except (og.errors.OmnigraphError, Impossible):
                break
            worst = f"since {at}: {_short(self._intent(graph.commit(at)))} {graph.commit(at)}"
            at = self.nodes[at].parent
        return worst

    def _past(self, graph: og.Graph, commits: list[og.Commit]) -> None:
        """Time travel: the newest are there, older ones are right or gone."""
        own = [commit for commit in commits if commit.branch == "main"]
        chosen = {commit.id: commit for commit in own[:KEPT] + self.random.sample(own, min(len(own), 8))}
        for commit in chosen.values():
            try:
                self._compare(graph, commit.id, "the past", snapshot=commit.id)
            except HistoricalVersionReclaimed as error:
                self.counts["states cleaned up"] += 1
                if commit in own[:KEPT]:
                    self.wrong(f"{commit.id} is one of the newest and can not be read: {error}")

    def _tags(self, graph: og.Graph) -> None:
        there = graph.tags()
        deleted = {
            operation.intent["tag"]
            for operation in self.operations.values()
            if operation.intent["op"] == "delete_tag" and operation.undecided
        }
        for operation in self.operations.values():
            intent = operation.intent
            if intent["op"] != "tag" or intent["tag"] in deleted:
                continue
            if operation.acknowledged and there.get(intent["tag"]) != intent["of"]:
                self.wrong(f"tag {intent['tag']} is {there.get(intent['tag'])}, not {intent['of']}")
            if operation.acknowledged and self.random.random() < 0.3:
                try:
                    self._compare(graph, intent["of"], f"tag {intent['tag']}", snapshot=intent["tag"])
                except HistoricalVersionReclaimed as error:
                    self.wrong(f"tag {intent['tag']} can not be read: {error}")

    def _reads(self) -> None:
        """What workers read while others wrote was the state of the commit that they were shown."""
        for operation in self.operations.values():
            for entry in operation.outcomes:
                state = self.states.get(entry.get("commit_read", ""))
                if state is not None:
                    self.counts["concurrent reads compared"] += 1
                    if digest(state) != entry["digest"]:
                        self.wrong(f"a read of {entry['commit_read']} saw something else: {_short(operation.intent)}")
                if "told" in entry:
                    self._told(entry["told"])
                if entry.get("lines") != entry.get("count"):
                    self.wrong(f"an export says {entry['count']} and has {entry['lines']} lines")
        for operation in self.operations.values():
            operation.outcomes = [
                {name: entry[name] for name in entry.keys() - {"commit_read", "told"}} for entry in operation.outcomes
            ]

    def _told(self, told: list[str]) -> None:
        """A poll of the feed told commits that follow each other on main."""
        for before, after in pairwise(told):
            if after in self.nodes and self.nodes[after].parent != before:
                self.wrong(f"the feed told {after} after {before}")

    # --- feed, export, queries ------------------------------------------------------------------------------------

    def _feed(self, graph: og.Graph, commits: list[og.Commit]) -> None:
        """The feed from the last check on tells every commit of main once, with what it changed."""
        told: list[str] = []
        for commit, changes in self._feed_blocks(graph, commits):
            told.append(commit)
            before, after = self.states.get(self.nodes[commit].parent or ""), self.states.get(commit)
            if before is None or after is None:
                continue
            self.counts["blocks of the feed compared"] += 1
            expected = difference(before, after)
            if changes != expected:
                other = {at for at in {*changes, *expected} if changes.get(at) != expected.get(at)}
                listed = [f"{at}: {expected.get(at)} is told as {changes.get(at)}" for at in sorted(other)[:3]]
                self.wrong(f"the feed tells {commit} wrongly: {listed}")
        at: str | None = graph.head("main").id
        chain: list[str] = []
        while at is not None and len(chain) < len(told):
            chain.append(at)
            at = self.nodes[at].parent
        if told != chain[::-1]:
            self.wrong(f"the feed told other commits than main has: {told} / {chain[::-1]}")

    def _feed_blocks(self, graph: og.Graph, commits: list[og.Commit]) -> Iterator[tuple[str, dict[Any, Any]]]:
        """Commit by commit to the end; a schema change is stepped over, and told without changes."""
        parents = {commit.parent: commit.id for commit in commits if commit.branch == "main"}
        seen = None if self.cursor is not None else commits[-1].id
        asked: dict[str, Any] = {"cursor": self.cursor} if self.cursor is not None else {"start": f"after:{seen}"}
        while True:
            try:
                page = graph.changes("main", **asked)
            except ChangeSchemaBoundary as boundary:
                yield boundary.commit, {}
                seen = boundary.commit
                asked = {"start": f"after:{boundary.commit}"}
                continue
            for block in page.blocks:
                seen = block.commit.id
                yield seen, dict(_told_change(change) for change in block.changes)
            if page.next_page_token is not None:
                asked = {"page_token": page.next_page_token}
                continue
            self.cursor = page.cursor
            if seen is None or seen not in parents or not page.blocks:
                return
            asked = {"cursor": page.cursor}

    def _export(self, graph: og.Graph) -> None:
        """What is exported loads back into an equal graph."""
        with tempfile.TemporaryDirectory(prefix="soak-copy-") as folder:
            lines = Path(folder) / "all.jsonl"
            graph.export(lines)
            copy = og.init(str(Path(folder) / "graph"), graph.schema())
            copy.load(lines, mode="append")
            if b"".join(copy.export_chunks()) != b"".join(graph.export_chunks()):
                self.wrong("an export does not load back into an equal graph")

    def _queries(self, graph: og.Graph) -> None:
        """Look-ups by key, by an indexed property and along edges answer what the model holds."""
        state = self.states.get(graph.head("main").id)
        if state is None:
            return
        text = """
            query by_key($c: String) { match { $i: Item { code: $c } } return { $i.owner } }
            query by_owner($o: String) { match { $i: Item { owner: $o } } return { $i.code } }
            query along($c: String) { match { $i: Item { code: $c } $i next $j } return { $j.code } }
        """
        for code in self.random.sample(sorted(state["Item"]), min(5, len(state["Item"]))):
            owner = state["Item"][code]["owner"]
            self._same(graph, text, "by_key", {"c": code}, [owner])
            theirs = [key for key, row in state["Item"].items() if row["owner"] == owner]
            self._same(graph, text, "by_owner", {"o": owner}, theirs)
            self._same(
                graph, text, "along", {"c": code}, [r["dst"] for r in state["Next"].values() if r["src"] == code]
            )

    def _same(self, graph: og.Graph, text: str, name: str, params: dict[str, str], expected: list[str]) -> None:
        found = [value for row in graph.query(text, name, params).rows for value in row.values()]
        if sorted(found) != sorted(expected):
            self.wrong(f"query {name} {params}: {sorted(found)}, the model says {sorted(expected)}")


def _told_change(change: Any) -> tuple[tuple[str, str], tuple[Any, Any]]:
    """A change of the feed in the form of the model: type and key, then the images before and after."""
    sides: list[tuple[str, str, Mapping[str, Any]] | None] = []
    for image, ends in ((change.before, change.endpoints_before or change.endpoints), (change.after, change.endpoints)):
        if image is None:
            sides.append(None)
            continue
        line = {"type": change.type, "data": image} if change.kind == "node" else None
        sides.append(placed(line or {"edge": change.type, "from": ends.src, "to": ends.dst, "data": image}))
    (name, key, _) = next(side for side in sides if side is not None)
    before, after = (side and side[2] for side in sides)
    return (name, key), (before, after)


def _short(intent: object) -> str:
    text = str(intent)
    return text if len(text) < 700 else f"{text[:700]}…"
