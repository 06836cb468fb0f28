"""The shared fixtures of the behaviour catalogue: schemas, rows and queries."""

from __future__ import annotations

ORG = """
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
"""

ORG_ROWS = """\
{"type":"Staff","data":{"handle":"ada","level":30}}
{"type":"Staff","data":{"handle":"ben","level":25}}
{"type":"Staff","data":{"handle":"cleo","level":35}}
{"type":"Staff","data":{"handle":"dov","level":28}}
{"type":"Team","data":{"code":"core"}}
{"type":"Team","data":{"code":"labs"}}
{"edge":"Mentors","from":"ada","to":"ben"}
{"edge":"Mentors","from":"ada","to":"cleo"}
{"edge":"Mentors","from":"ben","to":"dov"}
{"edge":"MemberOf","from":"ada","to":"core"}
{"edge":"MemberOf","from":"ben","to":"labs"}
"""

ORG_QUERIES = """
query one($h: String) { match { $s: Staff { handle: $h } } return { $s.handle, $s.level } }
query everyone() { match { $s: Staff } return { $s.handle, $s.level } order { $s.handle asc } }
query mentees($h: String) { match { $s: Staff { handle: $h } $s mentors $m } return { $m.handle, $m.level } }
query second($h: String) { match { $s: Staff { handle: $h } $s mentors $x $x mentors $y } return { $y.handle } }
query members($c: String) { match { $t: Team { code: $c } $s memberOf $t } return { $s.handle } }
query teamless() { match { $s: Staff not { $s memberOf $_ } } return { $s.handle } }
query headcount() { match { $s: Staff } return { count($s) as total } }
query above($n: I32) { match { $s: Staff $s.level > $n } return { $s.handle, $s.level } order { $s.handle asc } }
"""

LIT = """
node Reading {
  slug: String @key
  memo: String? @index
  temp: F64?
  gain: F32?
  seq: I32?
  live: Bool?
  day: Date?
  stamp: DateTime?
}
node Badge { word: String @key }
edge Marked: Reading -> Badge
"""

LIT_ROWS = """
{"type":"Reading","data":{"slug":"r1","memo":"alto sax","temp":2.5,"gain":0.5,"seq":1,"live":true,"day":"2024-06-01","stamp":"2024-06-01T12:00:00Z"}}
{"type":"Reading","data":{"slug":"r2","memo":"altus","temp":1.0,"gain":0.25,"seq":2,"live":false,"day":"2023-01-01","stamp":"2023-01-01T00:00:00Z"}}
{"type":"Reading","data":{"slug":"r3","memo":"bass viol","temp":3.0,"gain":0.75,"seq":3,"live":true,"day":"2025-01-01","stamp":"2025-01-01T00:00:00Z"}}
{"type":"Reading","data":{"slug":"r4","temp":0.5,"gain":0.1,"seq":4,"live":false,"day":"2022-12-31","stamp":"2022-01-01T00:00:00Z"}}
{"type":"Badge","data":{"word":"altimeter"}}
{"type":"Badge","data":{"word":"cobalt"}}
{"edge":"Marked","from":"r1","to":"altimeter"}
{"edge":"Marked","from":"r1","to":"cobalt"}
{"edge":"Marked","from":"r3","to":"cobalt"}
"""  # noqa: E501

PAGE = """
node Page {
  slug: String @key
  head: String @index
  body: String @index
  emb: Vector(2)
}
"""

PAGE_ROWS = """
{"type":"Page","data":{"slug":"a","head":"river","body":"calm water","emb":[0.0,0.0]}}
{"type":"Page","data":{"slug":"b","head":"river delta","body":"muddy water near the basin","emb":[1.0,0.0]}}
{"type":"Page","data":{"slug":"c","head":"quiet river delta story","body":"sand","emb":[3.0,0.0]}}
{"type":"Page","data":{"slug":"d","head":"mountain","body":"granite ridge","emb":[7.0,0.0]}}
"""
