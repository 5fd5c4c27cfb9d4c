"""Queries that nobody has thought of: put together at random from scans, joins, groups, windows, set operations and the rest.

Each is determined: what is ordered is ordered by all columns, and what is summed is exact. The same seed gives the same text.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

# Columns of the star schema. Those of one domain can be compared; ``n`` are whole numbers, ``a`` decimals.
TABLES: dict[str, list[tuple[str, str, str]]] = {
    "sales": [("sale_id", "n", "sale"), ("day", "d", "day"), ("ts", "t", "ts"), ("cust_id", "n", "cust"), ("prod_id", "n", "prod"), ("store_id", "n", "store"), ("qty", "n", "qty"), ("amount", "a", "money"), ("status", "s", "status")],
    "returns": [("return_id", "n", "return"), ("sale_id", "n", "sale"), ("day", "d", "day"), ("qty", "n", "qty")],
    "customer": [("cust_id", "n", "cust"), ("name", "s", "name"), ("segment", "s", "segment"), ("city", "s", "city")],
    "product": [("prod_id", "n", "prod"), ("category", "s", "category"), ("list_price", "a", "money")],
    "store": [("store_id", "n", "store"), ("region", "s", "region"), ("country", "s", "country")],
}  # fmt: skip
LITERALS = {
    "n": ["0", "2", "5", "11"], "d": ["date'2026-01-03'", "date'2026-01-08'"], "a": ["10.25", "0", "50"], "s": ["'new'", "'r1'", "'AT'", "''"],
    "t": ["timestamp'2026-01-04 00:00:00'"],
}  # fmt: skip
HOW = ["join", "left join", "right join", "full outer join", "left semi join", "left anti join"]


@dataclass(frozen=True)
class Column:
    """A column of a query: ``kind`` decides what can be done with it, ``domain`` what it can be compared with."""

    name: str
    kind: str
    domain: str


@dataclass(frozen=True)
class Query:
    """A query, and its columns."""

    text: str
    columns: tuple[Column, ...]


def composed(seed: int, steps: int = 3) -> str:
    """The text of a query that a seed gives, of up to so many operators over one another, beside those of its inputs."""
    composer = _Composer(random.Random(seed))
    query = composer.relation(1)
    for _ in range(composer.pick.randint(1, steps)):
        query = composer.over(query)
    return query.text + (" order by 1" if composer.pick.random() < 0.08 else "")


class _Composer:
    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self._named = 0
        self._joins = 0

    def relation(self, depth: int) -> Query:
        """A table, or something over one."""
        weights = [8, 2, 2, 2, 2]
        table = self.pick.choices(list(TABLES), weights)[0]
        chosen = [one for one in TABLES[table] if self.pick.random() < 0.75] or TABLES[table][:2]
        columns = tuple(Column(self._name(), kind, domain) for _, kind, domain in chosen)
        names = ", ".join(f"{own} {column.name}" for (own, _, _), column in zip(chosen, columns, strict=True))
        query = Query(f"select {names} from {table}", columns)
        return self.over(query) if depth and self.pick.random() < 0.5 else query

    def over(self, query: Query) -> Query:
        """One more operator over a query."""
        ways: list[tuple[int, Callable[[Query], Query]]] = [
            (3, self._filtered), (3, self._projected), (6, self._joined), (5, self._grouped), (2, self._distinct),
            (4, self._windowed), (4, self._together), (1, self._exploded), (2, self._in_subquery), (1, self._rolled_up),
            (2, self._with_itself), (1, self._stacked), (1, self._latest), (1, self._pivoted),
        ]  # fmt: skip
        return self.pick.choices([way for _, way in ways], [weight for weight, _ in ways])[0](query)

    # -- operators -----------------------------------------------------------------------------------------------

    def _filtered(self, query: Query) -> Query:
        return Query(f"{self._from(query)} where {self._predicate(query)}", query.columns)

    def _predicate(self, query: Query) -> str:
        one = self.pick.choice(query.columns)
        literal = self.pick.choice(LITERALS[one.kind])
        plain = [
            f"{one.name} > {literal}", f"{one.name} <= {literal}", f"{one.name} is not null", f"not ({one.name} <=> {literal})",
            f"({one.name} = {literal} or {one.name} is null)",
        ]  # fmt: skip
        if one.kind == "n":
            plain += [f"{one.name} % 3 <> 1", f"{one.name} not in (1, 4, 7)"]
        return self.pick.choice(plain)

    def _projected(self, query: Query) -> Query:
        kept = [one for one in query.columns if self.pick.random() < 0.7] or [query.columns[0]]
        parts, columns = [], []
        for one in kept:
            text, domain = self._expression(one)
            columns.append(Column(self._name(), one.kind, domain))
            parts.append(f"{text} {columns[-1].name}")
        return Query(f"select {', '.join(parts)} from ({query.text}) {self._name('q')}", tuple(columns))

    def _expression(self, one: Column) -> tuple[str, str]:
        if self.pick.random() < 0.6:
            return one.name, one.domain
        literal = self.pick.choice(LITERALS[one.kind])
        made = [f"coalesce({one.name}, {literal})", f"nullif({one.name}, {literal})", f"if({one.name} > {literal}, {one.name}, null)"]  # fmt: skip
        made += {
            "n": [f"{one.name} + 1", f"{one.name} % 4", f"-{one.name}"],
            "d": [f"date_add({one.name}, 1)", f"cast(date_trunc('week', {one.name}) as date)"],
            "s": [f"upper({one.name})", f"substr({one.name}, 1, 2)", f"concat({one.name}, '-')"],
            "t": [f"date_trunc('hour', {one.name})"],
        }.get(one.kind, [])
        return self.pick.choice(made), one.domain

    def _joined(self, query: Query) -> Query:
        if self._joins >= 3:
            return self._filtered(query)
        self._joins += 1
        for _ in range(6):
            other = self.relation(1 if self.pick.random() < 0.4 else 0)
            pairs = [
                (a, b)
                for a in query.columns
                for b in other.columns
                if (a.domain, a.kind) == (b.domain, b.kind)
            ]
            if pairs:
                return self._join(query, other, pairs)
        return self._filtered(query)

    def _join(self, query: Query, other: Query, pairs: list[tuple[Column, Column]]) -> Query:
        one, same = self.pick.choice(pairs)
        how = self.pick.choice([*HOW, "join", "left join"])
        parts = [f"{one.name} {self.pick.choice(['=', '=', '=', '<=>'])} {same.name}"]
        for a, b in self.pick.sample(pairs, min(len(pairs), self.pick.choice([0, 0, 1]))):
            parts.append(f"{a.name} {self.pick.choice(['=', '<', '>='])} {b.name}")
        if self.pick.random() < 0.25:
            parts.append(self._predicate(self.pick.choice([query, other])))
        columns = (
            query.columns if how.endswith(("semi join", "anti join")) else (*query.columns, *other.columns)
        )
        sides = [(query.text, self._name("q")), (other.text, self._name("q"))]
        text = f"({sides[0][0]}) {sides[0][1]} {how} ({sides[1][0]}) {sides[1][1]} on {' and '.join(parts)}"
        kept = tuple(one for one in columns if self.pick.random() < 0.8) or columns[:1]
        return Query(f"select {', '.join(one.name for one in kept)} from {text}", kept)

    def _grouped(self, query: Query) -> Query:
        keys = self.pick.sample(query.columns, min(len(query.columns), self.pick.choice([1, 1, 2, 3])))
        shown = [one for one in keys if self.pick.random() < 0.9]
        parts = [f"{one.name} {self._name()}" for one in shown]
        columns = [
            Column(part.rpartition(" ")[2], one.kind, one.domain)
            for part, one in zip(parts, shown, strict=True)
        ]
        for text, kind in self._aggregates(query):
            columns.append(Column(self._name(), kind, "made"))
            parts.append(f"{text} {columns[-1].name}")
        having = (
            f" having {self.pick.choice(self._aggregates(query, plain=True))[0]} > 2"
            if self.pick.random() < 0.25
            else ""
        )
        by = ", ".join(one.name for one in keys)
        return Query(
            f"select {', '.join(parts)} from ({query.text}) {self._name('q')} group by {by}{having}",
            tuple(columns),
        )

    def _aggregates(self, query: Query, *, plain: bool = False) -> list[tuple[str, str]]:
        one, other = self.pick.choice(query.columns), self.pick.choice(query.columns)
        known = [("count(*)", "n"), (f"count({one.name})", "n"), (f"count(distinct {one.name})", "n")]
        if not plain:
            known += [
                (f"min({one.name})", one.kind),
                (f"max({one.name})", one.kind),
                (f"count_if({other.name} is null)", "n"),
                (f"count(distinct {one.name}, {other.name})", "n"),
                (f"size(collect_set({one.name}))", "n"),
                (f"count(*) filter (where {self._predicate(query)})", "n"),
            ]
            numbers = [
                column for column in query.columns if column.kind in "na" and column.domain not in ("made",)
            ]
            if numbers:
                known += [
                    (f"sum({numbers[0].name})", "n" if numbers[0].kind == "n" else "a"),
                    (f"cast(avg({numbers[-1].name}) as decimal(20,4))", "a"),
                ]
            return self.pick.sample(known, self.pick.choice([1, 2, 3]))
        return [self.pick.choice(known)]

    def _distinct(self, query: Query) -> Query:
        kept = tuple(one for one in query.columns if self.pick.random() < 0.6) or query.columns[:1]
        names = ", ".join(one.name for one in kept)
        return Query(f"select distinct {names} from ({query.text}) {self._name('q')}", kept)

    def _windowed(self, query: Query) -> Query:
        keys = self.pick.sample(query.columns, min(len(query.columns), self.pick.choice([1, 1, 2])))
        by = ", ".join(one.name for one in keys)
        order = ", ".join(
            f"{one.name}{self.pick.choice(['', ' desc', ' nulls last'])}" for one in query.columns
        )
        one = self.pick.choice(query.columns)
        number = next((c for c in query.columns if c.kind == "n" and c.domain != "made"), None)
        made = [
            (f"row_number() over (partition by {by} order by {order})", "n"), (f"rank() over (partition by {by} order by {one.name})", "n"),
            (f"lag({one.name}) over (partition by {by} order by {order})", one.kind), (f"count(*) over (partition by {by})", "n"),
            (f"first_value({one.name}) over (partition by {by} order by {order})", one.kind), (f"max({one.name}) over (partition by {by} order by {order} rows between 2 preceding and 1 following)", one.kind),
        ]  # fmt: skip
        if number is not None:
            made.append(
                (
                    f"count(*) over (partition by {by} order by {number.name} range between 2 preceding and current row)",
                    "n",
                )
            )
            made.append((f"sum({number.name}) over (partition by {by} order by {order})", "n"))
        columns, parts = list(query.columns), [c.name for c in query.columns]
        for text, kind in self.pick.sample(made, self.pick.choice([1, 1, 2])):
            columns.append(Column(self._name(), kind, "made"))
            parts.append(f"{text} {columns[-1].name}")
        text = f"select {', '.join(parts)} from ({query.text}) {self._name('q')}"
        if self.pick.random() < 0.4 and columns[-1].kind == "n":
            text = f"select * from ({text}) {self._name('q')} where {columns[-1].name} {self.pick.choice(['= 1', '< 3', '% 2 = 0'])}"
        return Query(text, tuple(columns))

    def _latest(self, query: Query) -> Query:
        key, *rest = self.pick.sample(query.columns, len(query.columns))
        if not rest:
            return self._distinct(query)
        order = ", ".join(one.name for one in rest)
        columns = (
            Column(self._name(), key.kind, key.domain),
            Column(self._name(), rest[0].kind, rest[0].domain),
        )
        picked = f"max_by({rest[0].name}, struct({order}))"
        return Query(f"select {key.name} {columns[0].name}, {picked} {columns[1].name} from ({query.text}) {self._name('q')} group by {key.name}", columns)  # fmt: skip

    def _together(self, query: Query) -> Query:
        how = self.pick.choice(
            ["union all", "union all", "union", "intersect", "intersect all", "except", "except all"]
        )
        wanted = self.pick.sample(query.columns, min(len(query.columns), self.pick.choice([1, 2, 3])))
        for _ in range(8):
            other = self.relation(1 if self.pick.random() < 0.4 else 0)
            # Spark fails at INTERSECT ALL and EXCEPT ALL of a query that has a column twice.
            found: list[Column] = []
            for one in wanted:
                same = [b for b in other.columns if b.kind == one.kind and b not in found]
                found += [self.pick.choice(same)] if same else []
            if len(found) == len(wanted):
                left = f"select {', '.join(one.name for one in wanted)} from ({query.text}) {self._name('q')}"
                right = f"select {', '.join(one.name for one in found)} from ({other.text}) {self._name('q')}"
                return Query(f"select * from (({left}) {how} ({right})) {self._name('q')}", tuple(wanted))
        return self._distinct(query)

    def _exploded(self, query: Query) -> Query:
        numbers = [one for one in query.columns if one.kind == "n"]
        if not numbers:
            return self._filtered(query)
        column = Column(self._name(), "n", "made")
        listed = ", ".join(one.name for one in numbers[:3])
        lateral = f"lateral view {self.pick.choice(['', 'outer '])}explode(array({listed})) {self._name('e')} as {column.name}"
        return Query(f"{self._from(query)} {lateral}", (*query.columns, column))

    def _stacked(self, query: Query) -> Query:
        numbers = [one for one in query.columns if one.kind == "n"]
        if len(numbers) < 2:
            return self._projected(query)
        name, value = Column(self._name(), "s", "made"), Column(self._name(), "n", "made")
        rest = [one for one in query.columns if one not in numbers[:2]]
        source = ", ".join(
            [*(one.name for one in rest), *(f"cast({one.name} as bigint) {one.name}" for one in numbers[:2])]
        )
        if self.pick.random() < 0.5:
            text = f"select * from (select {source} from ({query.text}) {self._name('q')}) unpivot ({value.name} for {name.name} in ({numbers[0].name}, {numbers[1].name}))"
        else:
            kept = "".join(f"{one.name}, " for one in rest)
            text = f"select {kept}stack(2, 'x', {numbers[0].name}, 'y', {numbers[1].name}) as ({name.name}, {value.name}) from (select {source} from ({query.text}) {self._name('q')})"
        return Query(text, (*rest, name, value))

    def _pivoted(self, query: Query) -> Query:
        numbers = [one for one in query.columns if one.kind == "n" and one.domain != "made"]
        if len(numbers) < 2 or len(query.columns) < 3:
            return self._grouped(query)
        over, summed = numbers[0], numbers[1]
        key = next(one for one in query.columns if one not in (over, summed))
        columns = (key, Column(self._name(), "n", "made"), Column(self._name(), "n", "made"))
        source = f"select {key.name}, {over.name}, {summed.name} from ({query.text}) {self._name('q')}"
        return Query(f"select * from ({source}) pivot (count({summed.name}) for {over.name} in (2 as {columns[1].name}, 5 as {columns[2].name}))", columns)  # fmt: skip

    def _rolled_up(self, query: Query) -> Query:
        keys = self.pick.sample(query.columns, min(len(query.columns), 2))
        by = ", ".join(one.name for one in keys)
        how = self.pick.choice(
            [
                f"rollup({by})",
                f"cube({by})",
                f"grouping sets (({by}), ({keys[0].name}))",
                f"grouping sets (({by}), ({keys[-1].name}), ())",
            ]
        )
        columns = [Column(self._name(), one.kind, one.domain) for one in keys]
        shown = [f"{one.name} {column.name}" for one, column in zip(keys, columns, strict=True)]
        if self.pick.random() < 0.5:
            columns.append(Column(self._name(), "n", "made"))
            shown.append(f"grouping_id() {columns[-1].name}")
        columns.append(Column(self._name(), "n", "made"))
        return Query(f"select {', '.join(shown)}, count(*) {columns[-1].name} from ({query.text}) {self._name('q')} group by {how}", tuple(columns))  # fmt: skip

    def _in_subquery(self, query: Query) -> Query:
        for _ in range(6):
            other = self.relation(0)
            pairs = [
                (a, b)
                for a in query.columns
                for b in other.columns
                if (a.domain, a.kind) == (b.domain, b.kind)
            ]
            if not pairs:
                continue
            one, same = self.pick.choice(pairs)
            source, inner = self._name("q"), f"({other.text}) {self._name('q')}"
            number = next((c for c in other.columns if c.kind == "n"), same)
            column = Column(self._name(), "n", "made")
            found = f"(select count({number.name}) from {inner} where {same.name} = {source}.{one.name})"
            return self.pick.choice([
                Query(f"select * from ({query.text}) {source} where {self.pick.choice(['', 'not '])}exists (select 1 from {inner} where {same.name} = {source}.{one.name})", query.columns),
                Query(f"select * from ({query.text}) {source} where {one.name} {self.pick.choice(['', 'not '])}in (select {same.name} from {inner})", query.columns),
                Query(f"select *, {found} {column.name} from ({query.text}) {source}", (*query.columns, column)),
                Query(f"select * from ({query.text}) {source} where {one.name} > (select min({same.name}) from {inner})", query.columns),
            ])  # fmt: skip
        return self._filtered(query)

    def _with_itself(self, query: Query) -> Query:
        if self._joins >= 2:
            return self._distinct(query)
        self._joins += 2
        named, key = self._name("w"), self.pick.choice(query.columns)
        amounts, again = Column(self._name(), "n", "made"), self._name()
        grouped = f"select {key.name} {again}, count(*) {amounts.name} from {named} group by {key.name}"
        how = self.pick.choice(["join", "left join", "full outer join"])
        text = f"with {named} as ({query.text}) select {named}.*, {amounts.name} from {named} {how} ({grouped}) {self._name('q')} on {key.name} {self.pick.choice(['=', '<=>'])} {again}"
        return Query(text, (*query.columns, amounts))

    # -- texts ---------------------------------------------------------------------------------------------------

    def _from(self, query: Query) -> str:
        return f"select * from ({query.text}) {self._name('q')}"

    def _name(self, letter: str = "c") -> str:
        self._named += 1
        return f"{letter}{self._named}"
