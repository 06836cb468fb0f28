"""The algorithms on Spark, for graphs that do not fit into one process: data frames of positions, joined and aggregated.

Nodes have the same numbers as in this process (by type, then by id), so that both engines break ties alike. Frames that a
loop reuses are checkpointed; only counts and sums reach the driver, never rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np

from omnigraph.algorithms.local import LEAST_GAIN, LOUVAIN_CLASSES, MOST_PASSES, louvain_levels, negative_weight
from omnigraph.algorithms.selection import Direction, Selection
from omnigraph.errors import BadRequest, EntityNotFound
from omnigraph.query.limits import Budget, Limits

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: A graph of communities with at most so many edges is finished in the driver.
_FEW_EDGES = 1_000_000
_MOST_ROUNDS = 1000


class Tables(Protocol):
    """An object that returns the tables of a graph as data frames."""

    def spark_table(self, type_key: str, columns: Sequence[str], *, snapshot: object) -> DataFrame: ...


@dataclass(frozen=True)
class SparkGraph:
    """Nodes with `node` (their number), `type` and `id`; edges with `tail`, `head` and `weight` (1.0 without weights)."""

    nodes: DataFrame
    edges: DataFrame
    size: int
    weighted: bool

    def along(self, direction: Direction) -> DataFrame:
        """The edges in the followed direction; a self-loop occurs once."""
        if direction == "out":
            return self.edges
        turned = self.edges.selectExpr("head AS tail", "tail AS head", "weight")
        return turned if direction == "in" else self.edges.unionByName(turned.filter("tail <> head"))

    def simple(self) -> DataFrame:
        """The distinct pairs `tail`, `head` of neighbours, from both ends, without self-loops."""
        return self.along("both").filter("tail <> head").select("tail", "head").distinct()

    def named(self, values: DataFrame, column: str) -> DataFrame:
        """Values of nodes (`node`, `value`) with type and id instead of the number; nodes without a value are left out."""
        from pyspark.sql import functions as F

        return self.nodes.join(values, "node").select("type", "id", F.col("value").alias(column))

    def number_of(self, type_name: str, node_id: str) -> int:
        """The number of one node."""
        found = self.nodes.filter((self.nodes["type"] == type_name) & (self.nodes["id"] == node_id)).head()
        if found is None:
            raise EntityNotFound(
                f"there is no {type_name} with the id '{node_id}'", type_key=f"node:{type_name}", entity_id=node_id
            )
        return int(found["node"])


def spark_graph(graph: Tables, chosen: Selection) -> SparkGraph:
    """The frames of a selection."""
    from pyspark.sql import functions as F

    listed = [
        graph.spark_table(f"node:{node.name}", ["id"], snapshot=chosen.view).select(
            F.lit(node.name).alias("type"), "id"
        )
        for node in chosen.nodes
    ]
    nodes, size = _numbered(reduce(lambda one, other: one.unionByName(other), listed), ["type", "id"], "node")
    parts: list[DataFrame] = []
    for edge in chosen.edges:
        columns = ["src", "dst", *([chosen.weight] if chosen.weight else [])]
        rows = graph.spark_table(f"edge:{edge.name}", columns, snapshot=chosen.view)
        weight = F.col(chosen.weight).cast("double") if chosen.weight else F.lit(1.0)
        tails = nodes.filter(F.col("type") == edge.from_type).select(
            F.col("node").alias("tail"), F.col("id").alias("src")
        )
        heads = nodes.filter(F.col("type") == edge.to_type).select(
            F.col("node").alias("head"), F.col("id").alias("dst")
        )
        rows = rows.select("src", "dst", weight.alias("weight"))
        parts.append(rows.join(tails, "src").join(heads, "dst").select("tail", "head", "weight"))
    if not parts:
        empty = nodes.limit(0).select(
            F.col("node").alias("tail"), F.col("node").alias("head"), F.lit(1.0).alias("weight")
        )
        parts = [empty]
    edges = _kept(reduce(lambda one, other: one.unionByName(other), parts))
    if chosen.weight is not None:
        _check_weights(edges, chosen.weight)
    return SparkGraph(nodes, edges, size, chosen.weight is not None)


def pagerank(graph: SparkGraph, direction: Direction, damping: float, iterations: int, tolerance: float) -> DataFrame:
    from pyspark.sql import functions as F

    _refuse_negative(graph, "pagerank")
    followed = graph.along(direction)
    strength = followed.groupBy("tail").agg(F.sum("weight").alias("strength")).filter("strength > 0")
    shares = _kept(
        followed.join(strength, "tail").select("tail", "head", (F.col("weight") / F.col("strength")).alias("share"))
    )
    sources = shares.select(F.col("tail").alias("node")).distinct()
    ranks = _kept(graph.nodes.select("node", F.lit(1.0 / max(graph.size, 1)).alias("value")))
    sinks = _kept(graph.nodes.select("node").join(sources, "node", "left_anti"))
    for _ in range(iterations):
        if not graph.size:
            break
        lost = _number(sinks.join(ranks, "node").agg(F.sum("value")))
        base = (1.0 - damping) / graph.size + damping * lost / graph.size
        given = (
            shares.join(ranks, shares["tail"] == ranks["node"])
            .groupBy("head")
            .agg(F.sum(F.col("share") * F.col("value")).alias("given"))
        )
        new = _kept(
            ranks.join(given, ranks["node"] == given["head"], "left").select(
                "node",
                (F.lit(base) + F.lit(damping) * F.coalesce("given", F.lit(0.0))).alias("value"),
                F.col("value").alias("before"),
            )
        )
        moved = _number(new.agg(F.sum(F.abs(F.col("value") - F.col("before")))))
        ranks = new.select("node", "value")
        if moved < graph.size * tolerance:
            break
    return ranks


def connected_components(graph: SparkGraph) -> DataFrame:
    """Large-star and small-star in turns (Kiveris and others): the number of rounds grows with the logarithm."""
    from pyspark.sql import functions as F

    pairs = _kept(graph.simple())
    before = (-1, -1)
    for _ in range(_MOST_ROUNDS):
        # Large-star: each node's larger neighbours are connected to the smallest of its neighbours and itself.
        turned = pairs.unionByName(pairs.selectExpr("head AS tail", "tail AS head")).distinct()
        least = turned.groupBy("tail").agg(F.least(F.min("head"), F.first("tail")).alias("least"))
        large = turned.filter("head > tail").join(least, "tail").selectExpr("head AS tail", "least AS head").distinct()
        # Small-star: each node and its smaller neighbours are connected to the smallest of them.
        down = (
            large.selectExpr("greatest(tail, head) AS tail", "least(tail, head) AS head")
            .filter("tail <> head")
            .distinct()
        )
        lowest = down.groupBy("tail").agg(F.min("head").alias("least"))
        small = (
            down.join(lowest, "tail")
            .selectExpr("head AS tail", "least AS head")
            .filter("tail <> head")
            .unionByName(lowest.selectExpr("tail", "least AS head"))
            .distinct()
        )
        pairs = _kept(small)
        told = pairs.agg(F.count("*"), F.sum(F.xxhash64("tail", "head").cast("decimal(38,0)"))).first()
        assert told is not None
        now = (int(told[0]), int(told[1] or 0))
        if now == before:
            break
        before = now
    found = graph.nodes.select("node").join(pairs.selectExpr("tail AS node", "head AS first"), "node", "left")
    return _by_first(found.select("node", F.coalesce("first", "node").alias("first")))


def strongly_connected(graph: SparkGraph) -> DataFrame:
    """Colours spread forwards; then the first node of each colour is followed backwards inside its colour."""

    left = graph.nodes.select("node")
    edges = graph.edges.select("tail", "head").filter("tail <> head").distinct()
    done: list[DataFrame] = []
    for _ in range(_MOST_ROUNDS):
        left, edges = _kept(left), _kept(edges)
        # A node without incoming or without outgoing edges is a component by itself.
        inside = edges.selectExpr("head AS node").intersect(edges.selectExpr("tail AS node"))
        alone = left.join(inside, "node", "left_anti")
        done.append(_kept(alone.selectExpr("node", "node AS first")))
        left = _kept(left.join(inside, "node", "left_semi"))
        edges = _kept(_within(edges, left))
        if left.isEmpty():
            break
        if not done[-1].isEmpty():
            continue
        colours = _spread(left.selectExpr("node", "node AS value"), edges)
        own = colours.filter("node = value").selectExpr("node", "value")
        one_colour = _kept(
            edges.join(colours.selectExpr("node AS tail", "value"), "tail")
            .join(colours.selectExpr("node AS head", "value"), ["head", "value"])
            .selectExpr("head AS tail", "tail AS head", "value")
        )
        reached = _reached(own, one_colour)
        done.append(reached.selectExpr("node", "value AS first"))
        left = left.join(reached, "node", "left_anti")
        edges = _within(edges, left)
    everyone = reduce(lambda one, other: one.unionByName(other), done)
    # A component is named by the node whose colour it had, which is its smallest node.
    return _by_first(everyone)


def label_propagation(graph: SparkGraph, iterations: int) -> DataFrame:
    from pyspark.sql import functions as F

    _refuse_negative(graph, "communities")
    weights = _undirected(graph)
    if not graph.weighted:
        weights = weights.withColumn("weight", F.lit(1.0))
    weights = _kept(weights)
    slack = 1e-12 * _number(weights.agg(F.sum("weight"))) if graph.weighted else 0.0
    colours = _kept(_colours(graph, weights))
    most = int(_number(colours.agg(F.max("colour")))) if not colours.isEmpty() else -1
    labels = _kept(graph.nodes.select("node", F.col("node").alias("value")))

    def high(some: DataFrame) -> DataFrame:
        """For each node the labels with the largest weight among its neighbours, as an array."""
        summed = (
            weights.join(some.select(F.col("node").alias("tail")), "tail")
            .join(labels.select(F.col("node").alias("head"), "value"), "head")
            .groupBy("tail", "value")
            .agg(F.sum("weight").alias("weighs"))
        )
        best = summed.groupBy("tail").agg(F.max("weighs").alias("best"))
        return (
            summed.join(best, "tail")
            .filter(F.col("weighs") >= F.col("best") - slack)
            .groupBy(F.col("tail").alias("node"))
            .agg(F.collect_set("value").alias("high"))
        )

    for _ in range(iterations):
        wanting = labels.join(high(labels), "node").filter(~F.array_contains("high", F.col("value")))
        if wanting.isEmpty():
            break
        for colour in range(most + 1):
            turn = colours.filter(F.col("colour") == colour).select("node")
            chosen = high(turn)
            labels = _kept(
                labels.join(chosen, "node", "left").select(
                    "node",
                    F.when(F.col("high").isNull() | F.array_contains("high", F.col("value")), F.col("value"))
                    .otherwise(F.array_max("high"))
                    .alias("value"),
                )
            )
    return _by_label(labels)


def louvain(graph: SparkGraph, resolution: float) -> DataFrame:
    """Louvain's method, level by level on Spark, until the graph of communities is small enough for the driver."""
    from pyspark.sql import functions as F

    _refuse_negative(graph, "communities")
    weights = _kept(_undirected(graph))
    loops = _kept(
        graph.edges.filter("tail = head").groupBy(F.col("tail").alias("node")).agg(F.sum("weight").alias("loop"))
    )
    found = _kept(graph.nodes.select("node", F.col("node").alias("value")))
    nodes = graph.nodes.select("node")
    while True:
        labels = _louvain_level(nodes, weights, loops, resolution)
        if labels is None:
            return _by_label(found)
        labels = _kept(_by_label(labels))
        found = _kept(
            found.join(labels.select(F.col("node").alias("value"), F.col("value").alias("group")), "value").select(
                "node", F.col("group").alias("value")
            )
        )
        grouped = weights.join(labels.select(F.col("node").alias("tail"), F.col("value").alias("one")), "tail").join(
            labels.select(F.col("node").alias("head"), F.col("value").alias("other")), "head"
        )
        inside = (
            grouped.filter("one = other").groupBy(F.col("one").alias("node")).agg((F.sum("weight") / 2).alias("loop"))
        )
        kept = loops.join(labels, "node").groupBy(F.col("value").alias("node")).agg(F.sum("loop").alias("loop"))
        loops = _kept(inside.unionByName(kept).groupBy("node").agg(F.sum("loop").alias("loop")))
        weights = _kept(
            grouped.filter("one <> other")
            .groupBy(F.col("one").alias("tail"), F.col("other").alias("head"))
            .agg(F.sum("weight").alias("weight"))
        )
        nodes = _kept(labels.select(F.col("value").alias("node")).distinct())
        if weights.count() <= _FEW_EDGES:
            return _by_label(_finished_here(found, nodes, weights, loops, resolution))


def _finished_here(
    found: DataFrame, nodes: DataFrame, weights: DataFrame, loops: DataFrame, resolution: float
) -> DataFrame:
    """Finish a small graph of communities, with nodes numbered from 0, in the driver."""
    from pyspark.sql import functions as F

    size = nodes.count()
    rows = weights.orderBy("tail", "head").toArrow()
    tails, heads = rows["tail"].to_numpy(), rows["head"].to_numpy()
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=size), out=starts[1:])
    own = np.zeros(size)
    looped = loops.toArrow()
    own[looped["node"].to_numpy()] = looped["loop"].to_numpy()
    groups = louvain_levels(
        starts, heads.astype(np.int32), rows["weight"].to_numpy(), own, resolution, Budget(Limits())
    )
    pairs = list(enumerate(groups.tolist()))
    joined = found.join(found.sparkSession.createDataFrame(pairs, "value bigint, group bigint"), "value")
    return joined.select("node", F.col("group").alias("value"))


def _louvain_level(nodes: DataFrame, weights: DataFrame, loops: DataFrame, resolution: float) -> DataFrame | None:
    """The communities after the passes of one level; None when no node moves. `kernels.louvain_moves` states the rules."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    strength = _kept(
        nodes.join(weights.groupBy(F.col("tail").alias("node")).agg(F.sum("weight").alias("near")), "node", "left")
        .join(loops, "node", "left")
        .select(
            "node",
            (F.coalesce("near", F.lit(0.0)) + 2 * F.coalesce("loop", F.lit(0.0))).alias("strength"),
            F.coalesce("loop", F.lit(0.0)).alias("loop"),
        )
    )
    total = _number(strength.agg(F.sum("strength"))) / 2.0
    if total <= 0.0:
        return None
    looped = 2 * _number(strength.agg(F.sum("loop")))

    def modularity(labels: DataFrame) -> float:
        ends = weights.join(labels.select(F.col("node").alias("tail"), F.col("value").alias("one")), "tail").join(
            labels.select(F.col("node").alias("head"), F.col("value").alias("other")), "head"
        )
        inside = _number(ends.filter("one = other").agg(F.sum("weight"))) + looped
        shares = labels.join(strength, "node").groupBy("value").agg(F.sum("strength").alias("share"))
        squares = _number(shares.agg(F.sum(F.col("share") * F.col("share"))))
        return inside / (2 * total) - resolution * squares / (4 * total * total)

    labels = _kept(nodes.select("node", F.col("node").alias("value")))
    reached, moved_once = modularity(labels), False
    for _ in range(MOST_PASSES):
        tried = labels
        for turn in range(LOUVAIN_CLASSES):
            totals = (
                tried.join(strength, "node")
                .groupBy("value")
                .agg(F.sum("strength").alias("total"), F.count("*").alias("members"))
            )
            some = tried.filter(F.col("node") % LOUVAIN_CLASSES == turn).join(strength, "node")
            near = (
                weights.join(some.select(F.col("node").alias("tail")), "tail")
                .join(tried.select(F.col("node").alias("head"), F.col("value").alias("label")), "head")
                .groupBy(F.col("tail").alias("node"), "label")
                .agg(F.sum("weight").alias("near"))
            )
            mine = some.select("node", F.col("value").alias("own"), "strength").join(
                totals.select(F.col("value").alias("own"), F.col("members").alias("own_members")), "own"
            )
            # A node's own community is a choice too, even when it has no neighbour there.
            choices = (
                near.unionByName(some.select("node", F.col("value").alias("label"), F.lit(0.0).alias("near")))
                .groupBy("node", "label")
                .agg(F.sum("near").alias("near"))
            )
            share = F.lit(resolution / (2.0 * total)) * F.col("strength")
            gains = (
                choices.join(mine, "node")
                .join(totals.select(F.col("value").alias("label"), "total", "members"), "label")
                .select(
                    "node",
                    "label",
                    "own",
                    (
                        F.col("near")
                        - share
                        * (F.col("total") - F.when(F.col("label") == F.col("own"), F.col("strength")).otherwise(0.0))
                    ).alias("gain"),
                    ((F.col("own_members") == 1) & (F.col("members") == 1) & (F.col("label") > F.col("own"))).alias(
                        "barred"
                    ),
                )
                .filter(~F.col("barred"))
            )
            around = Window.partitionBy("node")
            stay = F.max(F.when(F.col("label") == F.col("own"), F.col("gain"))).over(around)
            best = F.max("gain").over(around)
            ranked = gains.select("node", "label", "own", "gain", stay.alias("stay"), best.alias("best"))
            wanted = (
                ranked.filter((F.col("best") > F.col("stay") + 1e-10) & (F.col("gain") > F.col("best") - 1e-10))
                .groupBy("node")
                .agg(F.min("label").alias("wanted"))
            )
            tried = _kept(
                tried.join(wanted, "node", "left").select("node", F.coalesce("wanted", "value").alias("value"))
            )
        now = modularity(tried)
        if now < reached + LEAST_GAIN:
            break
        labels, reached, moved_once = tried, now, True
    return labels if moved_once else None


def triangle_count(graph: SparkGraph) -> DataFrame:
    from pyspark.sql import functions as F

    pairs = _kept(graph.simple())
    degrees = pairs.groupBy(F.col("tail").alias("node")).agg(F.count("*").alias("degree"))
    # An edge is followed from its end of lower degree only, so that no node has many such edges.
    ranked = (
        pairs.join(degrees.select(F.col("node").alias("tail"), F.col("degree").alias("own")), "tail")
        .join(degrees.select(F.col("node").alias("head"), F.col("degree").alias("other")), "head")
        .filter("own < other OR (own = other AND tail < head)")
        .select("tail", "head")
    )
    ranked = _kept(ranked)
    paths = ranked.selectExpr("tail AS first", "head AS middle").join(
        ranked.selectExpr("tail AS middle", "head AS last"), "middle"
    )
    closed = paths.join(ranked.selectExpr("tail AS first", "head AS last"), ["first", "last"])
    counted = (
        closed.select(F.explode(F.array("first", "middle", "last")).alias("node"))
        .groupBy("node")
        .agg(F.count("*").alias("count"))
    )
    return _for_all(graph, counted, "count", 0)


def k_core(graph: SparkGraph) -> DataFrame:
    """Each node's number becomes the largest h such that h neighbours have numbers >= h, until nothing changes (Lü et al.)."""
    from pyspark.sql import functions as F

    pairs = _kept(graph.simple())
    cores = _kept(pairs.groupBy(F.col("tail").alias("node")).agg(F.count("*").alias("value")))
    for _ in range(max(graph.size, 1)):
        seen = (
            pairs.join(cores.select(F.col("node").alias("head"), "value"), "head")
            .groupBy(F.col("tail").alias("node"))
            .agg(F.sort_array(F.collect_list("value"), asc=False).alias("seen"))
        )
        index = F.size(F.expr("filter(seen, (value, place) -> value >= place + 1)")).cast("long")
        new = _kept(
            cores.join(seen.select("node", index.alias("index")), "node").select(
                "node", F.least("value", "index").alias("value"), (F.col("index") < F.col("value")).alias("changed")
            )
        )
        cores = new.select("node", "value")
        if new.filter("changed").isEmpty():
            break
    return _for_all(graph, cores, "value", 0)


def shortest_paths(graph: SparkGraph, direction: Direction, sources: Sequence[tuple[str, str]]) -> DataFrame:
    from pyspark.sql import functions as F

    _refuse_negative(graph, "shortest_paths")
    numbers = sorted({graph.number_of(*source) for source in sources})
    zero = F.lit(0.0) if graph.weighted else F.lit(0).cast("long")
    step = F.col("weight") if graph.weighted else F.lit(1).cast("long")
    followed = _kept(graph.along(direction).groupBy("tail", "head").agg(F.min("weight").alias("weight")))
    distances = _kept(graph.nodes.filter(F.col("node").isin(numbers)).select("node", zero.alias("value")))
    frontier = distances
    for _ in range(max(graph.size, 1)):
        reached = (
            followed.join(frontier, followed["tail"] == frontier["node"])
            .groupBy(F.col("head").alias("node"))
            .agg(F.min(F.col("value") + step).alias("reached"))
        )
        better = _kept(
            reached.join(distances, "node", "left")
            .filter("value IS NULL OR reached < value")
            .select("node", F.col("reached").alias("value"))
        )
        if better.isEmpty():
            break
        distances = _kept(distances.join(better, "node", "left_anti").unionByName(better))
        frontier = better
    return distances


def degree(graph: SparkGraph, direction: Direction) -> DataFrame:
    from pyspark.sql import functions as F

    tails = graph.edges.select(F.col("tail").alias("node"), "weight")
    heads = graph.edges.select(F.col("head").alias("node"), "weight")
    ends = {"out": tails, "in": heads, "both": tails.unionByName(heads)}[direction]
    counted = F.sum("weight") if graph.weighted else F.count("*")
    return _for_all(graph, ends.groupBy("node").agg(counted.alias("count")), "count", 0.0 if graph.weighted else 0)


def similarity(graph: SparkGraph, direction: Direction, source: tuple[str, str], measure: str) -> DataFrame:
    from pyspark.sql import functions as F

    number = graph.number_of(*source)
    near = _kept(graph.along(direction).select("tail", "head").distinct())
    own = near.filter(F.col("tail") == number).select("head")
    common = near.join(own, "head").groupBy("tail").agg(F.count("*").alias("common")).filter(F.col("tail") != number)
    degrees = near.groupBy("tail").agg(F.count("*").alias("other"))
    one = float(own.count())
    below: Column
    match measure:
        case "jaccard":
            below = F.lit(one) + F.col("other") - F.col("common")
        case "overlap":
            below = F.least(F.lit(one), F.col("other"))
        case _:
            below = F.sqrt(F.lit(one) * F.col("other"))
    return common.join(degrees, "tail").select(F.col("tail").alias("node"), (F.col("common") / below).alias("value"))


# --- pieces -----------------------------------------------------------------------------------------------------------


def _kept(frame: DataFrame) -> DataFrame:
    """The frame checkpointed on the executors: it is not computed again, and its plan does not grow."""
    return frame.localCheckpoint()


def _number(frame: DataFrame) -> float:
    """The single number of a frame; 0 when it is null or missing."""
    row = frame.first()
    return 0.0 if row is None or row[0] is None else float(row[0])


def _numbered(frame: DataFrame, order: Sequence[str], column: str) -> tuple[DataFrame, int]:
    """The rows with their places in an order, from 0 on, and their count. Only counts per partition reach the driver."""
    from pyspark.sql import functions as F

    placed = frame.orderBy(*order).withColumn("part", F.spark_partition_id())
    placed = _kept(placed.withColumn("within", F.monotonically_increasing_id()))
    counts = (
        placed.groupBy("part").agg(F.count("*").alias("rows"), F.min("within").alias("begin")).orderBy("part").collect()
    )
    shifts: dict[int, int] = {}
    total = 0
    for row in counts:
        shifts[row["part"]] = total - row["begin"]
        total += row["rows"]
    if not shifts:
        return placed.select(*frame.columns, F.col("within").alias(column)), 0
    shift = F.create_map(*(F.lit(number) for pair in shifts.items() for number in pair))[F.col("part")]
    return placed.select(*frame.columns, (F.col("within") + shift).alias(column)), total


def _by_first(found: DataFrame) -> DataFrame:
    """Groups named by a node (`first`), renumbered from 0 on in the order of their smallest nodes."""
    from pyspark.sql import functions as F

    return _by_label(found.select("node", F.col("first").alias("value")))


def _by_label(labels: DataFrame) -> DataFrame:
    """The labels renumbered from 0 on, in the order of their first nodes."""
    from pyspark.sql import functions as F

    labels = _kept(labels)
    firsts = labels.groupBy(F.col("value").alias("label")).agg(F.min("node").alias("least"))
    numbers, _ = _numbered(firsts, ["least"], "number")
    joined = labels.join(numbers, labels["value"] == numbers["label"])
    return joined.select("node", F.col("number").alias("value"))


def _for_all(graph: SparkGraph, found: DataFrame, column: str, otherwise: float) -> DataFrame:
    """Values for all nodes: the found values, and `otherwise` for nodes without one."""
    from pyspark.sql import functions as F

    joined = graph.nodes.select("node").join(found, "node", "left")
    return joined.select("node", F.coalesce(F.col(column), F.lit(otherwise)).alias("value"))


def _undirected(graph: SparkGraph) -> DataFrame:
    """The summed weights of all edges between two nodes, from both ends, without self-loops."""
    from pyspark.sql import functions as F

    apart = graph.along("both").filter("tail <> head")
    return apart.groupBy("tail", "head").agg(F.sum("weight").alias("weight"))


def _within(edges: DataFrame, nodes: DataFrame) -> DataFrame:
    """The edges whose ends are both among some nodes."""
    from pyspark.sql import functions as F

    tails, heads = nodes.select(F.col("node").alias("tail")), nodes.select(F.col("node").alias("head"))
    return edges.join(tails, "tail", "left_semi").join(heads, "head", "left_semi").select("tail", "head")


def _spread(values: DataFrame, edges: DataFrame) -> DataFrame:
    """The smallest value among each node and all nodes from which it is reachable."""
    from pyspark.sql import functions as F

    values = _kept(values)
    changed = values
    for _ in range(_MOST_ROUNDS * _MOST_ROUNDS):
        given = (
            edges.join(changed.select(F.col("node").alias("tail"), "value"), "tail")
            .groupBy(F.col("head").alias("node"))
            .agg(F.min("value").alias("given"))
        )
        changed = _kept(
            values.join(given, "node").filter("given < value").select("node", F.col("given").alias("value"))
        )
        if changed.isEmpty():
            break
        values = _kept(values.join(changed, "node", "left_anti").unionByName(changed))
    return values


def _reached(starts: DataFrame, edges: DataFrame) -> DataFrame:
    """The nodes reachable along edges from start nodes with the same value, with this value."""
    from pyspark.sql import functions as F

    found = frontier = _kept(starts)
    for _ in range(_MOST_ROUNDS * _MOST_ROUNDS):
        following = edges.join(frontier.select(F.col("node").alias("tail"), "value"), ["tail", "value"])
        new = following.select(F.col("head").alias("node"), "value").distinct().join(found, "node", "left_anti")
        frontier = _kept(new)
        if frontier.isEmpty():
            break
        found = _kept(found.unionByName(frontier))
    return found


def _colours(graph: SparkGraph, weights: DataFrame) -> DataFrame:
    """A colour for each node, as if nodes chose the smallest free colour in turn, by descending number of neighbours."""
    from pyspark.sql import functions as F

    degrees = weights.groupBy(F.col("tail").alias("node")).agg(F.count("*").alias("degree"))
    ranks, _ = _numbered(
        _for_all(graph, degrees, "degree", 0).select("node", (-F.col("value")).alias("fewer")),
        ["fewer", "node"],
        "rank",
    )
    ranks = _kept(ranks.select("node", "rank"))
    # For each node, its neighbours that choose before it.
    earlier = _kept(
        weights.select("tail", "head")
        .join(ranks.select(F.col("node").alias("tail"), F.col("rank").alias("own")), "tail")
        .join(ranks.select(F.col("node").alias("head"), F.col("rank").alias("other")), "head")
        .filter("other < own")
        .selectExpr("tail AS node", "head AS before")
    )
    waits = earlier.groupBy("node").agg(F.count("*").alias("waits"))
    waiting = _kept(_for_all(graph, waits, "waits", 0).withColumnRenamed("value", "waits"))
    coloured = _kept(waiting.filter("waits = 0").selectExpr("node", "CAST(0 AS INT) AS colour"))
    waiting = _kept(waiting.filter("waits > 0"))
    for _ in range(_MOST_ROUNDS * _MOST_ROUNDS):
        if waiting.isEmpty():
            break
        seen = (
            earlier.join(coloured.select(F.col("node").alias("before"), "colour"), "before")
            .groupBy("node")
            .agg(F.count("*").alias("known"), F.collect_set("colour").alias("taken"))
        )
        free = F.array_min(F.array_except(F.sequence(F.lit(0), F.size("taken")), "taken"))
        ready = _kept(
            waiting.join(seen, "node").filter("known = waits").select("node", free.cast("int").alias("colour"))
        )
        coloured = _kept(coloured.unionByName(ready))
        waiting = _kept(waiting.join(ready, "node", "left_anti"))
    return coloured


def _check_weights(edges: DataFrame, weight: str) -> None:
    from pyspark.sql import functions as F

    missing = edges.filter(F.col("weight").isNull()).count()
    if missing:
        raise BadRequest(f"{missing:,} edges have no '{weight}'; give them one, or choose other edges")
    odd = F.isnan("weight") | (F.abs("weight") == float("inf"))
    if not edges.filter(odd).isEmpty():
        raise BadRequest(f"'{weight}' has values that are not finite; an algorithm can not count with them")


def _refuse_negative(graph: SparkGraph, algorithm: str) -> None:
    if graph.weighted and not graph.edges.filter("weight < 0").isEmpty():
        raise negative_weight(algorithm)
