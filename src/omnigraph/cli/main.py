"""The `omnigraph` command: the list of commands, and the exit code of every outcome."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper

import click

from omnigraph.cli.commands import Lazy, LazyGroup
from omnigraph.cli.output import flush, note, report
from omnigraph.cli.settings import Settings

OK, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130

#: The commands in the order of the help.
SECTIONS = {
    "Data": {
        "init": Lazy("omnigraph.cli.init", "init", "Create an empty graph at URI."),
        "load": Lazy("omnigraph.cli.load", "load", "Load rows into a branch: all of them in one commit, or none."),
        "import": Lazy(
            "omnigraph.cli.importing",
            "import_",
            "Make a new graph of an export of Neo4j: a proposed schema, and everything in one commit.",
        ),
        "ingest": Lazy("omnigraph.cli.load", "ingest", "Load into a branch that is created with the rows."),
        "query": Lazy("omnigraph.cli.query", "query", "Run a read query and print its answer."),
        "mutate": Lazy(
            "omnigraph.cli.mutate", "mutate", "Run a mutation: one commit for all of its statements, or none."
        ),
        "explain": Lazy("omnigraph.cli.query", "explain", "Show how a read query is answered."),
        "shell": Lazy("omnigraph.cli.shell", "shell", "Type queries and mutations at a prompt."),
        "export": Lazy(
            "omnigraph.cli.export",
            "export",
            "Write the nodes and edges of a graph so that they load back to an equal one.",
        ),
        "blob": Lazy("omnigraph.cli.blob", "blob", "Read blob values."),
    },
    "Branches and history": {
        "branch": Lazy("omnigraph.cli.branch", "branch", "Make, list, merge and delete branches."),
        "diff": Lazy(
            "omnigraph.cli.changes",
            "diff",
            "Show what changed from FROM to TO: branches, tags, commits, snapshots or manifest versions of main.",
        ),
        "commit": Lazy("omnigraph.cli.commit", "commit", "Look at the history of a graph."),
        "log": Lazy(
            "omnigraph.cli.log",
            "log",
            "Show the history of a branch, newest first: drawn on a terminal, else one line for each commit.",
        ),
        "revert": Lazy(
            "omnigraph.cli.merging", "revert", "Take a COMMIT back: publish the inverse of what it changed."
        ),
        "cherry-pick": Lazy(
            "omnigraph.cli.merging",
            "cherry_pick",
            "Apply one COMMIT to another branch: publish what it changed against its first parent.",
        ),
        "tag": Lazy("omnigraph.cli.branch", "tag", "Name commits; cleanup keeps what is tagged."),
        "changes": Lazy("omnigraph.cli.changes", "changes", "Follow what happens on a branch."),
        "snapshot": Lazy(
            "omnigraph.cli.stats", "snapshot", "Show the tables of a branch and their published versions."
        ),
    },
    "Schemas and queries": {
        "schema": Lazy("omnigraph.cli.schema", "schema", "Look at schemas and change them."),
        "lint": Lazy("omnigraph.cli.language", "lint", "Check a file of queries against a schema."),
        "fmt": Lazy("omnigraph.cli.language", "fmt", "Lay out schemas and queries canonically."),
        "lsp": Lazy("omnigraph.cli.lsp", "lsp", "Serve an editor on standard input and output."),
        "functions": Lazy(
            "omnigraph.cli.language", "functions", "List the functions and aggregates of the query language."
        ),
        "viz": Lazy("omnigraph.cli.viz", "viz", "Draw the schema, or nodes and what stands around them."),
        "embed": Lazy("omnigraph.cli.embed", "embed", "Fill in the vectors of a JSONL file."),
    },
    "Storage": {
        "stats": Lazy(
            "omnigraph.cli.stats",
            "stats",
            "Show rows, fragments, versions, bytes and index coverage of each type, and the settings of the graph.",
        ),
        "ensure-indices": Lazy(
            "omnigraph.cli.upkeep", "ensure_indices", "Build the indexes that are declared and missing."
        ),
        "optimize": Lazy(
            "omnigraph.cli.upkeep",
            "optimize",
            "Compact the tables of a branch and build and complete their indexes, in one commit.",
        ),
        "cleanup": Lazy(
            "omnigraph.cli.upkeep", "cleanup", "Remove old versions, and files that nothing refers to any more."
        ),
        "repair": Lazy(
            "omnigraph.cli.upkeep",
            "repair",
            "Look at tables whose storage is ahead of the graph, and publish what is verified.",
        ),
        "verify": Lazy(
            "omnigraph.cli.verify",
            "verify",
            "Look for damage: missing, cut or changed files, and rows that break the schema.",
        ),
        "backup": Lazy(
            "omnigraph.cli.backup",
            "backup",
            "Copy a graph with all branches and history to TARGET, or bring the backup there up to date.",
        ),
        "restore": Lazy(
            "omnigraph.cli.backup", "restore", "Make a graph at URI, an empty place, of the backup at SOURCE."
        ),
        "upgrade": Lazy(
            "omnigraph.cli.upgrade",
            "upgrade",
            "Bring every branch of a graph of an older format to the current one; history, branches and tags stay.",
        ),
        "recovery": Lazy("omnigraph.cli.recovery", "recovery", "Look at recoveries and at what is waiting for one."),
    },
    "Servers and clusters": {
        "serve": Lazy("omnigraph.cli.serve", "serve", "Serve graphs over HTTP."),
        "studio": Lazy("omnigraph.cli.studio", "studio", "Look at one graph in the browser."),
        "mcp": Lazy("omnigraph.cli.mcp", "mcp", "Offer the tools of a graph to an agent."),
        "graphs": Lazy("omnigraph.cli.stored", "graphs", "Look at the graphs of a server."),
        "cluster": Lazy("omnigraph.cli.cluster", "cluster", "Declare and apply the graphs of a cluster."),
        "policy": Lazy("omnigraph.cli.policy", "policy", "Check the policy of a cluster."),
        "queries": Lazy("omnigraph.cli.queries", "queries", "Look at the stored queries of a cluster."),
        "alias": Lazy("omnigraph.cli.stored", "alias", "Run the stored query that the configuration calls NAME."),
        "login": Lazy("omnigraph.cli.servers", "login", "Keep a credential for the server NAME."),
        "logout": Lazy("omnigraph.cli.servers", "logout", "Forget the credential for the server NAME."),
    },
    "This machine": {
        "profile": Lazy("omnigraph.cli.machine", "profile", "Show the profiles of the configuration."),
        "config": Lazy(
            "omnigraph.cli.machine",
            "config",
            "Show what flags, environment and configuration come to; read and change the settings of a graph.",
        ),
        "completion": Lazy("omnigraph.cli.machine", "completion", "Print the completion script of a SHELL."),
        "version": Lazy("omnigraph.cli.machine", "version", "Show the version of OmniGraph and of its on-disk format."),
    },
}
COMMANDS = {name: lazy for section in SECTIONS.values() for name, lazy in section.items()}
#: Names of earlier releases, which still work with a warning.
RENAMED = {
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
    ("check",): "lint",
    ("change",): "mutate",
    ("read",): "query",
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    sections=SECTIONS,
    renamed=RENAMED,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Global flags may come before or after the command. `omnigraph COMMAND --help` shows the flags of a command.",
)
def root() -> None:
    """A typed property graph over Lance tables, with branches, commits and merges."""


def main() -> None:
    """The entry point of the installed command."""
    # Most of what start-up makes stays until the end: looking for garbage among it every 700 objects is lost time.
    gc.set_threshold(50_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A character that the terminal does not know is shown by its escape; it is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    # What is left goes with the process; the interpreter would first look for cycles in it, for a tenth of a second.
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code."""
    settings = Settings()
    try:
        code = _carried_out(arguments, settings)
        flush()
    except BrokenPipeError:
        code = FAILURE
    except OSError as error:
        report(error, settings.debug)
        code = FAILURE
    else:
        return code
    _forget_stdout()
    return code


def _carried_out(arguments: Sequence[str], settings: Settings) -> int:
    try:
        code = root.main(arguments, prog_name="omnigraph", standalone_mode=False, obj=settings)
    except click.UsageError as error:
        text = StringIO()
        error.show(text)
        note(text.getvalue().rstrip("\n"))
        return USAGE
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        report(error, settings.debug)
        return FAILURE
    return code if isinstance(code, int) else OK


def _forget_stdout() -> None:
    """The reader has closed standard output: drop buffered output, or the interpreter reports the closed pipe again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
