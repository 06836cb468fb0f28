"""Running a compiled query against a snapshot: the entry of the local engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.ids import now_micros
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.language.query.ir import MutationPlan, Plan, Project, children, render_plan
from omnigraph.language.schema.catalog import Catalog
from omnigraph.query.caches import Caches
from omnigraph.query.engine import execute
from omnigraph.query.limits import Budget, Cancel, Limits, out_of_memory
from omnigraph.query.result import Explanation, Result
from omnigraph.query.run import Embed, Run
from omnigraph.query.scan.entities import View
from omnigraph.watching import span

#: Where a query runs; the graph layer knows the engines other than this one.
ENGINES = ("local", "spark", "auto")


@dataclass(frozen=True, slots=True)
class Request:
    """The options of a run: its limits, the handle that can cancel it, and whether it collects notes for `explain`."""

    limits: Limits
    cancel: Cancel | None = None
    explaining: bool = False

    def __post_init__(self) -> None:
        if self.cancel is not None and not isinstance(self.cancel, Cancel):
            raise BadRequest(f"cancel is an omnigraph.Cancel, not {self.cancel!r}")


def start(
    view: View,
    catalog: Catalog,
    params: Mapping[str, TypedValue],
    caches: Caches,
    embed: Embed,
    request: Request,
    now: int | None = None,
) -> Run:
    """A new run; its timeout starts now. `now`: the value of `now()` in milliseconds since 1970; None for the current time."""
    budget = Budget(request.limits, request.cancel)
    moment = now_micros() // 1000 if now is None else now
    return Run(view, catalog, params, moment, caches, embed, budget, explaining=request.explaining)


def answer(compiled: CompiledQuery, run: Run) -> Result:
    """The result of a read query."""
    with span("plan"):
        plan = read_plan(compiled.plan_for(run.params), compiled)
    assert isinstance(plan, Project)
    return Result(_bounded(plan, run), tuple(column.type for column in plan.columns), run.view.commit)


def explain(compiled: CompiledQuery, run: Run, *, analyze: bool) -> Explanation:
    """How a read query is answered. The query is executed, because traversals are chosen during the run."""
    plan = read_plan(compiled.plan_for(run.params), compiled)
    _bounded(plan, run)
    return explanation(read_plan(compiled.plan, compiled), plan, run, analyzed=analyze)


def _bounded(plan: Plan, run: Run) -> pa.Table:
    """The result of a plan, or `ResourceLimit` when the machine has too little memory for it."""
    try:
        with span("execute"):
            return execute(plan, run)
    except MemoryError as error:
        raise out_of_memory(run.budget) from error
    finally:
        run.budget.close()


def read_plan(plan: Plan | MutationPlan, compiled: CompiledQuery) -> Plan:
    """The plan of a read query; raises BadRequest for a query with mutations."""
    if isinstance(plan, MutationPlan):
        raise BadRequest(f"{compiled.query.title} contains mutations; run it with mutate")
    return plan


def refuse_engine(engine: str) -> None:
    """Raise BadRequest unless there is an engine of this name."""
    if engine not in ENGINES:
        raise BadRequest(f"there is no engine '{engine}'; the engines are {', '.join(ENGINES)}")


def explanation(plan: Plan, rewritten: Plan, run: Run, *, analyzed: bool) -> Explanation:
    """The explanation of a finished run: both plans, and the notes of its operators."""
    steps = "\n".join(_steps(rewritten, run, "", analyzed))
    return Explanation(render_plan(plan), render_plan(rewritten), steps, analyzed)


def _steps(plan: Plan, run: Run, indent: str, analyzed: bool) -> list[str]:
    trace = run.traces.get(id(plan))
    line = f"{indent}{type(plan).__name__}"
    if trace is not None and analyzed and trace.rows is not None and trace.seconds is not None:
        line += f"  {trace.rows} {'row' if trace.rows == 1 else 'rows'}, {trace.seconds * 1000:.2f} ms"
    lines = [line]
    if trace is not None:
        lines += [f"{indent}  · {note}" for note in trace.notes]
    for child in children(plan):
        lines += _steps(child, run, f"{indent}  ", analyzed)
    return lines
