"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])


def together(*decorators: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Several arguments and options as one decorator; help shows them in this order."""

    def decorate(function: _Function) -> _Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _not_empty(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    """An empty text is a mistake, such as an unset variable, and never means the default."""
    if given == "":
        raise click.BadParameter("must not be empty")
    return given


positional_uri = click.argument("uri", required=False, callback=_not_empty)
uri_option = click.option(
    "--uri", metavar="URI", callback=_not_empty, help="The storage of the graph: a path, file:// or s3://."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
branch_option = click.option("--branch", metavar="NAME", callback=_not_empty, help="The branch; main unless given.")
snapshot_option = click.option(
    "--snapshot",
    "--as-of",
    "snapshot",
    metavar="SNAPSHOT",
    callback=_not_empty,
    help="What to read instead of a branch's head: a commit, a tag, a time, main~3 or 'main@{2 days ago}'.",
)
timeout_option = click.option("--timeout", type=float, metavar="SECONDS", help="Stop a query that takes longer.")
memory_option = click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_not_empty,
    help="What the rows of a query may take, such as 512MiB; OMNIGRAPH_QUERY_MEMORY or 1GiB unless given.",
)
confirm_option = click.option("--confirm", is_flag=True, help="Do it; without this flag it is only shown.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done; nothing changes.")


message_option = click.option(
    "-m", "--message", metavar="TEXT", callback=_not_empty, help="What the commit is about; it is kept with it."
)
idempotency_option = click.option(
    "--idempotency-key",
    metavar="TEXT",
    callback=_not_empty,
    help="A repeat with the same key answers as the first call did, and writes nothing.",
)


def refuse_both(**given: object) -> None:
    """At most one of these options may be given."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} exclude each other; give one of them")


def _with_spark(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all that its line says about Spark as one argument, `spark`."""

    @wraps(command)
    def with_spark(
        *arguments: Any, spark_master: str | None, spark_conf: Sequence[str], spark_ship_package: bool, **others: Any
    ) -> Any:
        from omnigraph.spark.options import SparkOptions
        from omnigraph.spark.settings import read_settings

        spark = SparkOptions(master=spark_master, conf=read_settings(spark_conf), ship_package=spark_ship_package)
        return command(*arguments, spark=spark, **others)

    return with_spark


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
    _with_spark,
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
