"""RankedScan: the nodes that can be among the nearest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omnigraph.language.query.ir import RankedScan
from omnigraph.query.evaluate import evaluate
from omnigraph.query.rows import Rows
from omnigraph.query.run import Run
from omnigraph.query.scan import node_columns, scan_nodes
from omnigraph.query.search.scores import score_name


def ranked_scan(plan: RankedScan, run: Run) -> Rows:
    """The rows among the nearest, every row that ties with the last one included, each with its distance."""
    field = plan.ranking.field.property
    columns = node_columns(plan.node, run)
    rows = scan_nodes(replace(plan.node, columns=tuple(dict.fromkeys((*columns, field)))), run)
    scores = evaluate(plan.ranking, rows, run)
    rows = rows.with_columns({score_name(plan.ranking): scores})
    values = np.nan_to_num(scores.to_numpy(zero_copy_only=False), nan=np.inf)
    if plan.limit < len(values):
        last = np.partition(values, plan.limit - 1)[plan.limit - 1] if plan.limit else -np.inf
        rows = rows.filter(values <= last)
    return rows
