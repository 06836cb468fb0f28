"""`omnigraph embed`: vectors for JSONL files, before they are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.embed_records import Job, job_of_manifest, read_selectors, read_spec, refuse_unknown_types
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.cli.embed_records import Mode


@click.command(cls=Command, scope=LOCAL)
@click.option("--seed", metavar="MANIFEST", help="A YAML file that names the files and the spec.")
@click.option("--input", "source", metavar="FILE", help="The JSONL file to read.")
@click.option("--output", "target_path", metavar="FILE", help="The JSONL file to write; it may be the same.")
@click.option(
    "--spec",
    metavar="JSON",
    help="What to embed, or a file that holds it: "
    '{"dimension": 3, "types": {"Doc": {"target": "vector", "fields": ["title"]}}}.',
)
@click.option("--clean", is_flag=True, help="Take the vectors out instead.")
@click.option("--reembed-all", is_flag=True, help="Make all vectors anew, not only the missing ones.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only records of this type; may be repeated.")
@click.option(
    "--select",
    metavar="[TYPE:]FIELD=VALUE",
    multiple=True,
    help="Only records with this value; may be repeated, any of them is enough.",
)
@click.option("--fetch-local", is_flag=True, help="Install the weights of the `local` provider instead (84 MB).")
@json_option
def embed(
    seed: str | None,
    source: str | None,
    target_path: str | None,
    spec: str | None,
    clean: bool,
    reembed_all: bool,
    types: tuple[str, ...],
    select: tuple[str, ...],
    fetch_local: bool,
    as_json: bool,
) -> None:
    """Fill in the vectors of a JSONL file."""
    if fetch_local:
        _fetch_local(as_json)
        return
    if clean and reembed_all:
        raise click.UsageError("--clean and --reembed-all exclude each other; give one of them")
    job = _job(seed, source, target_path, spec)
    selectors = read_selectors(select)
    named = [*types, *(selector.type_name for selector in selectors if selector.type_name is not None)]
    refuse_unknown_types(job.spec, named)
    mode: Mode = "clean" if clean else "reembed_all" if reembed_all else "fill_missing"

    from omnigraph.cli.embed_records import Choice, Counts, embed_lines
    from omnigraph.embedding.embedder import Embedder
    from omnigraph.storage.outputs import Output

    target = Output.parse(job.target)
    counts = Counts()
    embedder = Embedder(None if job.spec.model is None else {"model": job.spec.model})
    try:
        lines = job.source.open("rb")
    except OSError as error:
        raise BadRequest(f"cannot read '{job.source}': {error.strerror or error}") from None
    with lines:
        choice = Choice(types, selectors)
        target.write(embed_lines(lines, str(job.source), job.spec, choice, mode, embedder, counts))
    if as_json:
        done = {"records": counts.records, "selected": counts.selected, "embedded": counts.embedded}
        place = {"input": str(job.source), "output": str(job.target), "mode": mode, "dimension": job.spec.dimension}
        output.json(place | done | {"cleaned": counts.cleaned})
        return
    output.line(
        f"embedded {counts.embedded} records (selected {counts.selected}, cleaned {counts.cleaned}) "
        f"from {job.source} -> {job.target} [{mode} {job.spec.dimension}d]"
    )


def _fetch_local(as_json: bool) -> None:
    from omnigraph.embedding.local import fetch_model
    from omnigraph.embedding.provider import LOCAL_MODEL

    folder = fetch_model()
    if as_json:
        output.json({"model": LOCAL_MODEL, "folder": str(folder)})
    else:
        output.line(f"{LOCAL_MODEL} is installed in {folder}")


def _job(seed: str | None, source: str | None, target: str | None, spec: str | None) -> Job:
    explicit = {"--input": source, "--output": target, "--spec": spec}
    given = [flag for flag, value in explicit.items() if value is not None]
    if seed is not None:
        if given:
            raise click.UsageError(f"--seed and {given[0]} exclude each other; give one of them")
        return job_of_manifest(seed)
    if source is None or target is None or spec is None:
        missing = [flag for flag, value in explicit.items() if value is None]
        raise click.UsageError(f"give --seed MANIFEST, or --input, --output and --spec (missing: {', '.join(missing)})")
    return Job(Path(source), Path(target), read_spec(spec))
