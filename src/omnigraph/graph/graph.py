"""`Graph`: the handle people hold. Safe to use from threads; bound to a branch, main unless `at` says otherwise."""

from __future__ import annotations

from omnigraph.graph.algorithms import WithAlgorithms
from omnigraph.graph.backups import Backups
from omnigraph.graph.branching import Branching
from omnigraph.graph.evolution import Evolution
from omnigraph.graph.exploring import Exploring
from omnigraph.graph.exporting import Exporting
from omnigraph.graph.history import History
from omnigraph.graph.merging import Merging
from omnigraph.graph.pictures import Pictures
from omnigraph.graph.querying import Querying
from omnigraph.graph.spark_tables import SparkTables
from omnigraph.graph.upkeep import Upkeep
from omnigraph.graph.writing import Writing


class Graph(
    Querying,
    Writing,
    Branching,
    WithAlgorithms,
    Merging,
    History,
    Upkeep,
    Backups,
    Evolution,
    Exporting,
    SparkTables,
    Pictures,
    Exploring,
):
    """An open graph. `mode` "ro" writes nothing at all; "rw" heals what a dead writer left before it writes.

    Its verbs are in the classes it is made of, one file of this package for each family.
    """
