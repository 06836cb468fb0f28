"""Schemas and rows that change on up to six branches, merges, rebases, deleted branches and cleanup, against a plain model.

A run is a list of actions that a seed gives. Graph and model agree after every action: the schema and the rows of the branch that
was touched, the outcome and the conflicts of every merge; at the end all branches, every commit that a branch reaches, and
`verify`. A run that fails is made as short as it goes, and told as a list that `play` takes.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph.errors import Conflict, HistoricalVersionReclaimed, MergeConflicts
from tests.commit.healthy import assert_linear
from tests.merge.schema_model import Conflicts, State, merged, merged_schema

KEYS = ["x", "y", "z"]
VALUES = [None, 0, 1, 2]
PROPERTIES = ["a", "b", "c"]
TYPES = ["Place", "Team"]
BRANCHES = ["one", "two", "three", "four", "five"]

RUNS = 3_000 if os.environ.get("OMNIGRAPH_TEST_LONG") else 60
RUNS_AT_ONCE = 15
ACTIONS = 10

#: What is done, and what to it. Numbers choose among the branches, types or properties that there are then.
Action = tuple[Any, ...]
Strategy = Literal["ours", "theirs"] | None


def actions_of(seed: int) -> list[Action]:
    """The actions of a run: rows and a branch first, so that there is something to do."""
    chance = random.Random(seed)
    first = [("write", 0, [("put", key, 0, chance.choice(VALUES)) for key in KEYS]), ("create_branch", 0)]
    return [*first, *(_action(chance) for _ in range(ACTIONS))]


def _action(chance: random.Random) -> Action:
    place, other = chance.randrange(6), chance.randrange(6)
    level = chance.random() < 0.5
    decided = chance.choice([None, None, "ours", "theirs"])
    name = chance.choices(
        ("write", "merge", "rebase", "create_branch", "delete_branch", "cleanup", "reopen", "look_back"),
        (2, 6, 4, 4, 1, 1, 1, 1),
    )[0]
    match name:
        case "write":
            return (name, place, _edits(chance))
        case "merge":
            return (name, (place, other), _edits(chance), _edits(chance), decided, level, chance.random() < 0.3)
        case "rebase":
            return (name, (place, other), _edits(chance), _edits(chance), decided, level)
        case "create_branch" | "delete_branch":
            return (name, place)
        case "cleanup":
            return (name, 1 + place % 3)
        case "look_back":
            return (name, chance.randrange(100))
        case _:
            return (name,)


def _edits(chance: random.Random) -> list[Action]:
    """What is written to one branch, a commit each; sometimes nothing."""
    found: list[Action] = []
    for _ in range(chance.randrange(4)):
        key, number, name = chance.choice(KEYS), chance.randrange(6), chance.choice(PROPERTIES + TYPES)
        made: list[Action] = [
            ("put", key, number, chance.choice(VALUES)),
            ("delete", key),
            ("toggle", key, number),
            ("add", name),
            ("drop", number),
            ("rename", number, name),
        ]
        found += chance.choices(made, (6, 2, 3, 4, 2, 2))
    return found


class Commits:
    """The commits that were made: what each led to, and its parents."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.parents: dict[str, tuple[str, ...]] = {}

    def add(self, commit: str, state: State, *parents: str) -> None:
        self.states[commit], self.parents[commit] = state, parents

    def history(self, head: str) -> set[str]:
        """A commit and all its ancestors."""
        found, waiting = {head}, [head]
        while waiting:
            new = [parent for parent in self.parents[waiting.pop()] if parent not in found]
            found.update(new)
            waiting += new
        return found

    def bases(self, one: str, other: str) -> set[str]:
        """The common ancestors that are no ancestors of another one."""
        common = self.history(one) & self.history(other)
        older = {ancestor for commit in common for ancestor in self.history(commit) - {commit}}
        return common - older


class Branches:
    """A graph on disk and its model. Every rule does the same to both."""

    def __init__(self, folder: Path) -> None:
        self.numbers = count(1)
        self.commits = Commits()
        self.parent: dict[str, str] = {}
        #: Commits whose states cleanup may have taken; they are as they were, or said to be gone.
        self.doubtful: set[str] = set()
        first = State({next(self.numbers): PROPERTIES[0]})
        self.graph = og.init(folder, first.text())
        self.heads = {"main": self.graph.head().id}
        self.commits.add(self.heads["main"], first)

    def finish(self) -> None:
        """Everything is there that should be, for whoever opens the graph next."""
        self.reopen()
        assert set(self.graph.branches()) == set(self.heads)
        for branch in self.heads:
            self._agree(branch)
            assert_linear(self.graph._context, branch)
        for commit in self._readable():
            self._look(commit)
        assert self.graph.verify().damages == ()

    # --- rows and schemas -------------------------------------------------------------------------------------------

    def write(self, place: int, edits: list[Action]) -> None:
        """Some commits on one branch."""
        self._edit(self._branch(place), edits)

    def _edit(self, branch: str, edits: list[Action]) -> None:
        for edit, *given in edits:
            getattr(self, f"_{edit}")(branch, *given)

    def _put(self, branch: str, key: str, number: int, value: int | None) -> None:
        """Insert an item, or set one of its properties."""
        state = self._state(branch)
        given = {} if not state.properties else {_chosen(state.properties, number): value}
        shown = "".join(f", {state.properties[own]}: {'null' if value is None else value}" for own in given)
        row = {**dict.fromkeys(state.properties), **state.items.get(key, {}), **given}
        if row == state.items.get(key):
            return
        if key in state.items:
            statement = f'update Item set {{ {shown.removeprefix(", ")} }} where k = "{key}"'
        else:
            statement = f'insert Item {{ k: "{key}"{shown} }}'
        self._mutate(branch, statement, replace(state, items={**state.items, key: row}))

    def _delete(self, branch: str, key: str) -> None:
        state = self._state(branch)
        if key in state.items:
            left = {other: row for other, row in state.items.items() if other != key}
            self._mutate(branch, f'delete Item where k = "{key}"', replace(state, items=left))

    def _toggle(self, branch: str, key: str, number: int) -> None:
        """Insert a row of one of the further types, or delete it."""
        state = self._state(branch)
        if not state.types:
            return
        chosen = _chosen(state.types, number)
        name, keys = state.types[chosen], state.members[chosen]
        statement = f'delete {name} where k = "{key}"' if key in keys else f'insert {name} {{ k: "{key}" }}'
        self._mutate(branch, statement, replace(state, members={**state.members, chosen: keys ^ {key}}))

    def _add(self, branch: str, name: str) -> None:
        state = self._state(branch)
        number = next(self.numbers)
        if name in (*state.properties.values(), *state.types.values()):
            return
        if name in PROPERTIES:
            items = {key: {**row, number: None} for key, row in state.items.items()}
            after = replace(state, properties={**state.properties, number: name}, items=items)
        else:
            members = {**state.members, number: frozenset[str]()}
            after = replace(state, types={**state.types, number: name}, members=members)
        self._apply(branch, after)

    def _drop(self, branch: str, number: int) -> None:
        state = self._state(branch)
        things = {**state.properties, **state.types}
        if not things:
            return
        gone = _chosen(things, number)
        items = {key: {own: value for own, value in row.items() if own != gone} for key, row in state.items.items()}
        properties, types = (
            {own: name for own, name in named.items() if own != gone} for named in (state.properties, state.types)
        )
        members = {own: those for own, those in state.members.items() if own != gone}
        self._apply(branch, State(properties, items, types, members, state.aliases))

    def _rename(self, branch: str, number: int, name: str) -> None:
        state = self._state(branch)
        things = state.properties if name in PROPERTIES else state.types
        if not things or name in things.values():
            return
        chosen = _chosen(things, number)
        called = {**things, chosen: name}
        after = replace(state, properties=called) if name in PROPERTIES else replace(state, types=called)
        self._apply(branch, after, {name: things[chosen]})

    # --- branches ---------------------------------------------------------------------------------------------------

    def create_branch(self, place: int) -> None:
        if len(self.heads) > len(BRANCHES):
            return
        base = self._branch(place)
        name = next(name for name in BRANCHES if name not in self.heads)
        self.graph.create_branch(name, base)
        self.heads[name], self.parent[name] = self.heads[base], base
        self._agree(name)

    def delete_branch(self, place: int) -> None:
        if not self.parent:
            return
        name = sorted(self.parent)[place % len(self.parent)]
        if name in self.parent.values():
            with pytest.raises(Conflict, match="depends on it"):
                self.graph.delete_branch(name)
            return
        self.graph.delete_branch(name)
        del self.heads[name], self.parent[name]

    # --- merges -----------------------------------------------------------------------------------------------------

    def merge(
        self,
        pair: tuple[int, int],
        on_ours: list[Action],
        on_theirs: list[Action],
        strategy: Strategy,
        by_property: bool,
        deletes: bool,
    ) -> None:
        """Write to two branches, merge one into the other, and maybe delete it."""
        if len(self.heads) == 1:
            return
        ours, theirs = self._pair(pair, on_ours, on_theirs)
        deletes = deletes and theirs != "main"
        options = {"strategy": strategy, "property_level": by_property}
        result = self._merge("merge", ours, theirs, options, {"delete_branch": deletes})
        if result is None or not deletes:
            return
        assert result.stats["branch_deleted"] is (theirs not in self.parent.values()), result.stats
        if result.stats["branch_deleted"]:
            del self.heads[theirs], self.parent[theirs]

    def rebase(
        self,
        pair: tuple[int, int],
        on_ours: list[Action],
        on_theirs: list[Action],
        strategy: Strategy,
        by_property: bool,
    ) -> None:
        """Write to two branches, and bring one up to the other."""
        if len(self.heads) > 1:
            options = {"strategy": strategy, "property_level": by_property}
            self._merge("rebase", *self._pair(pair, on_ours, on_theirs), options, {})

    # --- the graph --------------------------------------------------------------------------------------------------

    def cleanup(self, keep: int) -> None:
        self.graph.cleanup(keep=keep)
        self.doubtful = set(self.commits.states) - {*self.heads.values()}
        for branch in self.heads:
            self._agree(branch)

    def reopen(self) -> None:
        self.graph = og.open(self.graph.uri)

    def look_back(self, number: int) -> None:
        readable = sorted(self._readable())
        self._look(readable[number % len(readable)])

    # --- both sides -------------------------------------------------------------------------------------------------

    def _branch(self, place: int) -> str:
        return sorted(self.heads)[place % len(self.heads)]

    def _state(self, branch: str) -> State:
        return self.commits.states[self.heads[branch]]

    def _pair(self, pair: tuple[int, int], on_ours: list[Action], on_theirs: list[Action]) -> tuple[str, str]:
        """Two branches, after some commits on each."""
        place = pair[0] % len(self.heads)
        ours, theirs = self._branch(place), self._branch(place + 1 + pair[1] % (len(self.heads) - 1))
        self._edit(ours, on_ours)
        self._edit(theirs, on_theirs)
        return ours, theirs

    def _mutate(self, branch: str, statement: str, after: State) -> None:
        result = self.graph.mutate(f"query w() {{ {statement} }}", branch=branch)
        assert result.commit is not None
        self._made(branch, result.commit, after)

    def _apply(self, branch: str, after: State, renamed: dict[str, str] | None = None) -> None:
        result = self.graph.apply_schema(after.text(renamed), branch=branch)
        assert result.commit is not None
        self._made(branch, result.commit, after)

    def _made(self, branch: str, commit: og.Commit, after: State) -> None:
        before = self.heads[branch]
        assert (commit.parent, commit.branch) == (before, branch)
        parents = (before,) if commit.merged_parent is None else (before, commit.merged_parent)
        self.commits.add(commit.id, after, *parents)
        self.heads[branch] = commit.id
        self._agree(branch)

    def _merge(
        self,
        verb: Literal["merge", "rebase"],
        ours: str,
        theirs: str,
        options: dict[str, Any],
        more: dict[str, Any],
    ) -> og.MergeResult | None:
        """Merge theirs into ours, or bring ours up to theirs; None where there are conflicts, as the model says too."""
        names = (theirs, ours) if verb == "merge" else (ours, theirs)
        call = getattr(self.graph, verb)
        head, other = self.heads[ours], self.heads[theirs]
        bases = self.commits.bases(head, other)
        if other in bases:
            result: og.MergeResult = call(*names, **options, **more)
            assert (result.outcome, result.commit) == ("already_up_to_date", None)
            return result
        foreseen = call(*names, dry_run=True, **options)
        if foreseen.conflicts and any(found.kind == "SchemaConflict" for found in foreseen.conflicts):
            base = self._base(None, bases)
        else:
            base = self._base(foreseen, bases)
        three = [self.commits.states[commit] for commit in (base, head, other)]
        if isinstance(merged_schema(*three), frozenset):
            # What a strategy makes of schemas that do not go together is not the model's to say.
            options = {**options, "strategy": None}
            foreseen = call(*names, dry_run=True, **options)
        expected = merged(*three, strategy=options["strategy"], by_property=options["property_level"])
        crossed = len(bases) > 1 and not foreseen.stats.get("reclaimed_bases")
        try:
            result = call(*names, **options, **more)
        except MergeConflicts as error:
            told = _named(error)
            assert (foreseen.outcome, {found.kind for found in foreseen.conflicts}) == (
                "conflicts",
                {kind for kind, _ in told},
            )
            assert crossed or told == expected
            assert self.graph.head(ours).id == head
            self._agree(ours)
            return None
        assert crossed or isinstance(expected, State), expected
        outcome = "fast_forward" if head in bases else "merged" if verb == "merge" else "rebased"
        assert result.outcome == foreseen.outcome == outcome
        assert result.level == foreseen.level == ("property" if options["property_level"] else "entity")
        assert result.commit is not None
        assert result.commit.merged_parent == other
        self._made(ours, result.commit, self._seen(ours, three) if crossed else expected)  # type: ignore[arg-type]
        return result

    def _base(self, foreseen: og.MergeResult | None, bases: set[str]) -> str:
        """The commit that a merge compares with: the one it tells, which is a best one unless those are gone."""
        told = None if foreseen is None else foreseen.stats.get("base")
        if told is None:
            return max(bases)
        assert foreseen is not None
        assert told in bases or set(foreseen.stats["reclaimed_bases"]) & bases
        return str(told)

    def _seen(self, branch: str, three: list[State]) -> State:
        """After a merge with several bases: the schema is the model's, the rows are those of the graph, each from a side."""
        schema = merged_schema(*three)
        assert not isinstance(schema, frozenset)
        rows = shown(self.graph, branch)
        numbers = {name: number for number, name in schema.properties.items()}
        items = {key: {numbers[name]: value for name, value in row.items()} for key, row in rows["Item"].items()}
        members = {number: frozenset(rows[name]) for number, name in schema.types.items()}
        assert items.keys() <= {key for state in three for key in state.items}
        return State(schema.properties, items, schema.types, members, schema.aliases)

    def _agree(self, branch: str) -> None:
        assert shown(self.graph, branch) == self._state(branch).shown(), branch

    def _readable(self) -> set[str]:
        """The commits that a live branch reaches."""
        return {commit for head in self.heads.values() for commit in self.commits.history(head)}

    def _look(self, commit: str) -> None:
        """What a commit led to can be read, in the words of its time; after cleanup it may be gone."""
        with suppress(*((HistoricalVersionReclaimed,) if commit in self.doubtful else ())):
            assert shown(self.graph, commit=commit) == self.commits.states[commit].shown(), commit


def _chosen(things: Mapping[int, Any], number: int) -> int:
    return sorted(things)[number % len(things)]


def _named(error: MergeConflicts) -> Conflicts:
    found = {(str(one.kind), one.entity_id) for one in error.conflicts}
    return frozenset(found)


def shown(graph: og.Graph, branch: str | None = None, commit: str | None = None) -> dict[str, Any]:
    """What a branch holds, or a commit has led to, in the form of the model."""
    snapshot = graph.snapshot(branch, commit, schema="now" if commit is None else "then")
    return {entry.key.partition(":")[2]: dict(_rows(snapshot, entry.key)) for entry in snapshot.entries()}


def _rows(snapshot: Any, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in snapshot.open(key).read().to_pylist():
        yield row["id"], {name: value for name, value in row.items() if name not in ("id", "k")}


def play(actions: list[Action]) -> None:
    """Carry a run out, on a graph of its own."""
    folder = Path(tempfile.mkdtemp(prefix="branches-"))
    try:
        run = Branches(folder / "g")
        for name, *given in actions:
            getattr(run, name)(*given)
        run.finish()
    finally:
        shutil.rmtree(folder)


def shortened(actions: list[Action], kind: type[BaseException]) -> list[Action]:
    """A run that fails in the same way and has no action that is not needed for it."""
    for place in reversed(range(len(actions))):
        fewer = actions[:place] + actions[place + 1 :]
        try:
            play(fewer)
        except Exception as error:
            if isinstance(error, kind):
                actions = fewer
    return actions


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, RUNS, RUNS_AT_ONCE))
def test_graph_and_model_agree(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    for seed in range(first, first + RUNS_AT_ONCE):
        actions = actions_of(seed)
        try:
            play(actions)
        except Exception as error:
            error.add_note(f"seed {seed}: play({shortened(actions, type(error))})")
            raise
