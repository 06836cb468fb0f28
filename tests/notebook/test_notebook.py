"""The notebook of the examples: executed by a real kernel, rendered to a page; and the widget in a real browser."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.notebook.explorer import explore
from tests.studio.browser import ARGUMENTS, CanNotBuild, chromium, studio_built

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
nbconvert = pytest.importorskip("nbconvert")
anywidget = pytest.importorskip("anywidget")

WIDGET = "application/vnd.jupyter.widget-view+json"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> Path:
    """The built widget."""
    try:
        return studio_built() / "notebook" / "explorer.js"
    except CanNotBuild as error:
        pytest.skip(str(error))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel of this very interpreter."""
    folder = tmp_path / "jupyter" / "kernels" / "omnigraph-tests"
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "tests", "language": "python"}))
    # The templates of nbconvert lie beside the environment that it is installed in.
    templates = Path(nbconvert.__file__).parents[4] / "share" / "jupyter"
    monkeypatch.setenv("JUPYTER_PATH", f"{tmp_path / 'jupyter'}{os.pathsep}{templates}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return folder.name


@pytest.mark.timeout(600)
def test_the_notebook_of_the_examples(script: Path, kernel: str, tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without its outputs"
    nbclient.NotebookClient(
        notebook, kernel_name=kernel, timeout=300, resources={"metadata": {"path": tmp_path}}
    ).execute()
    shown = ("execute_result", "display_data")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kinds = [output.output_type for output in cell.outputs]
            assert "error" not in kinds
            results = [output for output in cell.outputs if output.output_type in shown]
            assert all({"text/html", WIDGET} & set(output.data) for output in results)
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    for word in ("<svg", "DivergentUpdate", "206 rows", "NodeScan", "no damage", "Ada, from the register"):
        assert word in page, word
    (tmp_path / "notebook.html").write_text(page)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    g = og.init(str(tmp_path_factory.mktemp("explorer") / "g.omni"), "node P { name: String @key }  edge Knows: P -> P")
    names = ["a", "b", "c", "d", "<img src=x onerror=window.hacked=1>"]
    rows: list[dict[str, Any]] = [{"type": "P", "data": {"name": name}} for name in names]
    edges = [{"edge": "Knows", "from": one, "to": other, "data": {}} for one, other in pairwise(names)]
    g.load([*rows, *edges])
    return g


def test_a_click_brings_neighbours(script: Path, graph: og.Graph) -> None:
    widget = explore(graph, "P", "a")
    assert widget.nodes == [("P", "a"), ("P", "b")]
    graph.mutate('insert P { name: "later" } insert Knows { from: "b", to: "later" }')
    widget._handle_custom_msg({"expand": "P\0b"}, [])
    assert widget.nodes == [("P", "a"), ("P", "b"), ("P", "c")], "everything is of one snapshot"
    assert [(line["from"], line["to"]) for line in widget.lines] == [("P\0a", "P\0b"), ("P\0b", "P\0c")]
    assert "2 edges" in widget.note


@pytest.mark.parametrize("message", [{"expand": "P\0nobody"}, {"expand": None}, {}, "text", {"expand": {"$ne": 1}}])
def test_what_a_page_sends_is_checked(message: Any, script: Path, graph: og.Graph) -> None:
    widget = explore(graph, "P", "a")
    widget._handle_custom_msg(message, [])
    assert len(widget.nodes) == 2
    assert widget.note == "this node is not part of the picture"


def test_without_anywidget(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(BadRequest, match=r"pip install 'omnigraph\[notebook\]'"):
        explore(graph, "P", "a")


@pytest.fixture
def page() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    try:
        place, environment = chromium()
    except CanNotBuild as error:
        pytest.skip(str(error))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=ARGUMENTS, env={**environment})
        yield browser.new_page()
        browser.close()


#: The part of Jupyter that a widget talks to: values with a change event, and messages to the kernel.
HOST = """
async (given) => {
  const module = await import(URL.createObjectURL(new Blob([given.script], { type: "text/javascript" })));
  const calls = {};
  window.sent = [];
  window.values = { marks: given.marks, lines: given.lines, note: "click" };
  const model = {
    get: (name) => window.values[name],
    on: (event, call) => (calls[event] = call),
    off: (event) => delete calls[event],
    send: (message) => window.sent.push(message),
  };
  window.change = (values) => { Object.assign(window.values, values); calls["change:marks"](); };
  const el = document.createElement("div");
  document.body.appendChild(el);
  module.default.render({ model, el });
}
"""


def test_the_widget_in_a_browser(script: Path, graph: og.Graph, page: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_content("<!doctype html><title>widget</title><body></body>")
    widget = explore(graph, "P", "a")
    page.evaluate(HOST, {"script": script.read_text(), "marks": widget.marks[:1], "lines": []})
    canvas = page.locator(".graph-canvas")
    canvas.wait_for()
    page.wait_for_timeout(500)
    box = canvas.bounding_box()
    # The only node stands in the middle.
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("window.sent.length > 0")
    assert page.evaluate("window.sent[0]") == {"expand": "P\0a"}
    page.evaluate("given => window.change(given)", {"marks": widget.marks, "lines": widget.lines})
    assert (
        canvas.get_attribute("aria-label") == "A picture of 2 nodes and 1 edges; the list beside it has the same nodes"
    )
    assert page.evaluate("window.hacked") is None
    assert problems == []
