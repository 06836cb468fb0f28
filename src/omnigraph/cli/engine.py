"""The options of commands that move many rows: where they run, and how Spark is set up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.options import together

if TYPE_CHECKING:
    from omnigraph.spark.options import SparkOptions

engine_options = together(
    click.option(
        "--engine",
        type=click.Choice(["auto", "local", "spark"]),
        default="auto",
        help="Where it runs; auto takes Spark when it is large.",
    ),
    click.option(
        "--spark-master", metavar="URL", help="The Spark master; default $OMNIGRAPH_SPARK_MASTER, else local[*]."
    ),
    click.option(
        "--spark-conf", metavar="K=V|FILE", multiple=True, help="A Spark setting, or a file of them; may be repeated."
    ),
)


def spark_of(master: str | None, conf: Sequence[str]) -> SparkOptions:
    """What a command line says about Spark."""
    from omnigraph.spark.options import SparkOptions
    from omnigraph.spark.settings import read_settings

    return SparkOptions(master=master, conf=read_settings(conf))
