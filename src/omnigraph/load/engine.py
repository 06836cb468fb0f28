"""Which engine carries a load out: this process for what is small while no Spark runs, else Spark."""

from __future__ import annotations

import os
from dataclasses import dataclass

from omnigraph.errors import BadRequest
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import Inline, OnSpark, Runner
from omnigraph.spark.session import is_running, spark_session
from omnigraph.spark.settings import is_local

ENGINES = ("auto", "local", "spark")
INLINE_BYTES = 1 << 20
_INLINE = "OMNIGRAPH_INLINE_LOAD_BYTES"
_CONCURRENCY = "OMNIGRAPH_LOAD_CONCURRENCY"
#: Up to this size the rows of a load are kept in memory until its checks have passed.
HELD_BYTES = 4 << 20


@dataclass(frozen=True)
class Engine:
    """What schedules the tasks; `shared_disk`: they all see the files of this machine."""

    name: str
    runner: Runner
    shared_disk: bool = True


def choose(engine: str, size: int, options: SparkOptions) -> Engine:
    """The engine for an input of this size."""
    if engine not in ENGINES:
        raise BadRequest(f"unknown engine '{engine}'; the engines are {', '.join(ENGINES)}")
    at_once = _number(_CONCURRENCY)
    small = size <= inline_bytes() and options.given is None and not is_running()
    if engine == "local" or (engine == "auto" and small):
        return Engine("local", Inline())
    session = spark_session(options=options)
    return Engine("spark", OnSpark(session, at_once), is_local(session.context.master or ""))


def inline_bytes() -> int:
    """Up to which size an input is loaded in this process."""
    found = _number(_INLINE)
    return INLINE_BYTES if found is None else found


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise BadRequest(f"{variable} is a number, not '{text}'")
    return int(text)
