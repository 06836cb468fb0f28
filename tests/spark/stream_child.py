"""A process that loads a stream of files until it is killed, or to its end: graph, input folder, checkpoint, rejects or -."""

from __future__ import annotations

import sys

import omnigraph as og
from omnigraph.spark.session import spark_session


def main(graph: str, folder: str, checkpoint: str, rejects: str) -> None:
    spark = spark_session(master="local[1]", conf={"spark.driver.memory": "600m"}).sql
    stream = (
        spark.readStream.schema("name string, age int")
        .option("maxFilesPerTrigger", 1)
        .option("cleanSource", "off")
        .json(folder)
    )
    query = og.open(graph).stream_load(
        stream, checkpoint=checkpoint, type="Person", rejects=None if rejects == "-" else rejects, available_now=True
    )
    print("started", flush=True)
    query.awaitTermination()
    print("ended", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
