"""Random clauses: each wraps the relation before it."""

from __future__ import annotations

from dataclasses import replace

from tests.query.generated.expressions import Expressions
from tests.query.generated.tables import PROPERTIES, Relation, Typed, Variable


class Patterns(Expressions):
    """Makes match blocks: nodes, steps, conditions, negations, optional blocks and paths."""

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
                joined = f"src = {source.sql('id')} and dst = {other.sql('id')}"
                return self.extend(relation, [], "", f"exists (select 1 from {pairs} where {joined})")
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
