"""Random queries over the whole language, each with the SQL that asks the same where there is one.

A relation has a column `variable_property` for what each variable has; every clause wraps the relation before it. The SQL is
plain: joins, left joins, correlated subqueries.

`tables` are the worlds as SQL sees them, `expressions` make values and conditions, `patterns` match blocks; here they become
questions.
"""

from __future__ import annotations

from dataclasses import replace

from tests.query.generated.patterns import Patterns
from tests.query.generated.tables import PROPERTIES, Question, Relation, Typed, Variable

__all__ = ["Generator", "Question", "Typed"]


class Generator(Patterns):
    """Makes questions about worlds whose numbers have these types: `Staff.level`, `Team.size` and `weight`."""

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
