"""`local-cluster[…]`: the JVM plays a cluster of this machine, with the Java of the wheel too."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.cluster.checks import COUNT, SCHEMA, assert_whole, lines
from tests.spark.test_session import python


@pytest.mark.long
def test_a_load_on_a_local_cluster_with_the_java_of_the_wheel(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(lines())
    og.init(tmp_path / "g", SCHEMA)
    done = python(
        f"""
        import omnigraph as og
        from omnigraph.load import inputs
        from omnigraph.spark.session import spark_session
        inputs.RANGE_BYTES = inputs.SMALLEST_RANGE = 64 << 10
        graph = og.open({str(tmp_path / "g")!r}, spark={{"master": "local-cluster[2,1,1024]"}})
        done = graph.load({str(tmp_path / "rows.jsonl")!r}, engine="spark")
        print(done.nodes_loaded, done.report.engine, spark_session().context.master)
        print(spark_session().gateway.scratch.path)
        """,
        PATH="/nonexistent",
        OMNIGRAPH_HELD_LOAD_BYTES="0",
        JAVA_HOME="",
    )
    told = done.stdout.splitlines()
    assert told[0] == f"{COUNT} spark local-cluster[2,1,1024]", done.stderr
    assert not Path(told[1]).exists()
    assert_whole(og.open(tmp_path / "g"))
