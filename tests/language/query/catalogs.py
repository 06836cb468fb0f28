"""The schemas of behaviours.md that queries are checked against."""

from __future__ import annotations

from omnigraph.language.schema.build import compile_schema

ORG = compile_schema("""
node Staff {
  handle: String @key
  level: I32?
}
node Team {
  code: String @key
}
edge Mentors: Staff -> Staff {
  began: Date?
}
edge MemberOf: Staff -> Team
""")

BOOKS = compile_schema("""
node Book {
  isbn: String
  pages: I32?
  price: F64?
  tags: [String]?
  outday: Date?
  seen: DateTime?
  kind: enum(novel, poetry, essay)?
  emb: Vector(3)?
  cover: Blob?
}
node Shop { city: String }
edge Cites: Book -> Book { year: Date? note: String? scan: Blob? }
edge SoldAt: Book -> Shop { shelf: String? }
""")

SAME = compile_schema("node Same { x: String } edge Same: Same -> Same { x: String? }")

DOC = compile_schema("node Doc { slug: String body: String? emb: Vector(3) @embed(body) }")

EVENT = compile_schema("node Ev { slug: String @key day: Date at: DateTime }")

#: One property of every kind, for assignments and patterns.
KINDS = compile_schema("""
node Kind {
  k: String @key
  s: String?
  b: Bool?
  i: I32?
  l: I64?
  u: U32?
  w: U64?
  f: F32?
  d: F64?
  day: Date?
  at: DateTime?
  e: enum(open, shut)?
  v: Vector(2)?
  bytes: Blob?
  ss: [String]?
  is: [I32]?
  days: [Date]?
  need: I32 @default(7)
}
edge Pair: Kind -> Kind { n: I32 @key(src, dst) }
""")

SPOT = compile_schema("node Spot { x: I32 y: I64 z: F32? @key(x, y) }")

PAGE = compile_schema("""
node Page {
  slug: String @key
  head: String @index
  body: String? @index
  emb: Vector(2)
  cos: Vector(2)? @metric("cosine") @embed("head", model="m/x")
}
edge Links: Page -> Page
""")
