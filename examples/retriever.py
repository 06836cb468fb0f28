"""A retriever of LangChain over the papers of the demo: words and vectors together, a filter, then along edges.

Run it with `python examples/retriever.py`; it needs `pip install 'omnigraph[langchain]'` and no model: texts are embedded by the
provider `mock`, for which the same text always has the same vector.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import omnigraph as og
from omnigraph.integrations.langchain import OmnigraphRetriever, OmnigraphVectorStore

SCHEMA = """
node Author { name: String @key  country: String }
node Paper {
  code: String @key
  abstract: String @index
  year: I32
  vector: Vector(32)? @embed(abstract) @metric("cosine")
}
edge Wrote: Author -> Paper
edge Cites: Paper -> Paper
"""
PAPERS = [
    ("p1", 1998, "Branches of a table without copies of its rows"),
    ("p2", 2005, "Merging branches when both have changed"),
    ("p3", 2011, "Nearest neighbours of vectors in a table"),
    ("p4", 2019, "Words and vectors ranked together"),
]


def main() -> None:
    """Load four papers, ask for the ones about branches, and show what is joined with them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        og.init(Path(folder) / "papers.omni", SCHEMA, embedding="mock") as graph,
    ):
        graph.load(
            [
                *({"type": "Paper", "data": {"code": c, "year": y, "abstract": text}} for c, y, text in PAPERS),
                {"type": "Author", "data": {"name": "Ada", "country": "Norway"}},
                {"edge": "Wrote", "from": "Ada", "to": "p2"},
                {"edge": "Cites", "from": "p2", "to": "p1"},
                {"edge": "Cites", "from": "p4", "to": "p3"},
            ]
        )
        store = OmnigraphVectorStore(graph, type="Paper", text="abstract")
        retriever = OmnigraphRetriever(store=store, k=1, filter={"year": {"$gte": 2000}}, expand=["cites", "<wrote"])
        for document in retriever.invoke("merging branches", by="text"):
            via = document.metadata.get("via", "found")
            print(f"{via:>7}  {document.id}: {document.page_content.splitlines()[0]}")


if __name__ == "__main__":
    main()
