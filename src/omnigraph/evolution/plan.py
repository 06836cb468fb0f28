"""A plan: the steps from the accepted schema to a wanted one, and the reasons against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import SchemaChangeRefused
from omnigraph.evolution.compare import compare, entities, kept_names, kind_of
from omnigraph.evolution.look import Entity, Look
from omnigraph.evolution.steps import Step, UnsupportedChange
from omnigraph.language.schema.catalog import EdgeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.printer import print_property
from omnigraph.language.source import nearest_name
from omnigraph.language.types import widens
from omnigraph.shown import Shown


@dataclass(frozen=True, slots=True)
class Plan(Shown):
    """Ordered steps. A plan without steps changes nothing; a plan with refusals can not be applied."""

    steps: tuple[Step, ...]
    #: Drops and additions that look like renames.
    hints: tuple[RenameHint, ...] = ()

    @property
    def refusals(self) -> tuple[UnsupportedChange, ...]:
        """The steps that can not be carried out, each with the reason."""
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def supported(self) -> bool:
        """Whether every step can be carried out."""
        return not self.refusals

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        hints = {"hints": [hint.to_dict() for hint in self.hints]} if self.hints else {}
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_dict() for step in self.steps],
            **hints,
        }

    def refuse_unsupported(self) -> None:
        """Raise if a step is refused; the message has every reason."""
        if self.refusals:
            reasons = "; ".join(f"{step.entity}: {step.reason} [{step.code}]" for step in self.refusals)
            raise SchemaChangeRefused(
                f"the schema can not be applied: {reasons}", refusals=[step.to_dict() for step in self.refusals]
            )


def _below(step: type[Step]) -> Iterator[type[Step]]:
    for kind in step.__subclasses__():
        yield kind
        yield from _below(kind)


_STEPS: dict[str, type[Step]] = {step.kind: step for step in _below(Step) if hasattr(step, "kind")}


def plan_of(told: Mapping[str, Any]) -> Plan:
    """A plan from the result of `to_dict`."""
    # `hints` is missing when there are none.
    return Plan(tuple(_step_of(step) for step in told["steps"]), tuple(map(hint_of, told.get("hints", ()))))


def steps_of(told: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Steps from the results of `to_dict`; their texts for people are ignored."""
    return tuple(_step_of({name: value for name, value in step.items() if name != "text"}) for step in told)


def _step_of(told: Mapping[str, Any]) -> Step:
    spelled = {"from": "old", "to": "new"}
    values = {spelled.get(name, name): value for name, value in told.items() if name != "kind"}
    return _STEPS[told["kind"]](**{name: _tuple(value) for name, value in values.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def plan_change(before: SchemaIR, after: SchemaIR, look: Look, *, allow_data_loss: bool = False) -> Plan:
    """Compare two accepted schemas. `look`: answers questions about the stored rows."""
    steps = tuple(compare(before, after, look, "hard" if allow_data_loss else "soft"))
    return Plan(steps, tuple(rename_hints(before, after)))


# --- hints of renames -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RenameHint:
    """A drop and an addition that look like a rename. `line`: the schema line that keeps the data."""

    #: `rename_type` or `rename_property`.
    kind: str
    type_kind: str
    #: The type of the property; for a renamed type, its new name.
    type_name: str
    old: str
    new: str
    line: str

    def to_dict(self) -> dict[str, Any]:
        place = {"kind": self.kind, "type_kind": self.type_kind, "type_name": self.type_name}
        return place | {"from": self.old, "to": self.new, "line": self.line, "text": str(self)}

    def __str__(self) -> str:
        what = (
            f"'{self.type_name}.{self.old}'"
            if self.kind == "rename_property"
            else f"{self.type_kind} type '{self.old}'"
        )
        return f"{what} is dropped and '{self.new}' is added; if that is a rename, write: {self.line}"


def hint_of(told: Mapping[str, Any]) -> RenameHint:
    """A hint from the result of `to_dict`."""
    return RenameHint(*(told[name] for name in ("kind", "type_kind", "type_name", "from", "to", "line")))


def rename_hints(before: SchemaIR, after: SchemaIR) -> Iterator[RenameHint]:
    """The drops and additions of a change that look like renames."""
    old, new = entities(before.catalog), entities(after.catalog)
    gone = {entity.name: entity for id_, entity in old.items() if id_ not in new}
    for id_, entity in new.items():
        if id_ in old:
            yield from _of_properties(old[id_], entity)
        elif (was := _like(entity, gone)) is not None:
            del gone[was.name]
            head = f"{kind_of(entity)} {entity.name}"
            if isinstance(entity, EdgeType):
                head += f": {entity.from_type} -> {entity.to_type}"
            line = f'{head} @rename_from("{was.name}")'
            yield RenameHint("rename_type", kind_of(entity), entity.name, was.name, entity.name, line)


def _of_properties(was: Entity, entity: Entity) -> Iterator[RenameHint]:
    kept = kept_names(was, entity)
    gone = {name: declared for name, declared in was.properties.items() if name not in kept}
    known = {declared.id for declared in was.properties.values()}
    come = {name: declared for name, declared in entity.properties.items() if declared.id not in known}
    for name, declared in come.items():
        alike = [old for old, dropped in gone.items() if _same_kind(dropped, declared)]
        rivals = [other for other, added in come.items() if any(_same_kind(gone[old], added) for old in alike)]
        close = nearest_name(name, alike)
        # Of several candidates, only one with a similar name.
        found = close or (alike[0] if len(alike) == len(rivals) == 1 else None)
        if found is not None:
            del gone[found]
            line = f'{print_property(declared)} @rename_from("{found}")'
            yield RenameHint("rename_property", kind_of(entity), entity.name, found, name, line)


def _same_kind(dropped: Property, added: Property) -> bool:
    """Whether the values of a dropped property would fit an added property."""
    old, new = dropped.type, added.type
    same = (old.scalar, old.is_list, old.dimension, old.enum) == (new.scalar, new.is_list, new.dimension, new.enum)
    return same or widens(old, new)


def _like(entity: Entity, gone: Mapping[str, Entity]) -> Entity | None:
    """A dropped type of the same kind that shares most properties with a new one, or has a similar name; else None."""
    names = set(entity.properties)
    alike = [
        was
        for was in gone.values()
        if kind_of(was) == kind_of(entity) and 2 * len(names & set(was.properties)) > len(names | set(was.properties))
    ]
    close = nearest_name(entity.name, [was.name for was in gone.values() if kind_of(was) == kind_of(entity)])
    if close is not None and (gone[close] in alike or not names):
        return gone[close]
    return alike[0] if len(alike) == 1 else None
