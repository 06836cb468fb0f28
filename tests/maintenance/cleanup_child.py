"""A process that cleans a graph up and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

cleanup_child.py <uri> <keep>
"""

from __future__ import annotations

import sys

import omnigraph as og

if __name__ == "__main__":
    og.open(sys.argv[1]).cleanup(keep=int(sys.argv[2]))
