"""SQL text of a source: names of datasets stand for the datasets wherever SQL allows a table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.errors import (
    ActionInDefinition,
    MissingValue,
    QueryFailed,
    UnknownDataset,
    UnsupportedArgument,
)

# Quick where a session is there: they run each time.

TABLES = """
@dp.table
def orders():
    return spark.readStream.schema("id INT, customer STRING").json(LANDING)

@dp.materialized_view(name="raw.people")
def anything():
    return spark.createDataFrame([("a", 1)], "customer STRING, age INT")
"""


def view_of(query: str, name: str = "result") -> str:
    """A materialized view over a SQL text."""
    return f"\n@dp.table\ndef {name}():\n    return spark.sql({query!r})\n"


BATCH = {
    "plain": "select * from orders",
    "aliases": "select o.id from orders as o join raw.people p on o.customer = p.customer",
    "two parts": "select orders.id from shop.orders",
    "backticks": "select * from `orders` join `raw`.`people` using (customer)",
    "letter case": "select * from ORDERS join Raw.People using (customer)",
    "name without alias": "select orders.id, people.age from orders, raw.people where orders.customer = people.customer",
    "live": "select * from LIVE.orders",
    "in": "select * from raw.people where customer in (select customer from orders)",
    "exists": "select * from raw.people p where exists (select 1 from orders o where o.customer = p.customer)",
    "scalar": "select *, (select max(id) from orders) as m from raw.people",
    "cte": "with o as (select * from orders) select * from o join raw.people using (customer)",
    "cte in cte": "with a as (with b as (select * from orders) select * from b) select a.* from a, raw.people",
    "union": "select customer from orders union all select customer from raw.people",
    "subquery": "select * from (select * from orders) o join (select * from raw.people) p using (customer)",
    "twice": "select a.id from orders a join orders b using (id) join raw.people p on p.customer = a.customer",
    "comment": "-- orders of orders\nselect orders.* from orders /* orders */ , raw.people where 'orders' = 'orders'",
    "sample": "select * from orders tablesample (50 percent) join raw.people p using (customer)",
    "lateral": "select * from orders o, lateral (select age from raw.people p where p.customer = o.customer)",
    "variable": "select * from ${table} where customer = '${who}'",
}


def test_datasets_in_sql(pipeline):
    """However a query names the datasets, it is resolved, and the graph has its edges."""
    views = {f"by_{name.replace(' ', '_')}": query for name, query in BATCH.items()}
    source = TABLES + "".join(view_of(query, name) for name, query in views.items())
    manifest = pipeline(source, spec="  table: orders\n  who: me\n").manifest()
    expected = {
        name: {"orders", *(["raw.people"] if "people" in query.lower() else [])}
        for name, query in views.items()
    }
    flows = {name: manifest.flow(name) for name in views}
    assert {name: set(flow.inputs) for name, flow in flows.items()} == expected
    assert not [name for name, flow in flows.items() if flow.streaming]


STREAMS = {
    "of_name": "select * from STREAM orders",
    "in_brackets": "select id from STREAM(orders) o",
    "alone": "from stream(shop.orders)",
}


def test_a_stream_in_sql(pipeline):
    """STREAM before a name reads the dataset as a stream."""
    manifest = pipeline(TABLES + "".join(view_of(query, name) for name, query in STREAMS.items())).manifest()
    for name in STREAMS:
        flow = manifest.flow(name)
        assert flow.streaming
        assert flow.inputs == ("orders",)
        assert flow.sources[0].streaming


BY_FOLDER = {
    "in_sql": "spark.sql(f'select id from STREAM delta.`{LANDING}/outside` where id > 1')",
    "in_sql_as": "spark.sql(f'select d.id from STREAM(delta.`{LANDING}/outside`) d where id > 1')",
    "by_name": "spark.readStream.table(f'delta.`{LANDING}/outside`').where('id > 1').select('id')",
}


def test_a_folder_as_a_stream(pipeline):
    """A Delta table that is named by its folder is read as a stream, in SQL and by its name."""
    tables = [f"\n@dp.table\ndef {name}():\n    return {query}\n" for name, query in BY_FOLDER.items()]
    case = pipeline("".join(tables))
    folder = str(case.landing / "outside")
    write_deltalake(folder, pa.table({"id": [1, 2], "w": ["a", "b"]}))
    first = case.update()
    write_deltalake(folder, pa.table({"id": [3], "w": ["c"]}), mode="append")
    second = case.update()
    for name in BY_FOLDER:
        assert (first[name].output_rows, second[name].output_rows) == (1, 1)
        assert case.rows(name, order="1") == [(2,), (3,)]


def test_a_cte_hides_a_dataset(pipeline):
    """A CTE of a dataset's name is the CTE, as in SQL: no edge comes of it."""
    case = pipeline(TABLES + view_of("with orders as (select 1 as one) select * from orders"))
    manifest = case.manifest()
    assert manifest.flows_into("result")[0].inputs == ()
    assert [column.name for column in manifest.dataset("result").columns] == ["one"]


def test_a_cte_over_the_dataset_of_its_name(pipeline):
    """`with orders as (select .. from orders)`: inside its own definition the name is still the dataset."""
    case = pipeline(TABLES + view_of("with orders as (select id, 1 as one from orders) select * from orders"))
    manifest = case.manifest()
    assert manifest.flows_into("result")[0].inputs == ("orders",)
    assert [column.name for column in manifest.dataset("result").columns] == ["id", "one"]


def test_frames_in_sql(pipeline):
    """{name} stands for a DataFrame of the source, beside names of datasets."""
    source = """
@dp.table
def result():
    small = dp.read("orders").where("id > 1")
    return spark.sql("select s.id, p.age from {small} s join raw.people p using (customer)", small=small)
"""
    manifest = pipeline(TABLES + source).manifest()
    assert set(manifest.flows_into("result")[0].inputs) == {"orders", "raw.people"}
    assert [column.name for column in manifest.dataset("result").columns] == ["id", "age"]


def test_a_view_of_the_source_itself(pipeline):
    """A temporary view that the function makes of a frame can be read in its SQL."""
    source = """
@dp.table
def result():
    dp.read("orders").createOrReplaceTempView("mine")
    return spark.sql("select id from mine")
"""
    manifest = pipeline(TABLES + source).manifest()
    assert manifest.flows_into("result")[0].inputs == ("orders",)


def test_an_unknown_name_in_sql(pipeline):
    """A table that is not there is told with the user's line and the nearest dataset."""
    case = pipeline(TABLES + view_of("select * from order"))
    with pytest.raises((UnknownDataset, QueryFailed)) as caught:
        case.manifest()
    assert caught.value.where == case.line_of("select * from order")
    assert "order" in caught.value.what


def test_sql_that_does_not_parse(pipeline):
    """A fault of SQL is told with the user's line."""
    case = pipeline(TABLES + view_of("selec * fro orders"))
    with pytest.raises(QueryFailed) as caught:
        case.manifest()
    assert caught.value.where == case.line_of("selec * fro")


@pytest.mark.parametrize(
    "command", ["create table x (id int)", "insert into orders values (1, 'a')", "drop table orders"]
)
def test_a_command_in_sql(pipeline, command: str):
    """SQL that would do something at once is refused before it does."""
    case = pipeline(TABLES + view_of(command))
    with pytest.raises(ActionInDefinition) as caught:
        case.manifest()
    assert caught.value.where == case.line_of(command)
    assert case.nothing_written()


@pytest.mark.parametrize("command", ["USE CATALOG main", "use schema bronze; ", "USE `main`.bronze"])
def test_a_current_schema_in_python(pipeline, command: str):
    """USE would change nothing here: it is refused, also where Spark does not know the form, with what takes its place."""
    case = pipeline(f"spark.sql({command!r})" + TABLES)
    with pytest.raises(ActionInDefinition) as caught:
        case.manifest()
    assert caught.value.where == case.line_of("spark.sql(")
    assert "`catalog` and `schema` in pipeline.yml" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "hint"),
    [("${tabel}", "Did you mean ${table}?"), ("orders where customer = '${who}'", "--param who=")],
)
def test_a_value_that_is_missing(pipeline, text: str, hint: str):
    """A ``${key}`` without a value is told as that, with the nearest key, also inside a literal, where SQL would not notice."""
    case = pipeline(TABLES + view_of(f"select * from {text}"), spec="  table: orders\n")
    with pytest.raises(MissingValue) as caught:
        case.manifest()
    assert caught.value.where == case.line_of(text)
    assert text.partition("${")[2].partition("}")[0] in caught.value.what
    assert hint in caught.value.remedy


def test_values_of_the_session(pipeline):
    """What a source sets in its session can be named in its SQL, as in Spark itself."""
    source = (
        "spark.conf.set('mine', 'orders')\n"
        + TABLES
        + view_of("select id, '${spark.sql.ansi.enabled}' as a from ${mine}")
    )
    assert pipeline(source).manifest().flows_into("result")[0].inputs == ("orders",)


@pytest.mark.parametrize(
    "statement",
    [
        "spark.sql('SET pipelines.trigger.interval=10 seconds')",
        "spark.conf.set('pipelines.maxFlowRetryAttempts', 3)",
        "spark.sql('set pipelines.trigger.interval = 1 minute')",
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        "{}\n@dp.table\ndef t():\n    return spark.range(1)\n",
        "@dp.table\ndef t():\n    {}\n    return spark.range(1)\n",
    ],
)
def test_settings_of_flows_in_a_source(pipeline, statement: str, place: str):
    """Nothing reads them from the session: they are refused with their place, at the top of a source and in a function."""
    case = pipeline(place.format(statement))
    with pytest.raises(UnsupportedArgument, match=r"not read from the session") as caught:
        case.manifest()
    assert caught.value.where == case.line_of("pipelines.")
    assert "configuration" in caught.value.remedy


def test_other_settings_in_a_source(pipeline):
    """Spark's own settings can be set and shown as ever."""
    source = "spark.sql('SET spark.sql.ansi.enabled = true')\nspark.sql('SET spark.sql.ansi.enabled')\nspark.sql('SET')\n"
    assert pipeline(source + TABLES).manifest()


def test_settings_without_effect_in_a_source(pipeline, caplog):
    """One that the platform has and that changes nothing here is noted, wherever it stands."""
    source = "spark.conf.set('pipelines.incompatibleViewCheck.enabled', 'false')\n"
    assert pipeline(source + TABLES).manifest()
    assert "views are checked at each start" in caplog.text
