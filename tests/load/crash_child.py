"""A process that runs one load and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

crash_child.py <uri> <load> <branch> <way>
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from omnigraph.graph.loading import Mode as LoadMode

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og

#: Each touches several tables.
LOADS = {
    "append": """\
{"type":"Staff","data":{"handle":"eve","level":22}}
{"edge":"Mentors","from":"eve","to":"ada"}
""",
    "merge": """\
{"type":"Staff","data":{"handle":"ada","level":99}}
{"type":"Staff","data":{"handle":"eve","level":1}}
{"type":"Staff","data":{"handle":"eve","level":2}}
{"type":"Team","data":{"code":"ops"}}
""",
    "overwrite": """\
{"type":"Staff","data":{"handle":"zara"}}
{"edge":"Mentors","from":"zara","to":"zara"}
{"edge":"MemberOf","from":"zara","to":"core"}
""",
    "empty": "\n",
}
#: The mode of each load.
MODES: dict[str, LoadMode] = {"append": "append", "merge": "merge", "overwrite": "overwrite", "empty": "append"}


def main(uri: str, name: str, branch: str, way: str) -> None:
    if way != "held":
        os.environ["OMNIGRAPH_HELD_LOAD_BYTES"] = "0"
    engine: Literal["spark", "local"] = "spark" if way == "spark" else "local"
    graph, data = og.open(uri), LOADS[name].encode()
    graph.load(data, MODES[name], branch=branch, base="main", engine=engine, idempotency_key="once")


if __name__ == "__main__":
    main(*sys.argv[1:])
