"""The Spark options of a caller, without loading PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from omnigraph.errors import BadRequest

#: `Any` stands for a SparkSession, since PySpark is not imported here.
SparkArgument: TypeAlias = "str | Mapping[str, object] | SparkOptions | Any"

ENGINES = ("auto", "local", "spark")


@dataclass(frozen=True)
class SparkOptions:
    """A session given by the caller, or the master and settings to start one.
    `ship_package`: send this package to executors that lack it.
    """

    given: Any = None
    master: str | None = None
    conf: Mapping[str, object] = field(default_factory=dict)
    ship_package: bool = False


def spark_options(spark: SparkArgument | None) -> SparkOptions:
    """The options from the argument of `open(spark=…)`: a session, a master URL, or a mapping.

    A mapping has `spark.*` settings, `master` or `session`, and `ship_package` to send this package to executors.
    """
    if spark is None:
        return SparkOptions()
    if isinstance(spark, SparkOptions):
        return spark
    if isinstance(spark, str):
        return SparkOptions(master=spark)
    if isinstance(spark, Mapping):
        settings = dict(spark)
        master, ships = settings.pop("master", None), settings.pop("ship_package", False)
        if not isinstance(ships, bool):
            raise BadRequest(f"ship_package is True or False, not {ships!r}")
        return SparkOptions(settings.pop("session", None), None if master is None else str(master), settings, ships)
    return SparkOptions(given=spark)


def refuse_unknown_engine(engine: str) -> None:
    """Raise BadRequest for an engine that does not exist."""
    if engine not in ENGINES:
        raise BadRequest(f"engine is {', '.join(ENGINES[:-1])} or {ENGINES[-1]}, not {engine!r}")
