"""A process that ensures the indexes of a branch and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

index_child.py <uri> <branch> [<engine>]
"""

from __future__ import annotations

import sys

import omnigraph as og

if __name__ == "__main__":
    og.open(sys.argv[1]).ensure_indices(sys.argv[2], engine="spark" if sys.argv[3:] == ["spark"] else "auto")
