"""What may happen to the tables of the star schema between two refreshes: more kinds than the four steps of make test."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.star_schema import Star

Change = Callable[[Star], None]


def _some(star: Star, table: str = "sales") -> str:
    """A condition that some rows meet."""
    key = {
        "sales": "sale_id",
        "returns": "return_id",
        "customer": "cust_id",
        "product": "prod_id",
        "store": "store_id",
    }[table]
    modulus = {"sales": 60, "returns": 9, "customer": 8, "product": 4, "store": 3}[table]
    return f"{key} % {modulus} = {star.random.randrange(modulus)}"


def _merge(star: Star) -> None:
    star.run(
        "merge into {sales} t using (select sale_id, day, cust_id, qty + 3 q from {sales} where "
        + _some(star)
        + ") s on t.sale_id = s.sale_id "
        "when matched and t.qty > 6 then delete when matched then update set qty = s.q, day = date_add(s.day, 1)"
    )


def _moved_and_vacuumed(star: Star) -> None:
    star.append(day=star.random.randrange(1, 12), rows=6)
    star.run("optimize {sales}", "vacuum {sales} retain 0 hours")


CHANGES: dict[str, Change] = {
    "appended": lambda star: star.append(day=star.random.randrange(1, 14), rows=12),
    "late rows": lambda star: [star.append(day=star.random.randrange(1, 9), rows=2) for _ in range(3)] and None,
    "updated": lambda star: star.run("update {sales} set qty = (qty + 1) % 9, status = upper(status) where " + _some(star)),
    "keys moved": lambda star: star.run(f"update {{sales}} set cust_id = {star.random.randrange(44)}, day = date_add(day, 1), store_id = {star.random.randrange(7)} where " + _some(star)),
    "keys became null": lambda star: star.run("update {sales} set cust_id = null, store_id = null where " + _some(star)),
    "keys were null": lambda star: star.run("update {sales} set cust_id = 7 where cust_id is null", "update {sales} set store_id = 2 where store_id is null"),
    "deleted": lambda star: star.run("delete from {sales} where " + _some(star)),
    "a group deleted": lambda star: star.run(f"delete from {{sales}} where store_id = {star.random.randrange(7)} and day < date'2026-01-05'"),
    "appended and deleted": lambda star: (star.append(day=12, rows=8), star.run("delete from {sales} where day = date'2026-01-13' and qty > 4"))[-1],
    "duplicates": lambda star: star.run("insert into {sales} select * from {sales} where " + _some(star), "insert into {customer} select * from {customer} where cust_id = 3"),
    "merged": _merge,
    "dimensions": lambda star: star.run("update {customer} set segment = 's7', city = null where " + _some(star, "customer"), "delete from {customer} where cust_id = 5", "insert into {customer} values (5, 'again', 's1', 't0')"),
    "products": lambda star: star.run("delete from {product} where " + _some(star, "product"), "insert into {product} select cast(id as int), 'g9', cast(1 as decimal(10,2)) from range(2) where id not in (select prod_id from {product})"),
    "stores": lambda star: star.run("update {store} set region = if(region = 'r1', null, 'r1'), country = 'AT' where " + _some(star, "store")),
    "returns": lambda star: star.run("insert into {returns} select 2000 + id, id * 5, date'2026-01-04', 2 from range(4)", "delete from {returns} where " + _some(star, "returns")),
    "both sides": lambda star: star.run("update {sales} set qty = 8 where " + _some(star), "update {returns} set sale_id = sale_id + 1 where " + _some(star, "returns")),
    "both of a pair": lambda star: star.run("delete from {sales} where sale_id = 9", "delete from {returns} where sale_id = 9"),
    "and back": lambda star: star.run("update {sales} set qty = qty + 1, amount = amount + 1 where sale_id < 40", "update {sales} set qty = qty - 1, amount = amount - 1 where sale_id < 40"),
    "deleted and put back": lambda star: star.restore_after("delete from {store} where store_id < 2"),
    "floats": lambda star: star.run("update {sales} set price = double('NaN') where " + _some(star), "update {sales} set price = -0.0D where " + _some(star), "update {sales} set price = 0.0D where price = 0"),
    "decimals": lambda star: star.run("update {sales} set amount = -amount, qty = null where " + _some(star)),
    "optimized": lambda star: star.run("optimize {sales}", "optimize {returns}"),
    "appended, moved, vacuumed": _moved_and_vacuumed,
    "vacuumed": lambda star: (star.run("update {sales} set qty = 0 where " + _some(star)), star.run("vacuum {sales} retain 0 hours"))[-1],
    "restored": lambda star: star.restore("sales", star.random.randrange(1, 3)),
    "rewritten": lambda star: star.rewrite(star.random.choice(["store", "customer", "returns"])),
    "rewritten otherwise": lambda star: (star.rewrite("returns"), star.run("update {returns} set qty = 5 where return_id < 3"))[-1],
    "another table": lambda star: star.remake(star.random.choice(["product", "store", "returns"])),
    "nothing": lambda star: star.run("delete from {sales} where qty = 1000", "insert into {sales} select * from {sales} where false"),
    "a column more": lambda star: star.add_column("sales"),
    "nearly all": lambda star: star.run("update {sales} set qty = coalesce(qty, 0) + 1 where sale_id % 5 < 2"),
    "emptied": lambda star: (star.run("delete from {returns}"), star.run("insert into {returns} select id, id * 3, date'2026-01-02', 1 from range(20)") if star.random.random() < 0.7 else None)[-1],
}  # fmt: skip
