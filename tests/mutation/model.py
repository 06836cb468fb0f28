"""A graph as plain Python values: what the mutations of the stateful test must do to it, written without Arrow or Lance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Staff {
  handle: String @key
  level: I32?
  badge: I32?
  @range(level, 0..9)
  @unique(badge)
}
node Team { code: String @key }
node Note { text: String }
edge Mentors: Staff -> Staff
edge MemberOf: Staff -> Team @card(0..1)
"""


class Refused(Exception):
    """The final image breaks rules; which of them is reported is not said."""

    def __init__(self, rules: tuple[str, ...]) -> None:
        super().__init__(*rules)
        self.rules = rules


@dataclass
class Content:
    """What one branch holds. Rows without a key are counted; ids that the graph generates are not known here."""

    staff: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    teams: set[str] = field(default_factory=set)
    notes: Counter[str] = field(default_factory=Counter)
    mentors: Counter[tuple[str, str]] = field(default_factory=Counter)
    members: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass
class Outcome:
    """What a mutation leads to and what it reports."""

    content: Content
    nodes: int = 0
    edges: int = 0
    #: Whether there is something to commit; an update to the values that are there reports rows and writes none.
    changed: bool = False


@dataclass(frozen=True)
class Insert:
    """A new row of a type, or one that takes the place of the row with its key."""

    type: str
    values: tuple[Any, ...]  # of the columns below, in their order

    def text(self) -> str:
        columns = {
            "Staff": ("handle", "level", "badge"),
            "Team": ("code",),
            "Note": ("text",),
            "Mentors": ("from", "to"),
            "MemberOf": ("from", "to"),
        }[self.type]
        given = zip(columns, self.values, strict=True)
        return f"insert {self.type} {{ {', '.join(f'{name}: {_shown(value)}' for name, value in given if value is not None)} }}"

    def apply(self, outcome: Outcome) -> None:
        content, values = outcome.content, self.values
        match self.type:
            case "Staff":
                content.staff[values[0]] = (values[1], values[2])
            case "Team":
                content.teams.add(values[0])
            case "Note":
                content.notes[values[0]] += 1
            case "Mentors":
                content.mentors[values[0], values[1]] += 1
            case "MemberOf":
                content.members[values[0], values[1]] += 1
        outcome.changed = True
        if self.type in ("Staff", "Team", "Note"):
            outcome.nodes += 1
        else:
            outcome.edges += 1


@dataclass(frozen=True)
class Update:
    """`level` or `badge` of the staff at least so high set to a value, or of one by handle."""

    column: str
    value: int
    handle: str | None = None
    at_least: int = 0

    def text(self) -> str:
        where = f'handle = "{self.handle}"' if self.handle is not None else f"level >= {self.at_least}"
        return f"update Staff set {{ {self.column}: {self.value} }} where {where}"

    def apply(self, outcome: Outcome) -> None:
        for handle, (level, badge) in outcome.content.staff.items():
            if handle == self.handle or (self.handle is None and level is not None and level >= self.at_least):
                changed = (self.value, badge) if self.column == "level" else (level, self.value)
                outcome.changed |= changed != (level, badge)
                outcome.content.staff[handle] = changed
                outcome.nodes += 1


@dataclass(frozen=True)
class Delete:
    """The rows of a type that have a value in a column; nodes take their edges with them."""

    type: str
    column: str
    value: str

    def text(self) -> str:
        return f"delete {self.type} where {self.column} = {_shown(self.value)}"

    def apply(self, outcome: Outcome) -> None:
        content = outcome.content
        match self.type:
            case "Staff":
                outcome.nodes += content.staff.pop(self.value, None) is not None
                outcome.edges += _take(content.mentors, self.value, (0, 1)) + _take(content.members, self.value, (0,))
            case "Team":
                outcome.nodes += self.value in content.teams
                content.teams.discard(self.value)
                outcome.edges += _take(content.members, self.value, (1,))
            case "Note":
                outcome.nodes += content.notes.pop(self.value, 0)
            case _:
                edges = content.mentors if self.type == "Mentors" else content.members
                outcome.edges += _take(edges, self.value, (0 if self.column == "from" else 1,))
        # Deletes stand alone in a mutation, so whatever was counted is gone.
        outcome.changed |= bool(outcome.nodes or outcome.edges)


Statement = Insert | Update | Delete


def carry_out(content: Content, statements: Iterable[Statement]) -> Outcome:
    """What a mutation of these statements leads to; Refused when its final image breaks a rule."""
    outcome = Outcome(deepcopy(content))
    for statement in statements:
        statement.apply(outcome)
    _judge(outcome.content)
    return outcome


def _judge(content: Content) -> None:
    levels = [level for level, _ in content.staff.values() if level is not None]
    badges = [badge for _, badge in content.staff.values() if badge is not None]
    ends = ((content.mentors, set(content.staff)), (content.members, content.teams))
    teams = Counter(source for source, _ in content.members.elements())
    broken = {
        "@range violation": any(not 0 <= level <= 9 for level in levels),
        "@unique violation": len(badges) != len(set(badges)),
        "not found": any(
            source not in content.staff or target not in targets for edges, targets in ends for source, target in edges
        ),
        "@card violation": any(count > 1 for count in teams.values()),
    }
    if any(broken.values()):
        raise Refused(tuple(rule for rule, is_broken in broken.items() if is_broken))


def _take(edges: Counter[tuple[str, str]], value: str, ends: tuple[int, ...]) -> int:
    gone = [pair for pair in edges if any(pair[end] == value for end in ends)]
    return sum(edges.pop(pair) for pair in gone)


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
