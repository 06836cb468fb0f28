"""The options of commands that move many rows: where they run, and how Spark is set up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.options import together

if TYPE_CHECKING:
    from omnigraph.spark.options import SparkOptions

_spark_options = (
    click.option(
        "--spark-master", metavar="URL", help="The Spark master; default $OMNIGRAPH_SPARK_MASTER, else local[*]."
    ),
    click.option(
        "--spark-conf", metavar="K=V|FILE", multiple=True, help="A Spark setting, or a file of them; may be repeated."
    ),
)
engine_options = together(
    click.option(
        "--engine",
        type=click.Choice(["auto", "local", "spark"]),
        default="auto",
        help="Where it runs; auto takes Spark when it is large.",
    ),
    *_spark_options,
)
query_engine_options = together(
    click.option(
        "--engine",
        type=click.Choice(["auto", "local", "spark"]),
        default="local",
        help="Where it runs; auto takes Spark when it needs more than the memory limit.",
    ),
    *_spark_options,
)


def spark_of(master: str | None, conf: Sequence[str]) -> SparkOptions:
    """What a command line says about Spark."""
    from omnigraph.spark.options import SparkOptions
    from omnigraph.spark.settings import read_settings

    return SparkOptions(master=master, conf=read_settings(conf))
