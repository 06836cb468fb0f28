"""Random values and conditions over the variables that are bound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.query.generated.tables import PROPERTIES, Relation, Tables, Typed, Variable

FLOATS = ("F32", "F64")
WORDS = ("s1", "s", "2", "a", "Xy", "")
DATES = ("2020-02-29", "1999-12-31", "2024-06-01")


class Expressions(Tables):
    """Makes values of each kind; deeper ones are made of others."""

    @abstractmethod
    def block(self, scope: list[Variable]) -> Relation | None:
        """A pattern inside a block that speaks about the scope; None when nothing in it can be followed."""

    def read(self, scope: list[Variable], kind: str) -> Iterator[Typed]:
        """The properties of the bound variables that hold such values."""
        for variable in scope:
            for name, held in PROPERTIES.get(variable.kind, {}).items():
                if held == kind:
                    yield self._property(variable, name, kind)
            if variable.kind == kind or (kind == "number" and variable.kind in ("integer", "float")):
                yield Typed(f"${variable.name}", f'{variable.alias}."{variable.name}"', variable.kind)

    def _property(self, variable: Variable, name: str, kind: str) -> Typed:
        text, sql = f"${variable.name}.{name}", variable.sql(name)
        if kind != "number":
            return Typed(text, sql, kind)
        is_float = self.types[name] in FLOATS
        return Typed(text, f"{sql}::{'double' if is_float else 'bigint'}", "float" if is_float else "integer")

    def number(self, scope: list[Variable], depth: int) -> Typed:
        known = list(self.read(scope, "number"))
        if depth == 0 or self.often(0.3):
            if known and self.often(0.75):
                return self.one(known)
            value = self.one((0, 1, 2, 3, -1, 0.5, 2.5))
            return Typed(
                str(value), f"({value})::{_sql_type(value)}", "float" if isinstance(value, float) else "integer"
            )
        forms = (
            "arithmetic",
            "arithmetic",
            "quotient",
            "remainder",
            "function",
            "choice",
            "text",
            "date",
            "count",
            "least",
        )
        match self.one(forms):
            case "arithmetic":
                left, right = self.number(scope, depth - 1), self.number(scope, depth - 1)
                operator = self.one(("+", "-", "*"))
                return Typed(
                    f"({left.gq} {operator} {right.gq})", f"({left.sql} {operator} {right.sql})", _wider(left, right)
                )
            case "quotient":
                left, right = self.number(scope, depth - 1), self.number(scope, depth - 1)
                sql = f"({left.sql}::double / nullif({right.sql}, 0)::double)"
                return Typed(f"({left.gq} / nullif({right.gq}, 0))", sql, "float")
            case "remainder":
                left = self.number(scope, 0)
                if left.kind == "float":
                    return left
                divisor = self.one((2, 3))
                return Typed(f"({left.gq} % {divisor})", f"({left.sql} % {divisor})", "integer")
            case "function":
                operand = self.number(scope, depth - 1)
                name = self.one(("abs", "sign", "floor", "ceil", "negative"))
                if name == "negative":
                    return Typed(
                        f"(-{operand.gq})" if operand.gq[0] != "-" else operand.gq, _minus(operand), operand.kind
                    )
                kind = "integer" if name == "sign" else operand.kind
                cast = "bigint" if kind == "integer" else "double"
                return Typed(f"{name}({operand.gq})", f"{name}({operand.sql})::{cast}", kind)
            case "text":
                text = self.text(scope, depth - 1)
                return Typed(f"length({text.gq})", f"length({text.sql})", "integer")
            case "date":
                day = self.date(scope, depth - 1)
                name, sql = self.one(
                    (("year",) * 2, ("month",) * 2, ("day",) * 2, ("weekday", "isodow"), ("week",) * 2)
                )
                return Typed(f"{name}({day.gq})", f"{sql}({day.sql})", "integer")
            case "count":
                found = self.over_block(scope)
                return self.number(scope, 0) if found is None else found
            case "least":
                left, right = self.number(scope, depth - 1), self.number(scope, depth - 1)
                name, kind = self.one(("least", "greatest", "coalesce")), _wider(left, right)
                return Typed(f"{name}({left.gq}, {right.gq})", f"{name}({_as(left, kind)}, {_as(right, kind)})", kind)
            case _:
                return self.choice(scope, depth, self.number)

    def over_block(self, scope: list[Variable]) -> Typed | None:
        """An aggregate over a block."""
        inner = self.block(scope)
        if inner is None:
            return None
        clauses = " ".join(inner.clauses)
        alias = inner.variables[0].alias
        values = list(self.read(inner.variables, "number"))
        if not values or self.often(0.5):
            return Typed(f"count {{ {clauses} }}", f"(select count(*) from ({inner.sql}) {alias})", "integer")
        name, value = self.one(("sum", "min", "max", "avg")), self.one(values)
        kind = "float" if name == "avg" else value.kind
        cast = "bigint" if kind == "integer" else "double"
        sql = f"(select {name}({value.sql})::{cast} from ({inner.sql}) {alias})"
        return Typed(f"{name}({value.gq}) {{ {clauses} }}", sql, kind)

    def text(self, scope: list[Variable], depth: int) -> Typed:
        known = list(self.read(scope, "text"))
        if depth == 0 or self.often(0.4):
            if known and self.often(0.8):
                return self.one(known)
            word = self.one(WORDS)
            return Typed(f'"{word}"', f"'{word}'", "text")
        inner = self.text(scope, depth - 1)
        match self.one(
            ("lower", "upper", "trim", "reverse_text", "substring", "replace", "concat", "plus", "choice", "number")
        ):
            case "reverse_text":
                return Typed(f"reverse_text({inner.gq})", f"reverse({inner.sql})", "text")
            case "substring":
                return Typed(f"substring({inner.gq}, 1, 2)", f"substring({inner.sql}, 2, 2)", "text")
            case "replace":
                return Typed(f'replace({inner.gq}, "s", "Q")', f"replace({inner.sql}, 's', 'Q')", "text")
            case "concat":
                other = self.text(scope, depth - 1)
                return Typed(f"concat({inner.gq}, {other.gq})", f"concat({inner.sql}, {other.sql})", "text")
            case "plus":
                other = self.text(scope, depth - 1)
                return Typed(f"({inner.gq} + {other.gq})", f"({inner.sql} || {other.sql})", "text")
            case "choice":
                return self.choice(scope, depth, self.text)
            case "number":
                number = self.number(scope, 0)
                if number.kind == "float":
                    return inner
                return Typed(f"to_text({number.gq})", f"{number.sql}::varchar", "text")
            case name:
                return Typed(f"{name}({inner.gq})", f"{name}({inner.sql})", "text")

    def date(self, scope: list[Variable], depth: int) -> Typed:
        known = list(self.read(scope, "date"))
        if depth == 0 or self.often(0.4):
            if known and self.often(0.8):
                return self.one(known)
            day = self.one(DATES)
            return Typed(f'date("{day}")', f"date '{day}'", "date")
        inner = self.date(scope, depth - 1)
        match self.one(("plus", "minus", "months", "truncate", "moment", "choice")):
            case "plus":
                return Typed(f"({inner.gq} + 40)", f"({inner.sql} + 40)", "date")
            case "minus":
                return Typed(f"({inner.gq} - 400)", f"({inner.sql} - 400)", "date")
            case "months":
                return Typed(f"add_months({inner.gq}, 13)", f"({inner.sql} + interval 13 month)::date", "date")
            case "truncate":
                unit = self.one(("year", "quarter", "month", "week", "day"))
                return Typed(f'truncate("{unit}", {inner.gq})', f"date_trunc('{unit}', {inner.sql})::date", "date")
            case "moment":
                moment = self.moment(scope)
                return Typed(f"date({moment.gq})", f"{moment.sql}::date", "date")
            case _:
                return self.choice(scope, depth, self.date)

    def moment(self, scope: list[Variable]) -> Typed:
        known = list(self.read(scope, "datetime"))
        value = Typed('datetime("2024-02-29T23:30:00Z")', "timestamp '2024-02-29 23:30:00'", "datetime")
        if known and self.often(0.8):
            found = self.one(known)
            value = replace(found, sql=f"{found.sql}::timestamp")
        if self.often(0.3):
            return Typed(f'({value.gq} + duration("PT1H30M"))', f"({value.sql} + interval 90 minute)", "datetime")
        if self.often(0.3):
            return Typed(f'truncate("hour", {value.gq})', f"date_trunc('hour', {value.sql})", "datetime")
        return value

    def choice(self, scope: list[Variable], depth: int, make: Callable[[list[Variable], int], Typed]) -> Typed:
        """`if`, `case`, `coalesce` or `nullif` over values of one kind."""
        first, second = make(scope, depth - 1), make(scope, depth - 1)
        kind = first.kind if first.kind == second.kind else "float"
        one, other = _as(first, kind), _as(second, kind)
        match self.one(("if", "case", "coalesce", "nullif")):
            case "coalesce":
                return Typed(f"coalesce({first.gq}, {second.gq})", f"coalesce({one}, {other})", kind)
            case "nullif":
                return Typed(f"nullif({first.gq}, {second.gq})", f"nullif({first.sql}, {second.sql})", first.kind)
            case form:
                asked = self.truth(scope, depth - 1)
                sql = f"(case when {asked.sql} then {one} else {other} end)"
                if form == "if":
                    return Typed(f"if({asked.gq}, {first.gq}, {second.gq})", sql, kind)
                return Typed(f"case when {asked.gq} then {first.gq} else {second.gq} end", sql, kind)

    def truth(self, scope: list[Variable], depth: int) -> Typed:
        """A condition."""
        if depth > 0 and self.often(0.35):
            left, right = self.truth(scope, depth - 1), self.truth(scope, depth - 1)
            operator = self.one(("and", "or"))
            return Typed(f"({left.gq} {operator} {right.gq})", f"({left.sql} {operator} {right.sql})", "bool")
        if depth > 0 and self.often(0.15):
            inner = self.truth(scope, depth - 1)
            return Typed(f"(not {inner.gq})", f"(not {inner.sql})", "bool")
        deep = max(depth - 1, 0)
        match self.one(
            ("number", "number", "text", "date", "moment", "in", "null", "like", "same", "block", "member", "flag")
        ):
            case "number":
                return self.compared(self.number(scope, deep), self.number(scope, deep))
            case "text":
                return self.compared(self.text(scope, deep), self.text(scope, deep))
            case "date":
                day = self.date(scope, deep)
                if self.often(0.3):
                    word = self.one(DATES)
                    return self.compared(day, Typed(f'"{word}"', f"date '{word}'", "date"))
                return self.compared(day, self.date(scope, 0))
            case "moment":
                return self.compared(self.moment(scope), self.moment(scope))
            case "in":
                return self.member(scope, deep)
            case "null":
                tested = self.one((self.number, self.text, self.date))(scope, deep)
                word = self.one(("is null", "is not null"))
                return Typed(f"({tested.gq} {word})", f"({tested.sql} {word})", "bool")
            case "like":
                text, part = self.text(scope, deep), self.text(scope, 0)
                word, name = self.one((("contains",) * 2, ("starts_with",) * 2, ("ends_with", "suffix")))
                return Typed(f"({text.gq} {word} {part.gq})", f"{name}({text.sql}, {part.sql})", "bool")
            case "same":
                nodes = [each for each in scope if each.kind in ("Staff", "Team")]
                pairs = [(one, other) for one in nodes for other in nodes if one.kind == other.kind]
                if pairs:
                    one, other = self.one(pairs)
                    word, sql = self.one((("=", "="), ("!=", "<>")))
                    return Typed(
                        f"(${one.name} {word} ${other.name})", f"({one.sql('id')} {sql} {other.sql('id')})", "bool"
                    )
            case "block":
                block = self.block(scope)
                if block is not None:
                    return Typed(f"exists {{ {' '.join(block.clauses)} }}", f"exists ({block.sql})", "bool")
            case "member":
                lists = list(self.read(scope, "list"))
                if lists:
                    tags, word = self.one(lists), self.one(("a", "b", "zz"))
                    return Typed(f'({tags.gq} contains "{word}")', f"list_contains({tags.sql}, '{word}')", "bool")
            case _:
                flags = list(self.read(scope, "bool"))
                if flags:
                    flag = self.one(flags)
                    # A variable alone is no clause.
                    return flag if "." in flag.gq else Typed(f"({flag.gq} = true)", f"({flag.sql} = true)", "bool")
        return self.compared(self.number(scope, 0), self.number(scope, 0))

    def compared(self, left: Typed, right: Typed) -> Typed:
        operator = self.one(("=", "!=", "<", "<=", ">", ">="))
        sql = "<>" if operator == "!=" else operator
        return Typed(f"({left.gq} {operator} {right.gq})", f"({left.sql} {sql} {right.sql})", "bool")

    def member(self, scope: list[Variable], depth: int) -> Typed:
        """`in` a list of constants, sometimes with a null."""
        word = self.one(("in", "not in"))
        if self.often(0.5):
            item = self.number(scope, depth)
            items = [str(self.random.randint(0, 3)) for _ in range(self.random.randint(1, 3))]
            shown = list(items)
        else:
            item = self.text(scope, depth)
            words = [self.one(WORDS) for _ in range(self.random.randint(1, 3))]
            items, shown = [f'"{each}"' for each in words], [f"'{each}'" for each in words]
        if self.often(0.25):
            items.append("null")
            shown.append("null")
        return Typed(f"({item.gq} {word} [{', '.join(items)}])", f"({item.sql} {word} ({', '.join(shown)}))", "bool")


def _sql_type(value: float) -> str:
    return "double" if isinstance(value, float) else "bigint"


def _wider(left: Typed, right: Typed) -> str:
    return "float" if "float" in (left.kind, right.kind) else "integer"


def _as(value: Typed, kind: str) -> str:
    return f"{value.sql}::double" if kind == "float" and value.kind == "integer" else value.sql


def _minus(value: Typed) -> str:
    return value.sql if value.gq[0] == "-" else f"(-{value.sql})"
