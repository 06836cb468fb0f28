"""A plan: the steps from the accepted schema to a wanted one, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import SchemaChangeRefused
from omnigraph.evolution.compare import compare
from omnigraph.evolution.hints import RenameHint, hint_of, rename_hints
from omnigraph.evolution.look import Look
from omnigraph.evolution.steps import Step, UnsupportedChange
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.shown import Shown


@dataclass(frozen=True, slots=True)
class Plan(Shown):
    """Ordered steps. A plan without steps changes nothing; one with refusals can not be applied."""

    steps: tuple[Step, ...]
    #: What looks like a rename, with the line that says so.
    hints: tuple[RenameHint, ...] = ()

    @property
    def refusals(self) -> tuple[UnsupportedChange, ...]:
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def supported(self) -> bool:
        return not self.refusals

    def to_dict(self) -> dict[str, Any]:
        hints = {"hints": [hint.to_dict() for hint in self.hints]} if self.hints else {}
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_dict() for step in self.steps],
            **hints,
        }

    def refuse_unsupported(self) -> None:
        """Raise when a step is refused; every reason is in the message."""
        if self.refusals:
            reasons = "; ".join(f"{step.entity}: {step.reason} [{step.code}]" for step in self.refusals)
            raise SchemaChangeRefused(
                f"the schema can not be applied: {reasons}", refusals=[step.to_dict() for step in self.refusals]
            )


def _below(step: type[Step]) -> Iterator[type[Step]]:
    for kind in step.__subclasses__():
        yield kind
        yield from _below(kind)


_STEPS: dict[str, type[Step]] = {step.kind: step for step in _below(Step)}


def plan_of(told: Mapping[str, Any]) -> Plan:
    """A plan from what `to_dict` made of it."""
    # Hints are told where there are some.
    return Plan(tuple(_step_of(step) for step in told["steps"]), tuple(map(hint_of, told.get("hints", ()))))


def steps_of(told: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Steps from what `to_dict` made of them; the text for people beside each is left aside."""
    return tuple(_step_of({name: value for name, value in step.items() if name != "text"}) for step in told)


def _step_of(told: Mapping[str, Any]) -> Step:
    spelled = {"from": "old", "to": "new"}
    values = {spelled.get(name, name): value for name, value in told.items() if name != "kind"}
    return _STEPS[told["kind"]](**{name: _tuple(value) for name, value in values.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def plan_change(before: SchemaIR, after: SchemaIR, look: Look, *, allow_data_loss: bool = False) -> Plan:
    """Compare two accepted schemas; `look` tells what the rows of the types are like."""
    steps = tuple(compare(before, after, look, "hard" if allow_data_loss else "soft"))
    return Plan(steps, tuple(rename_hints(before, after)))
