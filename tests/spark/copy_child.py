"""A process that copies the feed of one graph to another until it is killed, or to its end: both graphs, checkpoint."""

from __future__ import annotations

import sys

import omnigraph as og
from omnigraph.spark.session import spark_session


def main(source: str, target: str, checkpoint: str) -> None:
    from pyspark.sql import functions as f

    spark_session(master="local[1]", conf={"spark.driver.memory": "600m"})
    feed = og.open(source).spark_changes(start="beginning", types="Person", max_commits_per_trigger=1)
    rows = (
        feed.where("op != 'delete'").select(f.from_json("after", "name string, age int").alias("row")).select("row.*")
    )
    query = og.open(target).stream_load(rows, "merge", checkpoint=checkpoint, type="Person", available_now=True)
    print("started", flush=True)
    query.awaitTermination()
    print("ended", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
