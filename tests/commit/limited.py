"""A graph handle with other limits of writes than the usual ones."""

from __future__ import annotations

from dataclasses import replace

import omnigraph as og


def limit(graph: og.Graph, **values: int) -> og.Graph:
    """Give a handle these values of `commit.limits.Limits`; other handles keep theirs."""
    context = graph._context
    object.__setattr__(context, "limits", replace(context.limits, **values))
    return graph
