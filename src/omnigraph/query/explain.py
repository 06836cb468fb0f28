"""`explain`: the plan as lowered, as rewritten, and what happens at each operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.language.query.ir import Plan, children, render_plan
from omnigraph.query.run import Run
from omnigraph.shown import Shown


@dataclass(frozen=True)
class Explanation(Shown):
    """How a query is answered. `steps` is the rewritten plan with notes, and with rows and times after an analysis."""

    plan: str
    rewritten: str
    steps: str
    analyzed: bool

    def __str__(self) -> str:
        title = "Analyzed" if self.analyzed else "Steps"
        return f"Plan\n{_indented(self.plan)}\n\nRewritten\n{_indented(self.rewritten)}\n\n{title}\n{_indented(self.steps)}"

    def to_dict(self) -> dict[str, Any]:
        return {"plan": self.plan, "rewritten": self.rewritten, "steps": self.steps, "analyzed": self.analyzed}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def explanation(plan: Plan, rewritten: Plan, run: Run, *, analyzed: bool) -> Explanation:
    """What a run noted about its operators."""
    steps = "\n".join(_steps(rewritten, run, "", analyzed))
    return Explanation(render_plan(plan), render_plan(rewritten), steps, analyzed)


def _steps(plan: Plan, run: Run, indent: str, analyzed: bool) -> list[str]:
    trace = run.traces.get(id(plan))
    line = f"{indent}{type(plan).__name__}"
    if trace is not None and analyzed and trace.rows is not None and trace.seconds is not None:
        line += f"  {trace.rows} rows, {trace.seconds * 1000:.2f} ms"
    lines = [line]
    if trace is not None:
        lines += [f"{indent}  · {note}" for note in trace.notes]
    for child in children(plan):
        lines += _steps(child, run, f"{indent}  ", analyzed)
    return lines
