"""`omnigraph viz`: a picture of the schema, or of some nodes and what stands around them."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, json_option, positional_uri, refuse_both, snapshot_option
from omnigraph.cli.scope import PREVIEW


@click.command(cls=Command, scope=PREVIEW)
@positional_uri
@click.option("--type", "type_name", metavar="TYPE", help="Draw nodes of this type; the schema unless given.")
@click.option("--id", "node_id", metavar="ID", help="Draw one node of the type and what stands around it.")
@click.option("--depth", metavar="N", type=int, default=1, show_default=True, help="How many edges around them.")
@click.option("--limit", metavar="N", type=int, default=100, show_default=True, help="At most so many nodes.")
@branch_option
@snapshot_option
@click.option("--out", metavar="FILE", required=True, help="The file to write: .html, .svg or .png.")
@json_option
@click.pass_context
def viz(
    context: click.Context,
    uri: str | None,
    type_name: str | None,
    node_id: str | None,
    depth: int,
    limit: int,
    branch: str | None,
    snapshot: str | None,
    out: str,
    as_json: bool,
) -> None:
    """Draw the schema, or nodes and what stands around them."""
    from omnigraph.drawing.picture import drawer_of
    from omnigraph.storage.outputs import Output

    refuse_both(branch=branch, snapshot=snapshot)
    if node_id is not None and type_name is None:
        raise click.UsageError("--id needs --type: the type of the node")
    draw = drawer_of(out)
    target = resolve_storage(context, uri)
    graph = open_graph(target, "ro")
    picture = graph.picture(type_name, node_id, depth=depth, limit=limit, branch=branch, snapshot=snapshot)
    Output.parse(out).write([draw(picture)])
    counts = {"nodes": len(picture.marks), "edges": len(picture.lines)}
    if not picture.is_complete:
        output.note(f"only {len(picture.marks)} nodes are drawn; there are more around them (--limit, --depth)")
    if as_json:
        output.json({"uri": target.uri, "out": out, **counts, "is_complete": picture.is_complete})
    else:
        output.line(f"drew {counts['nodes']} nodes and {counts['edges']} edges of {target.uri} to {out}")
