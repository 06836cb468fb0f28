"""Random queries over the whole language, each with the SQL that asks the same where there is one.

A relation has a column `variable_property` for what each variable has; every clause wraps the relation before it. The SQL is
plain: joins, left joins, correlated subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

T = TypeVar("T")

#: The properties of each kind of variable, by the kind of their values. Those that are numbers have the types of the world.
PROPERTIES: dict[str, dict[str, str]] = {
    "Staff": {
        "handle": "text",
        "level": "number",
        "label": "text",
        "note": "text",
        "born": "date",
        "seen": "datetime",
        "active": "bool",
        "tags": "list",
    },
    "Team": {"code": "text", "size": "number", "label": "text"},
    "Staff|Team": {"label": "text"},
    "Mentors": {"weight": "number", "since": "date"},
    "Likes": {"weight": "number"},
    "Mentors|Likes": {"weight": "number"},
    "MemberOf": {},
}
#: SQL of the columns of each kind, `id` first.
FLOATS = ("F32", "F64")
WORDS = ("s1", "s", "2", "a", "Xy", "")
DATES = ("2020-02-29", "1999-12-31", "2024-06-01")


@dataclass(frozen=True)
class Typed:
    """An expression in both languages; `kind` is text, integer, float, date, datetime or bool."""

    gq: str
    sql: str
    kind: str


@dataclass(frozen=True)
class Variable:
    """A bound variable and the alias of the relation its columns are read from; a value has the kind of it."""

    name: str
    kind: str
    alias: str

    def sql(self, column: str) -> str:
        return f'{self.alias}."{self.name}_{column}"'


@dataclass
class Question:
    """A query in both languages; `sql` is None where SQL has no plain form of it."""

    gq: str
    sql: str | None
    ordered: bool


@dataclass
class Relation:
    """Clauses so far: their text, their SQL and what they bind."""

    clauses: list[str] = field(default_factory=list)
    sql: str = "select 1 as one"
    variables: list[Variable] = field(default_factory=list)
    outer: list[Variable] = field(default_factory=list)
    has_sql: bool = True

    @property
    def scope(self) -> list[Variable]:
        return [*self.variables, *self.outer]


@dataclass
class Generator:
    """Makes questions about worlds whose numbers have these types: `Staff.level`, `Team.size` and `weight`."""

    random: Random
    types: Mapping[str, str]
    _count: int = 0

    # --- names --------------------------------------------------------------------------------------------------------

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, items: Sequence[T]) -> T:
        return self.random.choice(items)

    # --- tables -------------------------------------------------------------------------------------------------------

    def table(self, kind: str) -> str:
        """The rows of a kind of node, as SQL."""
        if kind == "Staff|Team":
            parts = (f"select id, '{name}' as \"@type\", label from {name}" for name in ("Staff", "Team"))
            return f"({' union all '.join(parts)})"
        return f"(select *, '{kind}' as \"@type\" from {kind})"

    def exported(self, variable: Variable, alias: str) -> str:
        """The columns of a table as those of a variable."""
        ends = ["src", "dst"] if variable.kind in ("Mentors", "Likes", "Mentors|Likes", "MemberOf") else []
        columns = ["id", "@type", *ends, *PROPERTIES[variable.kind]]
        return ", ".join(f'{alias}."{column}" as "{variable.name}_{column}"' for column in columns)

    def edges(self, words: tuple[str, ...]) -> str:
        """The edges of some types, with the types of their ends."""
        ends = {"Mentors": "Staff", "Likes": "Staff", "MemberOf": "Team"}
        plain = {
            "Mentors": "weight, since",
            "Likes": "weight, null as since",
            "MemberOf": "null as weight, null as since",
        }
        parts = (
            f"select id, src, dst, '{word}' as \"@type\", '{ends[word]}' as far, {plain[word]} from {word}"
            for word in words
        )
        return f"({' union all '.join(parts)})"

    # --- clauses ------------------------------------------------------------------------------------------------------

    def bind(self, relation: Relation) -> None:
        """`$x: Type`, joined to nothing or by the value of a property."""
        kind = self.one(("Staff", "Team", "Staff|Team"))
        made = Variable(self.new("v"), kind, self.new("t"))
        text, condition = f"${made.name}: {kind}", "true"
        known = [each for each in relation.scope if each.kind in ("Staff", "Team")]
        if known and self.often(0.6):
            text += f" {{ label: ${(other := self.one(known)).name}.label }}"
            condition = f"{made.alias}.label = {other.sql('label')}"
        relation.clauses.append(text)
        self.extend(relation, [made], f"{self.table(kind)} {made.alias}", condition)

    def step(self, relation: Relation) -> None:
        """A traversal from a member of the staff that is bound."""
        sources = [each for each in relation.scope if each.kind == "Staff"]
        if not sources:
            return self.bind(relation)
        source = self.one(sources)
        form = self.one(("pairs", "pairs", "edge", "either", "edges", "team", "any", "hops", "closing", "self"))
        target = Variable(self.new("v"), "Staff", self.new("t"))
        edge = self.new("e")
        match form:
            case "edge":
                word = self.one(("Mentors", "Likes"))
                return self._edge_step(relation, source, target, (word,))
            case "edges":
                return self._edge_step(relation, source, target, ("Mentors", "Likes"))
            case "team":
                target = replace(target, kind="Team")
                text, pairs = "memberOf", "(select distinct src, dst from MemberOf)"
            case "any":
                target = replace(target, kind="Staff|Team")
                relation.clauses.append(f"${source.name} * ${target.name}")
                pairs = f"(select distinct src, dst, far from {self.edges(('Mentors', 'Likes', 'MemberOf'))})"
                condition = f'{edge}.src = {source.sql("id")} and {target.alias}."@type" = {edge}.far'
                condition += f" and {target.alias}.id = {edge}.dst"
                tables = f"{pairs} {edge}, {self.table(target.kind)} {target.alias}"
                return self.extend(relation, [target], tables, condition)
            case "hops":
                least, most = self.one(((0, 1), (0, 2), (1, 2), (2, 3), (1, None), (0, None), (2, None)))
                text = f"mentors{{{least},{'' if most is None else most}}}"
                bound = "true" if most is None else f"d <= {most}"
                loops = "union select src, dst from Mentors where src = dst" if least == 1 else ""
                pairs = f"(select src, dst from distances where d >= {least} and {bound} {loops})"
            case "either":
                text = "<mentors>"
                pairs = "(select src, dst from Mentors union select dst, src from Mentors)"
            case "self":
                relation.clauses.append(f"${source.name} mentors ${source.name}")
                condition = f"exists (select 1 from Mentors where src = dst and src = {source.sql('id')})"
                return self.extend(relation, [], "", condition)
            case "closing" if len(sources) > 1:
                other = self.one(sources)
                relation.clauses.append(f"${source.name} mentors|likes ${other.name}")
                pairs = self.edges(("Mentors", "Likes"))
                ends = f"src = {source.sql('id')} and dst = {other.sql('id')}"
                return self.extend(relation, [], "", f"exists (select 1 from {pairs} where {ends})")
            case _:
                text, words = self.one((("mentors", ("Mentors",)), ("mentors|likes", ("Mentors", "Likes"))))
                pairs = f"(select distinct src, dst from {self.edges(words)})"
        ends = ("src", "dst")
        if form == "pairs" and self.often(0.3):
            relation.clauses.append(f"${target.name} {text} ${source.name}")
            ends = ("dst", "src")
        else:
            relation.clauses.append(f"${source.name} {text} ${target.name}")
        condition = f"{edge}.{ends[0]} = {source.sql('id')} and {target.alias}.id = {edge}.{ends[1]}"
        return self.extend(relation, [target], f"{pairs} {edge}, {self.table(target.kind)} {target.alias}", condition)

    def _edge_step(self, relation: Relation, source: Variable, target: Variable, words: tuple[str, ...]) -> None:
        bound = Variable(self.new("e"), "|".join(words), self.new("t"))
        text = "|".join(word[0].lower() + word[1:] for word in words)
        relation.clauses.append(f"${source.name} ${bound.name}:{text} ${target.name}")
        condition = f"{bound.alias}.src = {source.sql('id')} and {target.alias}.id = {bound.alias}.dst"
        tables = f"{self.edges(words)} {bound.alias}, {self.table('Staff')} {target.alias}"
        self.extend(relation, [bound, target], tables, condition)

    def extend(self, relation: Relation, made: list[Variable], tables: str, condition: str) -> None:
        """Join tables to a relation under a condition; what was and what is made is read from the result."""
        inner = relation.variables[0].alias if relation.variables else self.new("r")
        chosen = [f"{inner}.*", *(self.exported(variable, variable.alias) for variable in made)]
        source = f"({relation.sql}) {inner}" + (f", {tables}" if tables else "")
        relation.sql = f"select {', '.join(chosen)} from {source} where {condition}"
        alias = self.new("r")
        relation.variables = [replace(variable, alias=alias) for variable in (*relation.variables, *made)]

    def condition(self, relation: Relation) -> None:
        """A condition over what is bound."""
        found = self.truth(relation.scope, 2)
        relation.clauses.append(f"({found.gq})")
        self.extend(relation, [], "", found.sql)

    def negation(self, relation: Relation) -> None:
        """`not { … }`, or `exists { … }`."""
        inner = self.block(relation.scope)
        if inner is None:
            return
        word = self.one(("not", "exists", "not exists"))
        relation.clauses.append(f"{word} {{ {' '.join(inner.clauses)} }}")
        self.extend(relation, [], "", f"{'not ' if word != 'exists' else ''}exists ({inner.sql})")

    def optional(self, relation: Relation, depth: int = 1) -> None:
        """`optional { … }`, sometimes with another one inside."""
        inner = self.block(relation.scope)
        if inner is None:
            return
        if depth and self.often(0.3):
            self.optional(inner, depth - 1)
        relation.clauses.append(f"optional {{ {' '.join(inner.clauses)} }}")
        row, block, alias = relation.variables[0].alias, self.new("o"), self.new("r")
        chosen = [f"{row}.*"]
        for variable in inner.variables:
            columns = ["id", "@type", *PROPERTIES[variable.kind]]
            chosen += [f'{block}."{variable.name}_{column}"' for column in columns]
        relation.sql = (
            f"select {', '.join(chosen)} from ({relation.sql}) {row} left join lateral ({inner.sql}) {block} on true"
        )
        relation.variables = [replace(each, alias=alias) for each in (*relation.variables, *inner.variables)]

    def block(self, scope: list[Variable]) -> Relation | None:
        """A pattern that speaks about a variable around it; None when there is none that it could."""
        if not any(each.kind == "Staff" for each in scope):
            return None
        inner = Relation(outer=scope)
        before = len(inner.variables)
        self.step(inner)
        if len(inner.variables) == before:
            return None
        if self.often(0.4):
            self.condition(inner)
        if self.often(0.2):
            self.step(inner)
        return inner

    # --- expressions --------------------------------------------------------------------------------------------------

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
                inner = self.block(scope)
                if inner is not None:
                    return Typed(f"exists {{ {' '.join(inner.clauses)} }}", f"exists ({inner.sql})", "bool")
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

    # --- queries ------------------------------------------------------------------------------------------------------

    def matched(self, relation: Relation) -> None:
        """Some clauses more."""
        for _ in range(self.random.randint(0, 4)):
            make = self.one(
                (self.step, self.step, self.condition, self.condition, self.negation, self.optional, self.bind)
            )
            make(relation)

    def start(self) -> Relation:
        relation = Relation()
        first = Variable("a", "Staff", self.new("t"))
        relation.clauses.append("$a: Staff")
        self.extend(relation, [first], f"{self.table('Staff')} {first.alias}", "true")
        return relation

    def path(self, relation: Relation) -> Typed | None:
        """The shortest path between two that are bound; SQL has no plain form of it."""
        staff = [each for each in relation.variables if each.kind == "Staff"]
        if not staff:
            return None
        source, target = self.one(staff), self.one(staff)
        name = self.new("p")
        word, bounds = (
            self.one(("shortest", "shortest", "all_shortest")),
            self.one(("{1,}", "{0,}", "{1,2}", "{2,3}", "{0,3}")),
        )
        step = self.one(("mentors", "<mentors>", "likes"))
        by = ""
        if word == "shortest" and bounds in ("{1,}", "{1,2}") and self.often(0.5):
            by = " by $w.weight"
            step = f"$w:{step}"
        relation.clauses.append(f"${name} = {word}(${source.name} {step}{bounds} ${target.name}{by})")
        relation.has_sql = False
        part = self.one((("length", "integer"), ("nodes", "list"), ("edges", "list")))
        return Typed(f"{part[0]}(${name})", "null", part[1])

    def question(self) -> Question:
        """A query, sometimes with a `with` before its last part, sometimes a union."""
        if self.often(0.12):
            return self.union()
        relation = self.start()
        self.matched(relation)
        before = ""
        if self.often(0.2):
            before, relation = self.with_part(relation)
            self.matched(relation)
        shown = self.path(relation) if self.often(0.1) else None
        return self.returned(before, relation, shown)

    def with_part(self, relation: Relation) -> tuple[str, Relation]:
        """`with { … }`, as text, and the relation that goes on from it."""
        values = self.values(relation, self.random.randint(1, 2))
        text = [f"{value.gq} as {name}" for name, value in values]
        sql = [f'{value.sql} as "{name}"' for name, value in values]
        kept = [each for each in relation.variables if each.kind in ("Staff", "Team")][:1] if self.often(0.7) else []
        grouped = [value.sql for _, value in values]
        text += [f"${each.name}" for each in kept]
        for each in kept:
            columns = [each.sql(column) for column in ("id", "@type", *PROPERTIES[each.kind])]
            names = ("id", "@type", *PROPERTIES[each.kind])
            sql += [f'{column} as "{each.name}_{name}"' for column, name in zip(columns, names, strict=True)]
            grouped += columns
        alias, inner = self.new("r"), relation.variables[0].alias
        made = [Variable(name, value.kind, alias) for name, value in values]
        group = ""
        if self.often(0.6):
            counted = self.aggregate(relation.variables)
            name = self.new("n")
            text.append(f"{counted.gq} as {name}")
            sql.append(f'{counted.sql} as "{name}"')
            made.append(Variable(name, counted.kind, alias))
            group = f" group by {', '.join(grouped)}"
        clauses = " ".join(relation.clauses)
        found = Relation([], f"select {', '.join(sql)} from ({relation.sql}) {inner}{group}")
        found.variables = [*made, *(replace(each, alias=alias) for each in kept)]
        before = f"match {{ {clauses} }} with {{ {', '.join(text)} }}"
        if self.often(0.4):
            asked = self.truth(found.variables, 1)
            before += f" where {asked.gq}"
            self.extend(found, [], "", asked.sql)
        return before + " ", found

    def values(self, relation: Relation, count: int) -> list[tuple[str, Typed]]:
        makes = (self.number, self.text, self.date, self.truth)
        return [(self.new("c"), self.one(makes)(relation.scope, 2)) for _ in range(count)]

    def aggregate(self, scope: list[Variable]) -> Typed:
        distinct = self.one(("", "", "distinct "))
        match self.one(("rows", "count", "number", "number", "least", "collect", "inside")):
            case "rows":
                return Typed("count(*)", "count(*)", "integer")
            case "count":
                value = self.one((self.number, self.text, self.date))(scope, 1)
                return Typed(f"count({distinct}{value.gq})", f"count({distinct}{value.sql})", "integer")
            case "number":
                value = self.number(scope, 1)
                name, sql = self.one((("sum",) * 2, ("avg",) * 2, ("median",) * 2, ("stddev", "stddev_samp")))
                if name == "sum":
                    cast = "bigint" if value.kind == "integer" else "double"
                    return Typed(f"sum({distinct}{value.gq})", f"sum({distinct}{value.sql})::{cast}", value.kind)
                return Typed(f"{name}({value.gq})", f"{sql}({value.sql}::double)", "float")
            case "least":
                value = self.one((self.number, self.text, self.date))(scope, 1)
                name = self.one(("min", "max"))
                return Typed(f"{name}({value.gq})", f"{name}({value.sql})", value.kind)
            case "collect":
                value = self.one((self.text, self.date))(scope, 1)
                sql = f"coalesce(list_sort(list({distinct}{value.sql}) filter ({value.sql} is not null)), [])"
                kind = "list" if value.kind == "text" else "dates"
                return Typed(f"sort_list(collect({distinct}{value.gq}))", sql, kind)
            case _:
                value = self.number(scope, 1)
                sql = f"(max({value.sql})::double - min({value.sql})::double + count(*)::double)"
                return Typed(f"(max({value.gq}) - min({value.gq}) + count(*) + 0.0)", sql, "float")

    def returned(self, before: str, relation: Relation, extra: Typed | None) -> Question:
        values = self.values(relation, self.random.randint(1, 3))
        if extra is not None:
            values.append((self.new("c"), extra))
        kind = self.one(("plain", "plain", "distinct", "groups", "whole"))
        inner = relation.variables[0].alias
        group = ""
        if kind == "whole":
            values = []
        if kind == "groups":
            values = [value for value in values if "$" in value[1].gq and value[1].kind not in ("list", "dates")]
            group = f" group by {', '.join(value.sql for _, value in values)}" if values else ""
        if kind in ("groups", "whole"):
            values += [(self.new("g"), self.aggregate(relation.variables)) for _ in range(self.random.randint(1, 2))]
        shown = ", ".join(f"{value.gq} as {name}" for name, value in values)
        selected = ", ".join(f'{value.sql} as "{name}"' for name, value in values)
        word = "distinct " if kind == "distinct" else ""
        gq = f"{before}match {{ {' '.join(relation.clauses)} }} " if relation.clauses else before
        gq += f"return {word}{{ {shown} }}"
        sql = f"select {word}{selected} from ({relation.sql}) {inner}{group}"
        if self.often(0.2):
            columns = [Variable(name, value.kind, "h") for name, value in values]
            asked = self.truth([each for each in columns if each.kind in ("integer", "float", "text", "date")], 1)
            if "$" in asked.gq and "{" not in asked.gq:
                gq += f" having {asked.gq}"
                sql = f"select * from ({sql}) h where {asked.sql}"
        gq, sql, ordered = self.ordered(gq, sql, [(name, value.kind) for name, value in values])
        return Question(f"query q() {{ {gq} }}", sql if relation.has_sql else None, ordered)

    def ordered(self, gq: str, sql: str, columns: list[tuple[str, str]]) -> tuple[str, str, bool]:
        """Ordered by every column, so that no two rows can change places; the first rows of it, or some."""
        if self.often(0.5) or any(kind in ("list", "dates") for _, kind in columns):
            return gq, sql, False
        keys, sorts = [], []
        for name, _ in columns:
            direction, nulls = self.one(("asc", "desc")), self.one(("", " nulls first", " nulls last"))
            given = nulls or (" nulls first" if direction == "asc" else " nulls last")
            keys.append(f"{name} {direction}{nulls}")
            sorts.append(f'"{name}" {direction}{given}')
        gq += f" order {{ {', '.join(keys)} }}"
        sql = f"select * from ({sql}) order by {', '.join(sorts)}"
        if self.often(0.6):
            limit, offset = self.random.randint(0, 8), self.one((0, 0, 1, 3))
            gq += f" limit {limit}" + (f" offset {offset}" if offset else "")
            sql += f" limit {limit} offset {offset}"
        return gq, sql, True

    def union(self) -> Question:
        """Two parts with equal columns."""
        keeps = self.one((" all", ""))
        parts, sides = [], []
        names = [self.new("c") for _ in range(self.random.randint(1, 2))]
        makes = [self.one((self.text, self.date, self.truth)) for _ in names]
        for _ in range(2):
            relation = self.start()
            self.matched(relation)
            values = [make(relation.scope, 1) for make in makes]
            shown = ", ".join(f"{value.gq} as {name}" for name, value in zip(names, values, strict=True))
            selected = ", ".join(f'{value.sql} as "{name}"' for name, value in zip(names, values, strict=True))
            parts.append(f"match {{ {' '.join(relation.clauses)} }} return {{ {shown} }}")
            sides.append(f"select {selected} from ({relation.sql}) {relation.variables[0].alias}")
        gq = f"{parts[0]} union{keeps} {{ {parts[1]} }}"
        sql = f"({sides[0]}) union{keeps} ({sides[1]})"
        gq, sql, ordered = self.ordered(gq, sql, [(name, "value") for name in names])
        return Question(f"query q() {{ {gq} }}", sql, ordered)


def _sql_type(value: float) -> str:
    return "double" if isinstance(value, float) else "bigint"


def _wider(left: Typed, right: Typed) -> str:
    return "float" if "float" in (left.kind, right.kind) else "integer"


def _as(value: Typed, kind: str) -> str:
    return f"{value.sql}::double" if kind == "float" and value.kind == "integer" else value.sql


def _minus(value: Typed) -> str:
    return value.sql if value.gq[0] == "-" else f"(-{value.sql})"
