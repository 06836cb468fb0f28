"""A session for queries over a few rows: one partition, and no code generated for plans that run once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.spark.session import spark_session

#: Settings of Spark SQL that can change while a session runs.
LEAN = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture(scope="package", autouse=True)
def lean_spark() -> Iterator[None]:
    """The session of this process with these settings; they are taken back for the tests of other packages."""
    session = spark_session(master="local[2]")
    conf = session.sql.conf
    before = {name: conf.get(name, None) for name in LEAN}
    for name, value in LEAN.items():
        conf.set(name, value)
    yield
    if not session.is_alive():
        return  # a test has stopped it, and the settings went with it
    for name, old in before.items():
        conf.unset(name) if old is None else conf.set(name, old)
