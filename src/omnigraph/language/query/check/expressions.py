"""Expressions: names are resolved and every part gets a type. `resolve` serves every place of a value or a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast, ir
from omnigraph.language.query.check.conditions import comparison, logical
from omnigraph.language.query.check.scope import Scope, is_several, path_column
from omnigraph.language.query.check.search import search_call
from omnigraph.language.query.check.values import is_untyped, literal_value
from omnigraph.language.query.foreign import bare_word, other_function
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS, common_type, number_type, usages_of
from omnigraph.language.schema.catalog import NodeType
from omnigraph.language.source import Place
from omnigraph.language.temporal import parse_duration
from omnigraph.language.types import INTEGERS, PropType, Scalar

#: Functions whose arguments have one type.
ONE_TYPE = frozenset({"least", "greatest", "coalesce", "list", "nullif"})
#: How many characters before a bare word are examined for a hint.
_NEAR = 80


def resolve(scope: Scope, expr: ast.Expr) -> ir.Expr:
    """The typed form of an expression; a bare node variable means the id of the node."""
    match expr:
        case ast.Ident():
            return _word(scope, expr)
        case ast.Access():
            return scope.read_column(expr)
        case ast.Variable():
            return _variable(scope, expr)
        case ast.Now():
            return ir.Now()
        case ast.Aggregate():
            return _aggregate(scope, expr)
        case ast.Search() | ast.MatchText() | ast.Fuzzy() | ast.Bm25() | ast.Nearest() | ast.Rrf():
            return search_call(scope, expr)
        case ast.Comparison():
            return comparison(scope, expr, resolve)
        case ast.Logical() | ast.Not():
            return logical(scope, expr, resolve)
        case ast.IsNull():
            tested = ir.IsNull(values(scope, (expr.operand,))[0])
            return ir.Not(tested) if expr.negated else tested
        case ast.Arithmetic():
            return _arithmetic(scope, expr)
        case ast.Negative():
            return _negative(scope, expr)
        case ast.Item():
            return _function(scope, ast.Call("item", (expr.items, expr.index), expr.span))
        case ast.Case():
            return _case(scope, expr)
        case ast.Call():
            return _function(scope, expr)
        case ast.BlockCall():
            return _over_block(scope, expr)
        case _:
            return literal_value(scope, expr)


def condition(scope: Scope, expr: ast.Expr) -> ir.Expr:
    """The typed form of a condition, which must be a Bool; `null` is allowed."""
    if isinstance(expr, ast.NullLit):
        return TypedValue(None, ir.BOOL.as_nullable())
    found = resolve(scope, expr)
    if found.type.scalar is not Scalar.BOOL or found.type.is_list:
        scope.error("T27", f"a condition is true or false, this is {found.type}", expr.span)
    return found


# --- names ------------------------------------------------------------------------------------------------------------


def _word(scope: Scope, word: ast.Ident) -> ir.Expr:
    """A bare word: a property of a mutation's target, or a column of the result."""
    known = scope.words.get(word.name)
    if known is not None:
        return known
    if scope.no_word is not None:
        scope.no_word(word.name, word.span)
    if scope.place == "match":
        scope.error("T7", f"a filter needs scalar operands; `{word.name}` is a bare word", word.span)
    before = scope.source.text[max(0, word.span.start - _NEAR) : word.span.start]
    return scope.error(None, bare_word(word.name, before), word.span)


def _variable(scope: Scope, variable: ast.Variable) -> ir.Expr:
    """The value of `$name`: a value named by a `with`, a column in `having`, a parameter, or the id of a bound node."""
    name = variable.name
    if name in scope.values:
        return scope.values[name]
    if name in scope.named and name not in scope.params:
        return scope.named[name]
    declared = scope.params.get(name)
    if declared is not None:
        if declared.is_blob:
            scope.refuse_blob(f"parameter `${name}`", variable.span)
        return ir.Parameter(name, declared)
    if scope.place == "mutation":
        scope.error(
            "T14",
            f"`${name}` is not a declared parameter; a value is a literal, a parameter or an expression of them",
            variable.span,
            name=name,
            known=scope.params,
        )
    if name in scope.edges:
        refuse_bare_edge(scope, variable)
    if name in scope.paths:
        scope.error("T32", f"`${name}` is a path; `length`, `nodes` and `edges` say what it is", variable.span)
    if name not in scope.nodes:
        scope.unbound(None, name, variable.span)
    return ir.Column(name, "id", scope.nullable(name, ir.STRING))


def _over_block(scope: Scope, call: ast.BlockCall) -> ir.Column:
    """The column of a value that is computed over the matches of a block, for each row."""
    if scope.block_value is None:
        scope.error("T31", f"`{call.function} {{ … }}` stands in a condition of `match`, or in `return`", call.span)
    return scope.block_value(scope, call)


def refuse_bare_edge(scope: Scope, variable: ast.Variable) -> NoReturn:
    """Raise the error for an edge variable without a property."""
    scope.error(
        "T23",
        f"edge variable `${variable.name}` can not be used bare; name one of its properties, such as "
        f"`${variable.name}.id`",
        variable.span,
    )


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _arithmetic(scope: Scope, expr: ast.Arithmetic) -> ir.Expr:
    if isinstance(expr.right, ast.DurationLit):
        return _later(scope, expr, expr.right)
    left, right = values(scope, (expr.left, expr.right))
    kind = _arithmetic_type(left.type, expr.operator, right.type)
    if kind is None and isinstance(expr.left, ast.NullLit) is not isinstance(expr.right, ast.NullLit):
        # A null without a type is tried as a number too: `date + null`.
        left, right = (TypedValue(None, ir.I64.as_nullable()) if _is_untyped(side) else side for side in (left, right))
        kind = _arithmetic_type(left.type, expr.operator, right.type)
    if kind is None:
        words = {"+": "add {} and {}", "-": "subtract {1} from {0}", "*": "multiply {} by {}", "/": "divide {} by {}"}
        what = words.get(expr.operator, "take the remainder of {} by {}").format(left.type, right.type)
        scope.error("T25", f"can not {what}", expr.span)
    return ir.Call(expr.operator, (left, right), _nullable(kind, (left, right)), Place(scope.source, expr.span))


def _arithmetic_type(left: PropType, operator: str, right: PropType) -> PropType | None:
    """The type of `left operator right`, or None when there is no such operation."""
    if left.is_numeric and right.is_numeric:
        return ir.F64 if operator == "/" else number_type((left, right))
    if left.is_text and right.is_text and operator == "+":
        return ir.STRING
    if left.is_list or right.is_list:
        return None
    if left.scalar is Scalar.DATE and right.scalar in INTEGERS and operator in "+-":
        return ir.DATE
    if left.scalar in INTEGERS and right.scalar is Scalar.DATE and operator == "+":
        return ir.DATE
    if operator == "-" and left.scalar is right.scalar and left.scalar in (Scalar.DATE, Scalar.DATETIME):
        return ir.I64
    return None


def _later(scope: Scope, expr: ast.Arithmetic, duration: ast.DurationLit) -> ir.Call:
    """`datetime ± duration("…")`."""
    moment = resolve(scope, expr.left)
    if moment.type.scalar is not Scalar.DATETIME or moment.type.is_list or expr.operator not in "+-":
        scope.error("T25", f"a duration is added to or subtracted from a DateTime, not {moment.type}", expr.span)
    try:
        milliseconds = parse_duration(duration.text)
    except ValueError as problem:
        scope.error(None, str(problem), duration.span)
    shift = TypedValue(milliseconds, ir.I64)
    return ir.Call(expr.operator, (moment, shift), _nullable(ir.DATETIME, (moment,)), Place(scope.source, expr.span))


def _negative(scope: Scope, expr: ast.Negative) -> ir.Call:
    operand = resolve(scope, expr.operand)
    if isinstance(expr.operand, ast.NullLit):
        operand = TypedValue(None, ir.I64.as_nullable())
    if not operand.type.is_numeric:
        scope.error("T25", f"only a number has a sign, this is {operand.type}", expr.span)
    kind = _nullable(number_type((operand.type,)), (operand,))
    return ir.Call("negative", (operand,), kind, Place(scope.source, expr.span))


def _nullable(kind: PropType, parts: Sequence[ir.Expr]) -> PropType:
    return replace(kind, nullable=any(part.type.nullable for part in parts))


def values(scope: Scope, exprs: Sequence[ast.Expr]) -> list[ir.Expr]:
    """Typed values; a null literal or an empty list gets the type of the first value that has a type."""
    found = [TypedValue(None, _NO_TYPE) if isinstance(expr, ast.NullLit) else resolve(scope, expr) for expr in exprs]
    typed = next((value.type for value in found if not _is_untyped(value)), None)
    return [_typed(value, typed) if _is_untyped(value) else value for value in found]


#: The type of a null literal when no other value determines it.
_NO_TYPE = ir.STRING.as_nullable()


def _is_untyped(value: ir.Expr) -> bool:
    return isinstance(value, TypedValue) and (value.value is None or is_untyped(value))


def _typed(value: ir.Expr, kind: PropType | None) -> ir.Expr:
    assert isinstance(value, TypedValue)
    if value.value is None:
        return TypedValue(None, _NO_TYPE if kind is None else kind.as_nullable())
    return TypedValue(value.value, replace(kind, nullable=False)) if kind is not None and kind.is_list else value


# --- functions --------------------------------------------------------------------------------------------------------


def _function(scope: Scope, call: ast.Call) -> ir.Expr:
    if call.function in ("id", "type", "object"):
        return _of_entity(scope, call)
    if call.function in ("length", "nodes", "edges"):
        part = _of_path(scope, call)
        if part is not None:
            return part
    function = FUNCTIONS[call.function]
    if call.function == "if" and len(call.arguments) == 3:
        return _if(scope, call)
    arguments = values(scope, call.arguments)
    if call.function in ONE_TYPE:
        _require_one_type(scope, call, arguments)
    else:
        nulls = frozenset(place for place, given in enumerate(call.arguments) if isinstance(given, ast.NullLit))
        wanted = function.types_of_nulls([argument.type for argument in arguments], nulls)
        arguments = [TypedValue(None, wanted[at]) if at in wanted else found for at, found in enumerate(arguments)]
    kinds = [argument.type for argument in arguments]
    signature = function.signature_for(kinds)
    if signature is None:
        given = ", ".join(map(str, kinds)) or "nothing"
        usage = " or ".join(usages_of(function))
        scope.error("T26", f"`{usage}` can not take {given}{other_function(call.function, kinds)}", call.span)
    kind = function.type_for(signature, kinds)
    return ir.Call(call.function, tuple(arguments), kind, Place(scope.source, call.span))


def _if(scope: Scope, call: ast.Call) -> ir.Conditional:
    """`if(condition, a, b)`: a `case` with one branch."""
    asked = condition(scope, call.arguments[0])
    chosen = values(scope, call.arguments[1:])
    kind = common_type(value.type for value in chosen)
    if kind is None:
        shown = ", ".join(str(value.type) for value in chosen)
        scope.error("T26", f"the values of `if` have one type, not {shown}", call.span)
    place = Place(scope.source, call.span)
    return ir.Conditional((asked,), (chosen[0],), chosen[1], _nullable(kind, chosen), place)


def _of_entity(scope: Scope, call: ast.Call) -> ir.Expr:
    """`id(x)`, `type(x)` and `object(x)` of a bound variable."""
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], ast.Variable):
        scope.error("T26", f"`{call.function}(x)` takes a variable that stands for a node or an edge", call.span)
    variable = call.arguments[0]
    if call.function == "object":
        return _object(scope, variable)
    return scope.read_column(ast.Access(variable.name, f"@{call.function}", variable.span))


def _object(scope: Scope, variable: ast.Variable) -> ir.Call:
    """`object(x)`: all properties of a node or an edge except blobs and vectors, which are read separately."""
    entity = scope.entity(variable.name)
    if entity is None:
        scope.unbound("T6", variable.name, variable.span)
    if scope.place != "result":
        scope.error("T36", "`object(x)` stands in `return`", variable.span)
    names = [
        name for name, declared in entity.properties.items() if not (declared.type.is_blob or declared.type.is_vector)
    ]
    ends = () if isinstance(entity, NodeType) else ("@src", "@dst")
    read = [
        scope.read_column(ast.Access(variable.name, name, variable.span)) for name in ("@id", "@type", *ends, *names)
    ]
    shown = TypedValue(tuple(names), replace(ir.STRING, is_list=True))
    return ir.Call("object", (shown, *read), PropType(Scalar.OBJECT, nullable=variable.name in scope.maybe))


def _of_path(scope: Scope, call: ast.Call) -> ir.Column | None:
    """`length`, `nodes` and `edges` of a path; None for the length of a text."""
    argument = call.arguments[0] if len(call.arguments) == 1 else None
    if isinstance(argument, ast.Variable) and argument.name in scope.paths:
        return path_column(scope, argument.name, call.function)
    if call.function == "length":
        return None
    return scope.error("T32", f"`{call.function}(p)` takes the variable of a path", call.span)


def _require_one_type(scope: Scope, call: ast.Call, arguments: Sequence[ir.Expr]) -> None:
    if arguments and common_type(argument.type for argument in arguments) is None:
        given = ", ".join(str(argument.type) for argument in arguments)
        scope.error("T26", f"the values of `{call.function}` have one type, not {given}", call.span)


def _case(scope: Scope, case: ast.Case) -> ir.Conditional:
    conditions = tuple(condition(scope, when.condition) for when in case.branches)
    otherwise = ast.NullLit(case.span) if case.otherwise is None else case.otherwise
    given = values(scope, [*(when.value for when in case.branches), otherwise])
    kind = common_type(value.type for value in given)
    if kind is None:
        shown = ", ".join(str(value.type) for value in given)
        scope.error("T26", f"the values of `case` have one type, not {shown}", case.span)
    place = Place(scope.source, case.span)
    return ir.Conditional(conditions, tuple(given[:-1]), given[-1], _nullable(kind, given), place)


# --- aggregates -------------------------------------------------------------------------------------------------------


def _aggregate(scope: Scope, call: ast.Aggregate) -> ir.AggregateCall:
    if scope.place == "match":
        scope.error("T7", f"a filter needs scalar operands; `{call.function}` belongs in `return`", call.span)
    if scope.place in ("mutation", "matched"):
        scope.error("T8", f"`{call.function}` belongs in `return`", call.span)
    argument = call.argument
    if argument is None:
        return ir.AggregateCall("count", None, ir.I64.as_nullable())
    if isinstance(argument, ast.Ident) and argument.name not in scope.words:
        scope.error("T8", f"`{call.function}` takes a value of the matched rows", argument.span)
    value = resolve(scope, argument)
    if any(True for _ in ir.aggregates_in(value)):
        scope.error("T8", f"`{call.function}` takes a value of the matched rows, not another aggregate", argument.span)
    function = AGGREGATES[call.function]
    is_entity = isinstance(argument, ast.Variable) and isinstance(value, ir.Column) and argument.name in scope.nodes
    if call.distinct and is_entity and isinstance(argument, ast.Variable) and is_several(scope.nodes[argument.name]):
        # Two nodes of different types may have the same id.
        own = scope.type_of(argument.name, scope.nodes[argument.name])
        value = (
            ir.Call("+", (ir.Call("+", (own, TypedValue("/", ir.STRING)), value.type), value), value.type)
            if call.function == "count"
            else value
        )
    if call.function not in ("count", "collect") and (is_entity or not function.takes(value.type)):
        shown = f"node `${argument.name}`" if isinstance(argument, ast.Variable) and is_entity else str(value.type)
        scope.error("T8", f"`{call.function}` takes {function.wanted}, not {shown}", argument.span)
    if call.function == "collect" and not function.takes(value.type):
        scope.error("T8", f"`collect` takes {function.wanted}, not {value.type}", argument.span)
    fraction = _fraction(scope, call)
    kind = function.result(value.type).as_nullable()
    return ir.AggregateCall(call.function, value, kind, call.distinct, fraction, Place(scope.source, call.span))


def _fraction(scope: Scope, call: ast.Aggregate) -> ir.Constant | None:
    if call.function != "percentile":
        return None
    if call.fraction is None:
        scope.error("T8", "`percentile(x, p)` takes a fraction p between 0 and 1", call.span)
    fraction = resolve(scope, call.fraction)
    if not isinstance(fraction, TypedValue | ir.Parameter) or not fraction.type.is_numeric:
        scope.error("T8", "the fraction of `percentile` is a number: a literal or a parameter", call.fraction.span)
    if isinstance(fraction, TypedValue) and not _is_fraction(fraction):
        scope.error("T8", "the fraction of `percentile` lies between 0 and 1", call.fraction.span)
    return fraction


def _is_fraction(value: TypedValue) -> bool:
    return isinstance(value.value, int | float) and 0 <= value.value <= 1
