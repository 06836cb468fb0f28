"""Generated schemas: valid by construction, as tokens, so that a test can lay them out and shuffle them as it likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog

Tokens = tuple[str, ...]

# Keywords, prefixes of literals and names that look like storage columns are all fine as property names.
NAMES = ("a", "b", "c1", "name", "node", "edge", "null", "trueness", "false_", "enum", "key", "_x", "_row_id", "zZ_9")
NODE_NAMES = ("Staff", "Team", "Node", "A", "Aa", "String", "I32x")
EDGE_NAMES = ("Knows", "MemberOf", "Staff", "E", "Not", "Card")
BASES = ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
PATTERNS = (r"^[a-z]+$", "", 'x{1,3}|[^"]', "\\d\n", "→", "//", "/*")
GAPS = (" ", "\n", "\t \r\n", "// a comment\n", "/* another */", "/**/", " /* // */ ")
# Never empty after stripping: a blank text is refused where a text is asked for.
PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda text: f"{text}.")


@dataclass(frozen=True)
class Written:
    """One declaration: the tokens of its header, and of each member of its body."""

    header: Tokens
    members: tuple[Tokens, ...]

    def tokens(self) -> Tokens:
        return (*self.header, "{", *(token for member in self.members for token in member), "}")


@dataclass(frozen=True)
class WrittenSchema:
    """A whole schema; the order of declarations, and of the members in each, does not matter."""

    declarations: tuple[Written, ...]

    @property
    def text(self) -> str:
        """The schema with one blank between tokens."""
        return self.laid_out((" ",))

    def laid_out(self, gaps: Sequence[str]) -> str:
        """The schema with these blanks and comments between its tokens, over and over."""
        tokens = [token for declaration in self.declarations for token in declaration.tokens()]
        return "".join(f"{token}{gaps[index % len(gaps)]}" for index, token in enumerate(tokens))


@dataclass(frozen=True)
class _Type:
    """A property type as tokens, with what a generator must know of it."""

    tokens: Tokens
    base: str
    nullable: bool = False

    @property
    def can_be_key(self) -> bool:
        return not self.nullable and self.base in (*BASES, "enum")


def quoted(text: str) -> str:
    """A string literal; newlines and control characters may stand in it as they are."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- pieces -----------------------------------------------------------------------------------------------------------


@st.composite
def property_types(draw: st.DrawFn) -> _Type:
    """Any property type."""
    kind = draw(st.sampled_from(["base", "base", "base", "list", "enum", "vector", "blob"]))
    nullable = draw(st.booleans())
    tail: Tokens = ("?",) if nullable else ()
    if kind == "list":
        return _Type(("[", draw(st.sampled_from(BASES)), "]", *tail), "list", nullable)
    if kind == "enum":
        values = draw(st.lists(st.sampled_from(["x", "B-2", "0", "_", "true", "Open"]), min_size=1, unique=True))
        return _Type(("enum", "(", *_joined([(value,) for value in values]), ")", *tail), "enum", nullable)
    if kind == "vector":
        return _Type(("Vector", "(", str(draw(st.integers(1, 4096))), ")", *tail), "Vector", nullable)
    base = "Blob" if kind == "blob" else draw(st.sampled_from(BASES))
    return _Type((base, *tail), base, nullable)


def literals() -> st.SearchStrategy[str]:
    """Any literal of an annotation."""
    return st.one_of(
        PLAIN_TEXT.map(quoted),
        st.integers(0, 2**64 - 1).map(str),
        st.tuples(st.integers(0, 10**25), st.integers(0, 10**12)).map(lambda parts: f"{parts[0]}.{parts[1]:012}"),
        st.sampled_from(["true", "false"]),
    )


def _default(base: str) -> st.SearchStrategy[str]:
    """A literal that fits a type."""
    fitting: dict[str, st.SearchStrategy[str]] = {
        "String": PLAIN_TEXT.map(quoted),
        "Bool": st.sampled_from(["true", "false"]),
        "I32": st.integers(0, 2**31 - 1).map(str),
        "I64": st.integers(0, 2**63 - 1).map(str),
        "U32": st.integers(0, 2**32 - 1).map(str),
        "U64": st.integers(0, 2**64 - 1).map(str),
        "F32": st.sampled_from(["0.1", "7", "340282346638528859811704183484516925440.0"]),
        "F64": st.sampled_from(["0.1", "7", "0.0000000000000000001", f"{10**300}.5"]),
        "Date": st.sampled_from(["0", '"0001-01-01"', '"9999-12-31"', '"2024-02-29"']),
        "DateTime": st.sampled_from(["0", '"2024-06-01T12:00:00+02:00"', '"1969-12-31T23:59:59.999Z"']),
    }
    return fitting[base]


@st.composite
def _metadata(draw: st.DrawFn, on_type: bool = False) -> Tokens:
    """Annotations without a meaning, and texts."""
    tokens: list[str] = []
    if on_type and draw(st.booleans()):
        tokens += ["@", "instruction", "(", quoted(draw(PLAIN_TEXT)), ")"]
    if draw(st.booleans()):
        tokens += ["@", "description", "(", quoted(draw(PLAIN_TEXT)), ")"]
    if draw(st.booleans()):
        tokens += ["@", draw(st.sampled_from(["odd", "keyring", "cardinal", "uniq"]))]
        if draw(st.booleans()):
            value = draw(st.one_of(literals(), st.just("bare")))
            arguments = [(",", key, "=", draw(literals())) for key in draw(st.sets(st.sampled_from("xyz")))]
            tokens += ["(", value, *(token for argument in arguments for token in argument), ")"]
    if draw(st.integers(0, 3)) == 0:
        tokens += ["@", "rename_from", "(", draw(st.sampled_from(['"Old"', "old", '"old"'])), ")"]
    return tuple(tokens)


def _joined(items: Sequence[Tokens]) -> Tokens:
    """Items with commas between them."""
    return tuple(token for item in items for token in (",", *item))[1:]


def _call(name: str, *arguments: Tokens) -> Tokens:
    return ("@", name, "(", *_joined(arguments), ")")


# --- bodies -----------------------------------------------------------------------------------------------------------


@st.composite
def _annotations(draw: st.DrawFn, prop_type: _Type, text_properties: Sequence[str], on_edge: bool) -> Tokens:
    """What can stand behind a property, without `@key`."""
    tokens: list[str] = []
    base = prop_type.base
    if base not in ("list", "Vector", "Blob") and draw(st.booleans()):
        tokens += ["@", "unique"]
    if base not in ("list", "Blob") and draw(st.booleans()):
        tokens += ["@", "index"]
    if base in BASES and draw(st.booleans()):
        tokens += ["@", "default", "(", draw(_default(base)), ")"]
    if base == "Vector":
        tokens += draw(st.sampled_from([(), ("@", "metric", "(", '"cosine"', ")"), ("@", "metric", "(", '"l2"', ")")]))
        if text_properties and not on_edge and draw(st.booleans()):
            model = draw(st.sampled_from([(), (",", "model", "=", '"m/x"')]))
            tokens += ["@", "embed", "(", quoted(draw(st.sampled_from(text_properties))), *model, ")"]
    return (*tokens, *draw(_metadata()))


@st.composite
def _body(draw: st.DrawFn, on_edge: bool, may_have_key: bool) -> tuple[Tokens, ...]:
    """The members of a node or an edge."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5))
    types = {name: draw(property_types()) for name in names}
    texts = [name for name in names if types[name].base in ("String", "enum")]
    members = {
        name: (name, ":", *types[name].tokens, *draw(_annotations(types[name], texts, on_edge))) for name in names
    }
    # Inside parentheses `trueness` would be read as the literal `true`.
    nameable = [name for name in names if not name.startswith(("true", "false"))]
    body: list[Tokens] = []
    keys = [name for name in names if types[name].can_be_key]
    if may_have_key and not on_edge and keys and draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True))
        if len(chosen) == 1:
            members[chosen[0]] += ("@", "key")
        elif set(chosen) <= set(nameable):
            body.append(_call("key", *[(name,) for name in chosen]))
    if on_edge and draw(st.booleans()):
        chosen = [name for name in keys if name in nameable and draw(st.booleans())]
        body.append(_call("key", ("src",), ("dst",), *[(name,) for name in chosen]))
    indexable = [name for name in nameable if types[name].base != "Blob"] + (["src", "dst"] if on_edge else [])
    for keyword in ("unique", "index"):
        if len(indexable) > 0 and draw(st.booleans()):
            chosen = draw(st.lists(st.sampled_from(indexable), min_size=1, max_size=3, unique=True))
            body.append(_call(keyword, *[(name,) for name in chosen]))
    if not on_edge:
        body += draw(_value_constraints([(name, types[name].base) for name in nameable]))
    return (*members.values(), *body)


@st.composite
def _value_constraints(draw: st.DrawFn, properties: Sequence[tuple[str, str]]) -> list[Tokens]:
    body: list[Tokens] = []
    for name, base in properties:
        if base in NUMBERS and draw(st.booleans()):
            low, high = f"-{draw(st.integers(0, 99))}", f"{draw(st.integers(0, 99))}.{draw(st.integers(0, 999)):06}"
            ends = draw(st.sampled_from([(low, ".."), (low, "..", high), ("..", high)]))
            body.append(_call("range", (name,), ends))
        if base in ("String", "enum") and draw(st.booleans()):
            body.append(_call("check", (name,), (quoted(draw(st.sampled_from(PATTERNS))),)))
    return body


# --- schemas ----------------------------------------------------------------------------------------------------------


@st.composite
def _interfaces(draw: st.DrawFn) -> tuple[Written, ...]:
    """Interfaces whose properties never meet those of another interface or of a node."""
    declared = []
    for number in range(draw(st.integers(0, 2))):
        members = []
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
            prop_type = draw(property_types())
            annotations = draw(_annotations(prop_type, (), on_edge=False))
            members.append((f"i{number}_{name}", ":", *prop_type.tokens, *annotations))
        declared.append(Written(("interface", f"Face{number}"), tuple(members)))
    if len(declared) > 0 and draw(st.booleans()):
        keyed = ("i_key", ":", "String", "@", "key")
        declared[0] = Written(declared[0].header, (*declared[0].members, keyed))
    return tuple(declared)


@st.composite
def _node(draw: st.DrawFn, name: str, interfaces: Sequence[Written]) -> Written:
    chosen = [interface for interface in interfaces if draw(st.booleans())]
    inherits_key = any(member[0] == "i_key" for interface in chosen for member in interface.members)
    implements = ("implements", *_joined([(interface.header[1],) for interface in chosen])) if chosen else ()
    body = draw(_body(on_edge=False, may_have_key=not inherits_key))
    return Written(("node", name, *draw(_metadata(on_type=True)), *implements), body)


@st.composite
def _edge(draw: st.DrawFn, name: str, nodes: Sequence[str]) -> Written:
    ends = (draw(st.sampled_from(nodes)), "->", draw(st.sampled_from(nodes)))
    card = draw(
        st.sampled_from([(), ("@card", "(", "0", "..", "1", ")"), ("@card", "(", "2", "..", ")")]),
    )
    body = draw(_body(on_edge=True, may_have_key=False))
    return Written(("edge", name, ":", *ends, *card, *draw(_metadata(on_type=True))), body)


@st.composite
def written_schemas(draw: st.DrawFn) -> WrittenSchema:
    """A valid schema as tokens."""
    interfaces = draw(_interfaces())
    nodes = draw(st.lists(st.sampled_from(NODE_NAMES), unique=True, min_size=1, max_size=3))
    edges = draw(st.lists(st.sampled_from(EDGE_NAMES), unique=True, max_size=2))
    return WrittenSchema(
        (
            *interfaces,
            *(draw(_node(name, interfaces)) for name in nodes),
            *(draw(_edge(name, nodes)) for name in edges),
        )
    )


def schema_texts() -> st.SearchStrategy[str]:
    """The text of a valid schema."""
    return written_schemas().map(lambda schema: schema.text)


def catalogs() -> st.SearchStrategy[Catalog]:
    """The catalog of a valid schema."""
    return schema_texts().map(compile_schema)


@st.composite
def shuffled(draw: st.DrawFn, schema: WrittenSchema) -> str:
    """The same schema with declarations and members in another order, and with other blanks and comments."""
    declarations = tuple(
        Written(declaration.header, tuple(draw(st.permutations(declaration.members))))
        for declaration in draw(st.permutations(schema.declarations))
    )
    return WrittenSchema(declarations).laid_out(draw(st.lists(st.sampled_from(GAPS), min_size=1, max_size=7)))
