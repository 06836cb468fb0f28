"""What Spark's event log says of the jobs of a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson


@dataclass(frozen=True)
class Sent:
    """What tasks sent to the driver of Spark: how many they were, and their bytes."""

    tasks: int
    bytes: int


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """The events of all applications that log to a folder; the last line may be half written."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        for line in path.read_bytes().splitlines():
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError:
                return


def sent(folder: Path, *, before: Sent = Sent(0, 0)) -> Sent:
    """What all tasks sent so far, without what was sent before."""
    ended = [event for event in events(folder) if event["Event"] == "SparkListenerTaskEnd"]
    size = sum(event["Task Metrics"]["Result Size"] for event in ended if event.get("Task Metrics"))
    return Sent(len(ended) - before.tasks, size - before.bytes)


def jobs_with_tag(folder: Path, tag: str) -> list[list[str]]:
    """The tags of every job that has one."""
    found = []
    for event in events(folder):
        if event["Event"] == "SparkListenerJobStart":
            tags = str(event.get("Properties", {}).get("spark.job.tags", "")).split(",")
            if any(one.endswith(tag) for one in tags):
                found.append(tags)
    return found
