"""The meaning of the names of a query at one point of its text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal, NoReturn

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast
from omnigraph.language.query.ast import Access, BlockCall
from omnigraph.language.query.ir import I64, STRING, Column, Conditional, Expr, IsNull, value_column
from omnigraph.language.schema.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.language.source import Source, Span, did_you_mean, nearest_name
from omnigraph.language.types import PropType, Scalar

ANONYMOUS = "_"

NODE_COLUMNS = ("id",)
EDGE_COLUMNS = ("id", "src", "dst")
NO_WORDS: Mapping[str, Expr] = {}


#: The place of an expression, which decides the meaning of bare words and aggregates.
Place = Literal["match", "result", "mutation", "matched"]


@dataclass
class Scope:
    """The parameters of a query and the variables bound so far; a nested block has an inner scope."""

    source: Source
    catalog: Catalog
    params: Mapping[str, PropType]
    nodes: dict[str, NodeType] = field(default_factory=dict)
    edges: dict[str, EdgeType] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    place: Place = "match"
    #: The meaning of bare words: aliases of the result, or properties of a mutation's target.
    words: Mapping[str, Expr] = field(default_factory=dict)
    #: Raises the error for an unknown bare word; None: the place decides on the error.
    no_word: Callable[[str, Span], NoReturn] | None = None
    #: In `having`, and in the `where` of a `with`: the columns that `$name` means besides the variables.
    named: Mapping[str, Expr] = field(default_factory=dict)
    #: The variables that hold a value instead of a node or an edge; a `with` names them.
    values: dict[str, Column] = field(default_factory=dict)
    #: The values among them that are lists of nodes, each with the type of its nodes.
    listed: dict[str, NodeType] = field(default_factory=dict)
    #: The path variables, each with the type of its nodes.
    paths: dict[str, NodeType] = field(default_factory=dict)
    #: The variables of optional blocks, which are null in some rows.
    maybe: set[str] = field(default_factory=set)
    #: The nodes that are bound outside of the block; clauses in the block do not change their types.
    outside: frozenset[str] = frozenset()
    #: Returns the column of a value computed over the matches of a block; None where blocks are not allowed. It is a field,
    #: because the module of blocks depends on the module of expressions.
    block_value: Callable[[Scope, BlockCall], Column] | None = None

    def inner(self) -> Scope:
        """A scope that sees everything bound so far, and whose own bindings are not visible outside."""
        return Scope(
            self.source,
            self.catalog,
            self.params,
            dict(self.nodes),
            dict(self.edges),
            self._numbers,
            values=dict(self.values),
            listed=dict(self.listed),
            paths=dict(self.paths),
            maybe=set(self.maybe),
            outside=frozenset(self.nodes),
        )

    def following(self) -> Scope:
        """A new scope of the same query, without any bound variables."""
        return Scope(self.source, self.catalog, self.params, _numbers=self._numbers)

    def fresh_value(self, kind: PropType) -> Column:
        """A new column for a value without a name in the text."""
        return value_column(str(next(self._numbers)), kind)

    def at(
        self, place: Place, words: Mapping[str, Expr] = NO_WORDS, no_word: Callable[[str, Span], NoReturn] | None = None
    ) -> Scope:
        """The same scope for expressions at another place."""
        return replace(self, place=place, words=words, no_word=no_word)

    def is_bound(self, variable: str) -> bool:
        return any(variable in known for known in (self.nodes, self.edges, self.values, self.paths))

    def nullable(self, variable: str, kind: PropType) -> PropType:
        """The type of a property of a variable: nullable when the variable may be null."""
        return kind.as_nullable() if variable in self.maybe else kind

    def name_of(self, variable: str) -> str:
        """The variable itself; for the anonymous variable a new name that no text can contain."""
        return f"_#{next(self._numbers)}" if variable == ANONYMOUS else variable

    def error(
        self, code: str | None, message: str, span: Span, *, name: str = "", known: Iterable[str] = ()
    ) -> NoReturn:
        """Raise a TypecheckError; for a misspelt `name` it suggests the nearest of the names `known`."""
        suggestion = nearest_name(name, known) if name else None
        self.source.type_error(code, f"{message}{did_you_mean(suggestion)}", span, suggestion=suggestion)

    def unbound(self, code: str | None, variable: str, span: Span) -> NoReturn:
        """Raise the error for a variable that nothing has bound."""
        kinds: dict[str, Collection[str]] = {
            "a path": self.paths,
            "a value": self.values,
            "a parameter": self.params,
        }
        other = next((kind for kind, names in kinds.items() if variable in names), None)
        if other is not None:
            self.source.type_error(code, f"`${variable}` is {other}, here stands a node or an edge", span)
        known = (*self.nodes, *self.edges, *self.values, *self.paths, *self.params)
        suggestion = nearest_name(variable, (name for name in known if name.isidentifier()))
        tail = did_you_mean(f"${suggestion}" if suggestion else None)
        self.source.type_error(code, f"variable `${variable}` is not bound{tail}", span, suggestion=suggestion)

    def entity(self, variable: str) -> EntityType | None:
        """The node or edge type of a variable; None when it is not bound."""
        return self.nodes.get(variable) or self.edges.get(variable)

    def column(self, access: Access, code: str = "T6") -> Column:
        """The column of `$variable.property`; an unknown variable or property is an error with this code."""
        entity = self.entity(access.variable)
        if entity is None:
            self.unbound(code, access.variable, access.span)
        name = access.property.removeprefix("@")
        found = property_type(entity, access.property)
        if access.property.startswith("@") and name in implicit_columns(entity):
            found = STRING
        if found is None:
            self.no_property(code, entity, access.property, access.span)
        return Column(access.variable, name, self.nullable(access.variable, found))

    def read_column(self, access: Access) -> Expr:
        """The column of an access whose value is read; raises T24 for a Blob. `@type` gives the name of the type."""
        entity = self.entity(access.variable)
        if access.property == "@type" and entity is not None:
            return self.type_of(access.variable, entity)
        column = self.column(access)
        if column.type.is_blob:
            self.refuse_blob(f"property `${access.variable}.{access.property}`", access.span)
        return column

    def type_of(self, variable: str, entity: EntityType) -> Expr:
        """The type name of a variable's node or edge as an expression; null where the variable is null."""
        if is_several(entity):
            return Column(variable, "@type", self.nullable(variable, STRING))
        name = TypedValue(entity.name, STRING)
        if variable not in self.maybe:
            return name
        missing = IsNull(Column(variable, "id", STRING.as_nullable()))
        nothing = TypedValue(None, STRING.as_nullable())
        return Conditional((missing,), (nothing,), name, STRING.as_nullable())

    def refuse_blob(self, what: str, span: Span) -> NoReturn:
        """Raise the error for a Blob that is used as a value of a read."""
        message = f"Blob {what} is not available as a .gq read value; Blob values require a dedicated API"
        self.error("T24", message, span)

    def no_property(self, code: str, entity: EntityType, name: str, span: Span) -> NoReturn:
        """Raise the error for a property that a type does not have."""
        known = (*entity.properties, *implicit_columns(entity))
        self.error(code, f"no property `{name}` on {entity.name}", span, name=name, known=known)


def listed_nodes(scope: Scope, expr: ast.Expr) -> NodeType | None:
    """The type of the nodes that a list holds: collected nodes, or those of a path; None for a list of values."""
    match expr:
        case ast.Variable(name):
            return scope.listed.get(name)
        case ast.Aggregate("collect", ast.Variable(name)) | ast.Call("nodes", (ast.Variable(name),)):
            return scope.nodes.get(name) or scope.paths.get(name)
        case ast.Call("slice" | "distinct_list" | "sort_list", (items, *_)):
            return listed_nodes(scope, items)
        case _:
            return None


#: The parts of a path and their types.
_PATH_PARTS = {
    "length": I64,
    "nodes": PropType(Scalar.STRING, is_list=True),
    "edges": PropType(Scalar.STRING, is_list=True),
}


def path_column(scope: Scope, path: str, part: str) -> Column:
    """The column of a part of a path."""
    return value_column(f"{path}:{part}", scope.nullable(path, _PATH_PARTS[part]))


def path_columns(scope: Scope, path: str) -> tuple[Column, ...]:
    """The columns of all parts of a path."""
    return tuple(path_column(scope, path, part) for part in _PATH_PARTS)


def is_several(entity: EntityType) -> bool:
    """Whether an entity type joins several types; its name then joins their names with `|`."""
    return "|" in entity.name


def implicit_columns(entity: EntityType) -> tuple[str, ...]:
    """The columns that a type has without a declaration."""
    return NODE_COLUMNS if isinstance(entity, NodeType) else EDGE_COLUMNS


def property_type(entity: EntityType, name: str) -> PropType | None:
    """The type of a declared property or an implicit column; None when there is none of this name."""
    declared = entity.properties.get(name)
    if declared is not None:
        return declared.type
    return STRING if name in implicit_columns(entity) else None
