"""Chooses the engine that carries a load out: this process for small inputs, else Spark. Gives the reason."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from omnigraph.errors import BadRequest
from omnigraph.load.inputs import Inputs
from omnigraph.load.scratch import Scratch
from omnigraph.spark.jobs import SparkRunner
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import Inline, Runner, runner_on
from omnigraph.spark.session import is_running, spark_session
from omnigraph.spark.visibility import Look, marker_in, sights, unseen

AUTO, LOCAL, SPARK = ENGINES = ("auto", "local", "spark")
#: Up to this size an input is loaded in this process unless a Spark session runs, or the caller gave one.
INLINE_BYTES = 32 << 20
#: Below this size sending tasks to Spark never pays, even when a session runs.
NEVER_SPARK_BYTES = 1 << 20
_INLINE = "OMNIGRAPH_INLINE_LOAD_BYTES"
_CONCURRENCY = "OMNIGRAPH_LOAD_CONCURRENCY"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Engine:
    """The runner of the tasks. `why`: the reason for the choice, in a few words.

    `shared_disk`: all tasks see the files of this machine. `asked`: the caller named this engine.
    """

    name: str
    runner: Runner
    shared_disk: bool = True
    asked: bool = False
    why: str = ""


def choose(engine: str, size: int, options: SparkOptions) -> Engine:
    """The engine for an input of `size` bytes."""
    if engine not in ENGINES:
        raise BadRequest(f"unknown engine '{engine}'; the engines are {', '.join(ENGINES)}")
    asked = engine != AUTO
    name, why = (engine, "the caller asked for it") if asked else _automatic(size, options)
    if name == LOCAL:
        return Engine(LOCAL, Inline(), asked=asked, why=why)
    runner = runner_on(spark_session(options=options), _number(_CONCURRENCY))
    return Engine(SPARK, runner, runner.shares_disk, asked=asked, why=why)


def _automatic(size: int, options: SparkOptions) -> tuple[str, str]:
    """The engine for an input of `size` bytes, and the reason, when the caller has not named one."""
    limit = inline_bytes()
    shown = f"{size / (1 << 20):,.1f} MiB of input"
    if size <= min(limit, NEVER_SPARK_BYTES):
        return LOCAL, f"{shown} is too little for Spark"
    if size > limit:
        return SPARK, f"{shown} is more than {limit / (1 << 20):,.1f} MiB ({_INLINE})"
    if options.given is not None or is_running():
        return SPARK, f"{shown}, and a Spark session is there"
    return LOCAL, f"{shown} is at most {limit / (1 << 20):,.1f} MiB ({_INLINE}), and no Spark session runs"


def placed(engine: Engine, inputs: Inputs, scratch: Scratch, *, holds: bool) -> tuple[Engine, Inputs]:
    """The engine and the input, changed so that every task can reach the files it reads and writes.

    On a cluster: a small input (`holds`) is read by this process. Files that some executor does not see are copied to the
    graph's storage. If an executor does not see the graph itself, this process carries the load out; if the caller asked for
    Spark, an error names the host instead.
    """
    runner = engine.runner
    if not isinstance(runner, SparkRunner) or engine.shared_disk:
        return engine, inputs
    if holds:
        return Engine(LOCAL, Inline(), why="the input is small, and the workers are other machines"), inputs
    files = inputs.files()
    with marker_in(scratch.graph, scratch.shared_path()) as marker:
        found = sights(runner, Look(marker, tuple((path, file.size) for path, file in files.items())))
    blind = next((sight for sight in found if sight.problem is not None), None)
    if blind is not None:
        refusal = unseen(
            blind,
            f"the graph at {scratch.graph.uri}",
            "put the graph on storage that all workers share, or load with engine='local'",
        )
        if engine.asked:
            raise refusal
        _log.warning("%s; this process carries the load out", refusal)
        return Engine(LOCAL, Inline(), why="a worker does not see the graph"), inputs
    missing = sorted({path for sight in found for path in sight.missing})
    return engine, inputs.moved({path: scratch.share(files[path]) for path in missing})


def inline_bytes() -> int:
    """The size in bytes up to which an input is loaded in this process."""
    found = _number(_INLINE)
    return INLINE_BYTES if found is None else found


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise BadRequest(f"{variable} is a number, not '{text}'")
    return int(text)
