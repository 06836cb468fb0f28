"""The same questions for OmniGraph, Kuzu and DuckDB."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One question in three languages. The answers are compared as lists of rows."""

    name: str
    gq: str
    cypher: str
    sql: str


_TO_COUNTRY = "$p livesIn $c $c cityIn $s $s stateIn $n"
_CYPHER_COUNTRY = "(p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(n:Country)"
_SQL_COUNTRY = """from Person p join LivesIn l on l.src = p.key join CityIn ci on ci.src = l.dst
  join StateIn st on st.src = ci.dst"""

QUESTIONS = (
    Question(
        "1 top followed",
        """query q() { match { $f: Person $f follows $p } return { $p.key, count($f) as n }
           order { n desc, $p.key asc } limit 3 }""",
        """match (f:Person)-[:Follows]->(p:Person) return p.key, count(f) as n order by n desc, p.key limit 3""",
        """select dst, count(*) n from Follows group by dst order by n desc, dst limit 3""",
    ),
    Question(
        "2 city of the most followed",
        """query q() { match { $f: Person $f follows $p $p livesIn $c } return { $p.key, $c.key, count($f) as n }
           order { n desc, $p.key asc } limit 1 }""",
        """match (f:Person)-[:Follows]->(p:Person) with p, count(f) as n order by n desc, p.key limit 1
           match (p)-[:LivesIn]->(c:City) return p.key, c.key, n""",
        """select t.dst, l.dst, n from (select dst, count(*) n from Follows group by dst order by n desc, dst limit 1) t
           join LivesIn l on l.src = t.dst""",
    ),
    Question(
        "3 youngest cities of a country",
        f"""query q() {{ match {{ $p: Person {_TO_COUNTRY} $n: Country {{ key: "n1" }} }}
            return {{ $c.key, avg($p.age) as a }} order {{ a asc, $c.key asc }} limit 5 }}""",
        f"""match {_CYPHER_COUNTRY} where n.key = 'n1' return c.key, avg(p.age) as a order by a, c.key limit 5""",
        f"""select l.dst, avg(p.age) a {_SQL_COUNTRY} where st.dst = 'n1' group by l.dst order by a, l.dst limit 5""",
    ),
    Question(
        "4 persons of an age per country",
        f"""query q() {{ match {{ $p: Person {_TO_COUNTRY} $p.age >= 30 $p.age <= 40 }}
            return {{ $n.key, count($p) as k }} order {{ k desc, $n.key asc }} limit 3 }}""",
        f"""match {_CYPHER_COUNTRY} where p.age >= 30 and p.age <= 40
            return n.key, count(p) as k order by k desc, n.key limit 3""",
        f"""select st.dst, count(*) k {_SQL_COUNTRY} where p.age between 30 and 40
            group by st.dst order by k desc, st.dst limit 3""",
    ),
    Question(
        "5 filter, interest and city",
        """query q() { match { $p: Person { gender: "male" } $p hasInterest $i $i: Interest { key: "i5" }
           $p livesIn $c $c: City { key: "c10" } } return { count($p) as n } }""",
        """match (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
           where p.gender = 'male' and i.key = 'i5' and c.key = 'c10' return count(p)""",
        """select count(*) from Person p join HasInterest h on h.src = p.key join LivesIn l on l.src = p.key
           where p.gender = 'male' and h.dst = 'i5' and l.dst = 'c10'""",
    ),
    Question(
        "6 an interest by city",
        """query q() { match { $p: Person { gender: "female" } $p hasInterest $i $i: Interest { key: "i7" }
           $p livesIn $c } return { $c.key, count($p) as n } order { n desc, $c.key asc } limit 5 }""",
        """match (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
           where p.gender = 'female' and i.key = 'i7' return c.key, count(p) as n order by n desc, c.key limit 5""",
        """select l.dst, count(*) n from Person p join HasInterest h on h.src = p.key join LivesIn l on l.src = p.key
           where p.gender = 'female' and h.dst = 'i7' group by l.dst order by n desc, l.dst limit 5""",
    ),
    Question(
        "7 state of an age band and interest",
        """query q() { match { $p: Person $p.age >= 23 $p.age <= 30 $p hasInterest $i $i: Interest { key: "i9" }
           $p livesIn $c $c cityIn $s } return { $s.key, count($p) as n } order { n desc, $s.key asc } limit 1 }""",
        """match (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)
           where p.age >= 23 and p.age <= 30 and i.key = 'i9'
           return s.key, count(p) as n order by n desc, s.key limit 1""",
        """select ci.dst, count(*) n from Person p join HasInterest h on h.src = p.key join LivesIn l on l.src = p.key
           join CityIn ci on ci.src = l.dst where p.age between 23 and 30 and h.dst = 'i9'
           group by ci.dst order by n desc, ci.dst limit 1""",
    ),
    Question(
        "8 two-hop paths",
        """query q() { match { $a: Person $a follows $b $b follows $c } return { count($c) as n } }""",
        """match (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) return count(*)""",
        """select count(*) from Follows x join Follows y on y.src = x.dst""",
    ),
    Question(
        "9 two-hop paths, filtered",
        """query q() { match { $a: Person $a follows $b $b follows $c $b.age < 50 $c.age > 25 }
           return { count($c) as n } }""",
        """match (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) where b.age < 50 and c.age > 25 return count(*)""",
        """select count(*) from Follows x join Person b on b.key = x.dst join Follows y on y.src = x.dst
           join Person c on c.key = y.dst where b.age < 50 and c.age > 25""",
    ),
)
