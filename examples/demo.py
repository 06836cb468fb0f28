"""A tour of OmniGraph for newcomers: run it with `make demo`."""

from __future__ import annotations

from omnigraph.errors import LanguageError
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.lint import lint_queries
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.source import render_error

SCHEMA = """\
node Person {
  name: String @key
  age: I32?
}
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City
"""

QUERIES = """\
query friends_of_friends($name: String) {
  match {
    $p: Person { name: $name }
    $p knows{2,2} $friend
    not { $p knows $friend }
  }
  return { $friend.name, count($friend) as paths }
  order { paths desc }
  limit 10
}
query move($who: String, $where: String) { insert LivesIn { from: $who, to: $where } }
query adults() {
  match { $p: Person $p.agee >= 18 }
  return { $p.name }
}
"""


def main() -> None:
    heading("1. A schema declares node types and edge types")
    print(SCHEMA)
    catalog = compile_schema(SCHEMA, "people.pg")
    print(f"It compiles: nodes {', '.join(catalog.nodes)}; edges {', '.join(catalog.edges)}.")

    heading("2. Queries are checked against it before anything runs")
    print(QUERIES)
    report = lint_queries(QUERIES, catalog, "people.gq")
    for result in report.results:
        print(f"{result.query.name}: {'ok' if result.error is None else 'has an error'}")

    heading("3. A compiled query knows what it takes, gives back and touches")
    operation = compile_query(QUERIES, "friends_of_friends", catalog).operation
    print(f"takes    {', '.join(param.name for param in operation.params)}")
    print(f"returns  {', '.join(column.name for column in operation.columns)}")
    print(f"reads    {', '.join(operation.reads)}")

    heading("4. A mistake is shown where it was made")
    try:
        compile_query(QUERIES, "adults", catalog, "people.gq")
    except LanguageError as error:
        print(render_error(error))


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    main()
