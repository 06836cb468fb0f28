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
        "--spark-master",
        metavar="URL",
        help="The Spark master, or sc://host:port of Spark Connect; default $OMNIGRAPH_SPARK_REMOTE, "
        "$OMNIGRAPH_SPARK_MASTER, else local[*].",
    ),
    click.option(
        "--spark-conf", metavar="K=V|FILE", multiple=True, help="A Spark setting, or a file of them; may be repeated."
    ),
    click.option(
        "--spark-ship-package", is_flag=True, help="Send this package to executors that lack it; not its dependencies."
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


def spark_of(master: str | None, conf: Sequence[str], ship_package: bool) -> SparkOptions:
    """What a command line says about Spark."""
    from omnigraph.spark.options import SparkOptions
    from omnigraph.spark.settings import read_settings

    return SparkOptions(master=master, conf=read_settings(conf), ship_package=ship_package)
