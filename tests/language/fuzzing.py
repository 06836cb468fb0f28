"""Inputs that try to break the parsers: random texts and damaged sources, the same ones at every run."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

SCHEMAS = (
    """\
node Staff { handle: String @key level: I32? @index note: String? @default("a\\n\\"b\\"") }
node Team @description("a team") { code: String @key }
edge Mentors: Staff -> Staff @card(0..3) { began: Date? cost: F64? @unique(src, dst) }
edge MemberOf: Staff -> Team
""",
    """\
// every type
interface Labelled { label: String @index }
interface Dated { day: Date at: DateTime? }
node Book @instruction("use it") implements Labelled, Dated {
  isbn: String
  pages: I32?  price: F64?  tags: [String]?  kind: enum(novel, poetry, essay)?
  emb: Vector(3)? @embed(isbn, model="m/x") @metric("cosine")
  cover: Blob?
  @key(isbn) @unique(label, day) @range(pages, 1..9000) @range(price, -0.5..) @check(isbn, "^[0-9]+$")
}
/* an edge with a key */
edge Cites: Book -> Book @card(1..) @rename_from("Quotes") { year: U64? @key(src, dst, note) note: String }
""",
)
QUERIES = (
    """\
query one($h: String) { match { $s: Staff { handle: $h } } return { $s.handle, $s.level } }
query second($h: String, $n: I32?) @description("two hops") {
  match { $s: Staff { handle: $h, } $s mentors{1,2} $x $x <mentors> $y not { $x memberOf $_ $y.level >= $n } }
  return { $y.handle as h count($x) as n } order { n desc, h } limit 10
}
query put($h: String, $n: I32) { insert Staff { handle: $h, level: $n } insert Mentors { from: $h, to: "ada" } }
query relevel($h: String) { update Staff set { level: 3 note: "x\\ty" } where handle = $h }
query drop_staff($h: String) { delete Staff where handle != $h }
""",
    """\
query books($v: Vector(3), $x: String, $t: [Date]?) @instruction("search") {
  match {
    $b: Book { kind: "novel", pages: 3, price: 2.50 }
    $b $e:cites $c            // an edge binding
    search($b.isbn, $x) fuzzy($b.label, $x, 2) match_text($b.label, "a b")
    $b.tags contains "rust"  $b.isbn starts_with $x  $e.year != 7
    $b.day = date("2026-02-14") $b.at <= now() $b.at > datetime("2026-02-14T10:00:00Z")
  }
  return { $b.isbn, $t, [1, 2.0], true, rrf(nearest($b.emb, $v), bm25($b.label, $x), 60) as score }
  order { score desc, $c.isbn asc } limit 5
}
query near() { match { $b: Book } return { $b } order { nearest($b.emb, [0.1, 0.2, 3]) } limit 5 }
query pages() { match { $b: Book } return { $b.kind, avg($b.pages), max($b.label) as m } order { m } }
""",
    """\
query blocks($n: I64?, $c: [String]) {
  match {
    $a: Staff|Team $b: * $s: Staff
    optional { $s $e:mentors|memberOf $x optional { $x mentors{0,} $y } $e.@type != "Mentors" }
    exists { $s mentors $z $z.level + 1 >= 2 or not $z.note is null } not exists { $s * $b }
    count { $s mentors{2,} $w } > 1 and sum($w.level) { $s mentors $w } in [1, -2.5e3, null]
    $p = shortest($s $k:<mentors>{1,6} $s by $k.cost)
    case when $s.level % 2 = 0 then true else $s.note ends_with "x" end
    if($s.level is not null, lower($s.note), "a" + "b") not in $c
  }
  return distinct { $a.*, round(avg($s.level), 1) as m, count(distinct $s.note), [$s.level, 2][0], -$s.level as q }
  having m > 1 order { m desc nulls last } offset 2 limit $n
}
query parts() {
  match { $s: Staff } with distinct { $s.note as note, collect($s.handle) as hs, $s } where note != "" order { note } limit 3
  match { $t: Staff { note: $note } $t in $hs } with { count(*) as n }
  return { $n } union all { match { $t: Team } return { 1 as n } } union { match { $t: Team } return { 2 as n } } order { n }
}
query change() {
  upsert Staff { handle: "a", level: 1 }
  update Mentors set { began: null } where from = "a" and to = "b" or @id in ["x"]
  match { $s: Staff $s mentors $t } update $s set { level: $t.level + 1, note: coalesce($s.note, "x") }
  match { $s: Staff not { $s memberOf $_ } } insert MemberOf { from: $s, to: "t" }
}
query objects() { match { $s: Staff $s $e:mentors $t } return { object($s) as o, object($e) as e, $e.* } }
query drop_edges() { match { $s: Staff $s $e:mentors $s } delete $e delete Staff where level * 2 > 3 or note is null }
""",
)
_VISIBLE_TOKENS = r"""
    { } ( ) [ ] , : ? @ $ . .. -> = != >= <= < > - ! # // /* */ " \ ' * ; & 0 7 1.5 -3 2147483648 18446744073709551616
    true false null not match return order limit query insert update delete set where as asc desc {1,3} {1,} {2} ..9 3..
    node edge interface implements enum Vector String Blob Bool I32 I64 U32 U64 F32 F64 DateTime Date
    @key @unique @index @range @check @card @embed @default @metric @description @instruction @rename_from
    optional exists with union all having distinct offset upsert case when then else end is in and or not nulls first last by
    shortest all_shortest $a.* {0,} {0,2} | || % + / * ( ) [0] -1e5 if( coalesce( nullif( collect( object( nodes( @id @type
    count sum avg min max search fuzzy match_text bm25 nearest rrf now date datetime contains starts_with
    $a $b $_ $Foo Staff Team Mentors mentors handle level "text" "\n" "\q" ü 漢 🙂
"""
_OTHER_TOKENS = (
    *("\n", "\t", "\r\n", "\x00", "\ufeff", "\u2028", "\ud800", "9" * 5000),
    *("[" * 200, "not {" * 200, "(" * 200, "-" * 200, "not " * 200, "optional {" * 200, "exists {" * 200, "if(" * 200),
    *("1 + " * 500, "[" + "1, " * 10_000 + "1]"),
)
TOKENS = (*_VISIBLE_TOKENS.split(), *_OTHER_TOKENS)

#: Half of the mixtures begin like a source, so that they are read further than their first word.
_BEGINNINGS = (
    "",
    "node A { a: ",
    "node A @description(",
    "interface I { a: String } node A implements I { ",
    "node A { a: String } edge B: A -> A { @",
    "query q(",
    "query q() { match { ",
    "query q() { match { $a: A } return { ",
    "query q() { match { $a: A } return { $a } order { ",
    "query q() { update A set { ",
    "query q() { match { $a: Staff optional { ",
    "query q() { match { $a: Staff ",
    "query q() { match { $a: Staff } with { ",
    "query q() { match { $a: Staff } return { $a } union { ",
    "query q() { match { $a: Staff } update $a set { ",
)


def random_texts(seed: int, count: int) -> Iterator[str]:
    """Bytes read as UTF-8 as well as they can be, and mixtures of the tokens of both languages."""
    rng = random.Random(seed)
    for index in range(count):
        if index % 2:
            yield rng.randbytes(rng.randrange(120)).decode(errors="replace")
        else:
            mixture = rng.choice(("", " ")).join(rng.choices(TOKENS, k=rng.randrange(40)))
            yield rng.choice(_BEGINNINGS) + mixture


def damaged_sources(seed: int, count: int) -> Iterator[str]:
    """Valid sources after one to three small accidents."""
    rng = random.Random(seed)
    for _ in range(count):
        text = rng.choice(SCHEMAS + QUERIES)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            text = rng.choice(_ACCIDENTS)(rng, text)
        yield text


_WORD = re.compile(r"\w+")


def _slice(rng: random.Random, text: str) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.randrange(30))


def _cut(rng: random.Random, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:start] + text[end:]


def _double(rng: random.Random, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:end] + text[start:end] * rng.choice((1, 1, 1, 90)) + text[end:]


def _insert(rng: random.Random, text: str) -> str:
    start, _ = _slice(rng, text)
    return text[:start] + rng.choice(TOKENS) + text[start:]


def _replace(rng: random.Random, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:start] + rng.choice(TOKENS) + text[end:]


def _move(rng: random.Random, text: str) -> str:
    start, end = _slice(rng, text)
    rest = text[:start] + text[end:]
    to, _ = _slice(rng, rest)
    return rest[:to] + text[start:end] + rest[to:]


def _swap_words(rng: random.Random, text: str) -> str:
    """Put one word of the text in the place of another."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    away, instead = rng.choice(words), rng.choice(words)
    return text[: away.start()] + instead.group() + text[away.end() :]


def _truncate(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _other_letter_case(rng: random.Random, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:start] + text[start:end].swapcase() + text[end:]


_ACCIDENTS: tuple[Callable[[random.Random, str], str], ...] = (
    _cut,
    _double,
    _insert,
    _replace,
    _move,
    _swap_words,
    _swap_words,
    _truncate,
    _other_letter_case,
)
