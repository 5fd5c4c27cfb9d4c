"""Each statement of SQL makes the declarations that its Python twin makes, with its own places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from headwater import pipelines as dp
from headwater.definitions.source_location import SourceLocation
from headwater.errors import DuplicateDataset, InvalidExpectation, MissingValue, UnsupportedArgument
from headwater.graph.registry import Registry, registering
from headwater.sql_sources.source import SqlSource
from headwater_spark.loader.sql_declarations import declare_source


class Conf:
    """``spark.conf`` of a source."""

    def get(self, name: str) -> str:
        """What a source set."""
        if name != "set.by.source":
            raise PySparkException("no such setting")
        return "of the session"


class Session:
    """As much of the facade as declaring needs."""

    conf = Conf()


def declared(sql: str, registry: Registry | None = None, **configuration: str) -> Registry:
    """The registry after a source."""
    registry = registry or Registry(catalog=None, schema="shop")
    with registering(registry):
        declare_source(SqlSource("a.sql", sql), registry, Session(), configuration)  # type: ignore[arg-type]
    return registry


def plain(registry: Registry) -> tuple[list[Any], list[Any]]:
    """What is declared, without functions and places."""
    datasets = [
        replace(
            dataset,
            location=None,
            expectations=tuple(replace(rule, location=None) for rule in dataset.expectations),
        )
        for dataset in registry.datasets()
    ]
    return datasets, [replace(flow, location=None, function=None) for flow in registry.flows()]  # type: ignore[arg-type]


def query() -> None:
    """Stand in for any query."""


def rules(function: Callable[[], None]) -> Callable[[], None]:
    """Put a rule of each kind on a function, in the order of RULES."""
    for decorate in (
        dp.expect_or_quarantine("q", "id <> 7"), dp.expect_or_fail("f", "id < 9"), dp.expect_or_drop("d", "id > 0"),
        dp.expect("w", "id IS NOT NULL"),
    ):  # fmt: skip
        function = decorate(function)
    return function


def fresh(name: str = "query") -> Callable[[], None]:
    """Another function."""

    def made() -> None:
        """Stand in for a query."""

    made.__name__ = name
    return made


RULES = (
    "CONSTRAINT w EXPECT (id IS NOT NULL), CONSTRAINT d EXPECT (id > 0) ON VIOLATION DROP ROW, "
    "CONSTRAINT f EXPECT (id < 9) ON VIOLATION FAIL UPDATE, CONSTRAINT q EXPECT (id <> 7) ON VIOLATION QUARANTINE ROW"
)
ALL_RULES: Mapping[str, Any] = {
    "expect_all": {"w": "id IS NOT NULL"}, "expect_all_or_drop": {"d": "id > 0"},
    "expect_all_or_quarantine": {"q": "id <> 7"}, "expect_all_or_fail": {"f": "id < 9"},
}  # fmt: skip


def changes(**arguments: Any) -> None:
    """A target with changes."""
    dp.create_streaming_table("t")
    dp.create_auto_cdc_flow("t", "s", ["id", "k"], "n", **arguments)


PAIRS: dict[str, tuple[str, Callable[[], Any]]] = {
    "streaming table": (
        f"CREATE OR REFRESH STREAMING TABLE t ({RULES}) COMMENT 'c' TBLPROPERTIES ('a' = 'b') PARTITIONED BY (x) AS SELECT 1",
        lambda: dp.streaming_table(
            name="t", comment="c", table_properties={"a": "b"}, partition_cols=["x"]
        )(rules(fresh())),
    ),
    "typed columns": (
        "CREATE STREAMING TABLE a.t (id INT NOT NULL COMMENT 'k', n MAP<STRING, INT>) LOCATION '/x' USING DELTA AS SELECT 1",
        lambda: dp.streaming_table(
            name="a.t", schema="id INT NOT NULL COMMENT 'k',\nn MAP<STRING, INT>", path="/x", format="DELTA"
        )(fresh()),
    ),
    "materialized view": (
        "CREATE OR REFRESH MATERIALIZED VIEW LIVE.t CLUSTER BY (a, b) REFRESH POLICY AUTO AS SELECT 1",
        lambda: dp.materialized_view(name="t", cluster_by=["a", "b"], refresh_policy="auto")(fresh()),
    ),
    "private": (
        "CREATE PRIVATE MATERIALIZED VIEW t AS SELECT 1; CREATE TEMPORARY LIVE TABLE u AS SELECT 1",
        lambda: (dp.materialized_view(name="t", private=True)(fresh()), dp.materialized_view(name="u", private=True)(fresh())),
    ),
    "view": (
        f"CREATE TEMPORARY VIEW t ({RULES}) COMMENT 'c' AS SELECT 1",
        lambda: dp.temporary_view(name="t", comment="c")(rules(fresh())),
    ),
    "empty table": (
        f"CREATE STREAMING TABLE t (id INT, {RULES}) COMMENT 'c' CLUSTER BY (id)",
        lambda: dp.create_streaming_table("t", schema="id INT", comment="c", cluster_by=["id"], **ALL_RULES),
    ),
    "append flows": (
        "CREATE STREAMING TABLE t; CREATE FLOW f COMMENT 'c' AS INSERT INTO t BY NAME SELECT 1;"
        "CREATE FLOW g AS INSERT INTO ONCE LIVE.t BY NAME SELECT 1",
        lambda: (
            dp.create_streaming_table("t"),
            dp.append_flow(target="t", name="f", comment="c")(fresh()),
            dp.append_flow(target="t", name="g", once=True)(fresh()),
        ),
    ),
    "managed tables": (
        f"CREATE TABLE t (id INT, {RULES}) COMMENT 'c' CLUSTER BY (id); CREATE FLOW f AS INSERT INTO t BY NAME SELECT 1;"
        "CREATE TABLE u FLOW INSERT ONCE BY NAME SELECT 1; CREATE TABLE v FLOW INSERT BY NAME SELECT 1",
        lambda: (
            dp.create_streaming_table("t", schema="id INT", comment="c", cluster_by=["id"], **ALL_RULES),
            dp.append_flow(target="t", name="f")(fresh()),
            dp.create_streaming_table("u"),
            dp.append_flow(target="u", name="u", once=True)(fresh()),
            dp.streaming_table(name="v")(fresh()),
        ),
    ),
    "append once inside": (
        "CREATE STREAMING TABLE t FLOW INSERT ONCE BY NAME SELECT 1",
        lambda: (dp.create_streaming_table("t"), dp.append_flow(target="t", name="t", once=True)(fresh())),
    ),
    "changes": (
        "CREATE STREAMING TABLE t; AUTO CDC INTO t FROM STREAM(s) KEYS (id, k) SEQUENCE BY n",
        changes,
    ),
    "changes, all clauses": (
        "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (id, k) IGNORE NULL UPDATES ON (a) APPLY AS "
        "DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY n COLUMNS * EXCEPT (op) STORED AS SCD TYPE 1",
        lambda: changes(
            name="f", ignore_null_updates=True, ignore_null_updates_column_list=["a"], apply_as_deletes="op = 'D'",
            apply_as_truncates="op = 'T'", except_column_list=["op"], stored_as_scd_type=1,
        ),
    ),
    "history": (
        "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM s KEYS (id, k) SEQUENCE BY n COLUMNS a, id, k STORED AS SCD TYPE 2 "
        "TRACK HISTORY ON a",
        lambda: changes(column_list=["a", "id", "k"], stored_as_scd_type=2, track_history_column_list=["a"]),
    ),
    "changes once": (
        "CREATE STREAMING TABLE t; APPLY CHANGES ONCE INTO t FROM s KEYS (id, k) SEQUENCE BY n COLUMNS TO UPDATE c",
        lambda: changes(once=True, columns_to_update="c"),
    ),
    "changes of a query": (
        "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM (SELECT 1) KEYS (id) SEQUENCE BY n",
        lambda: (
            dp.create_streaming_table("t"),
            dp.temporary_view(name="f_changes")(fresh()),
            dp.create_auto_cdc_flow("t", "f_changes", ["id"], "n", name="f"),
        ),
    ),
    "replaced rows": (
        "CREATE STREAMING TABLE t FLOW REPLACE USING (a) SEQUENCE BY n BY NAME SELECT 1",
        lambda: dp.table(name="t", replace_using=["a"], sequence_by="n")(fresh()),
    ),
    "a part": (
        "CREATE STREAMING TABLE t FLOW REPLACE WHERE d > '2' BY NAME SELECT 1",
        lambda: dp.table(name="t", replace_where="d > '2'")(fresh()),
    ),
    "a part of a view": (
        "CREATE OR REFRESH MATERIALIZED VIEW t FLOW REPLACE WHERE d > '2' BY NAME SELECT 1",
        lambda: dp.materialized_view(name="t", replace_where="d > '2'")(fresh()),
    ),
    "replaced rows by a flow": (
        "CREATE STREAMING TABLE t; CREATE FLOW f COMMENT 'c' AS INSERT INTO t BY NAME REPLACE USING (a, b) SEQUENCE BY n SELECT 1",
        lambda: (
            dp.create_streaming_table("t"),
            dp.replace_flow(target="t", name="f", comment="c", replace_using=["a", "b"], sequence_by="n")(fresh()),
        ),
    ),
    "a part by a flow": (
        "USE SCHEMA shop; CREATE FLOW f AS INSERT INTO shop.t BY NAME REPLACE WHERE d > '2' AND (n IN (SELECT 1)) WITH c AS (SELECT 1) SELECT * FROM c;"
        "CREATE STREAMING TABLE T (CONSTRAINT r EXPECT (a)) COMMENT 'c' CLUSTER BY (d)",
        lambda: dp.table(name="T", comment="c", cluster_by=["d"], replace_where="d > '2' AND (n IN (SELECT 1))")(
            dp.expect("r", "a")(fresh())
        ),
    ),
    "settings": (
        "SET spark.sql.ansi.enabled = false; SET pipelines.trigger.interval = '1 hour'; SET mine = 1;"
        "CREATE STREAMING TABLE t AS SELECT 1; CREATE TEMPORARY VIEW v AS SELECT 1",
        lambda: (
            dp.streaming_table(
                name="t", spark_conf={"spark.sql.ansi.enabled": "false", "pipelines.trigger.interval": "1 hour"}
            )(fresh()),
            dp.temporary_view(name="v", spark_conf={"spark.sql.ansi.enabled": "false"})(fresh()),
        ),
    ),
    "namespaces": (
        "USE SCHEMA a; CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) KEYS (id) SEQUENCE BY n;"
        "USE CATALOG c; CREATE MATERIALIZED VIEW t AS SELECT 1; CREATE MATERIALIZED VIEW b.t AS SELECT 1",
        lambda: (
            dp.create_streaming_table("a.t"),
            dp.create_auto_cdc_flow("a.t", "a.s", ["id"], "n", name="f"),
            dp.materialized_view(name="c.shop.t")(fresh()),
            dp.materialized_view(name="c.b.t")(fresh()),
        ),
    ),
    "values": (
        "CREATE STREAMING TABLE t${suffix} (CONSTRAINT r EXPECT (a = :who)) COMMENT '${who}' AS SELECT '${set.by.source}'",
        lambda: dp.streaming_table(name="t_x", comment="o'Brien")(dp.expect("r", r"a = 'o\'Brien'")(fresh())),
    ),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_statements_and_their_twins(pair: str):
    """Datasets and flows are equal, in all but their functions and places."""
    sql, python = PAIRS[pair]
    twin = Registry(catalog=None, schema="shop")
    with registering(twin):
        python()
    datasets = plain(declared(sql, suffix="_x", who="o'Brien"))
    assert datasets == plain(twin)
    assert datasets[0]


def test_places():
    """A dataset stands where its statement begins, a rule where it is written."""
    registry = declared(
        "\n\nCREATE STREAMING TABLE t (\n  CONSTRAINT r EXPECT (a)\n) AS SELECT 1;\nCREATE MATERIALIZED VIEW v AS SELECT 1"
    )
    table, view = registry.datasets()
    assert (table.location, view.location) == (SourceLocation("a.sql", 3), SourceLocation("a.sql", 6))
    assert table.expectations[0].location == SourceLocation("a.sql", 4)
    assert [flow.location for flow in registry.flows()] == [table.location, view.location]


def test_a_name_in_both_languages():
    """The second declaration is refused with both places."""
    registry = Registry(catalog=None, schema="shop")
    with registering(registry):
        dp.materialized_view(name="t")(query)
    with pytest.raises(DuplicateDataset) as caught:
        declared("\nCREATE MATERIALIZED VIEW T AS SELECT 1", registry)
    assert caught.value.where.startswith("a.sql:2, and before at ")
    assert "test_sql_declarations.py" in caught.value.where


@pytest.mark.parametrize("query_text", ["", " AS SELECT 1"])
def test_rules_of_one_name(query_text: str):
    """Two rules of one name on one table are refused, with and without a query."""
    with pytest.raises(InvalidExpectation, match="given twice") as caught:
        declared(
            "CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (x),\nCONSTRAINT a EXPECT (y) ON VIOLATION DROP ROW)"
            + query_text
        )
    assert caught.value.where.startswith("a.sql:")


def test_a_value_that_nobody_gives():
    """Neither the configuration nor a source's own setting."""
    with pytest.raises(MissingValue, match="nobody"):
        declared("CREATE STREAMING TABLE t COMMENT '${nobody}' AS SELECT 1")


@pytest.mark.parametrize("policy", ["AUTO", "FULL", "INCREMENTAL", "INCREMENTAL STRICT"])
def test_refresh_policies(policy: str):
    """Each of Lakeflow's policies is the one of Python's argument."""
    (view,) = declared(f"CREATE MATERIALIZED VIEW t REFRESH POLICY {policy} AS SELECT 1").datasets()
    assert view.refresh_policy == policy.lower().replace(" ", "_")


@pytest.mark.parametrize(
    "clause",
    [
        "USING csv",
        "TBLPROPERTIES ('pipelines.reset.alowed' = 'x')",
    ],
)
def test_what_the_face_refuses(clause: str):
    """What Python can't have SQL can't have either; the line is the statement's."""
    with pytest.raises(UnsupportedArgument) as caught:
        declared(f"\nCREATE MATERIALIZED VIEW t {clause} AS SELECT 1")
    assert caught.value.where == "a.sql:2"


@pytest.mark.parametrize(
    "table",
    [
        "",
        "CREATE STREAMING TABLE t AS SELECT 1;",
        "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM(s) KEYS (id) SEQUENCE BY n;",
        "USE SCHEMA a; CREATE STREAMING TABLE t; USE SCHEMA b;",
        "CREATE STREAMING TABLE t; CREATE FLOW g AS INSERT INTO t BY NAME REPLACE WHERE d > 1 SELECT 1;",
    ],
)
def test_a_part_apart_from_its_table(table: str):
    """A flow that replaces a part needs the table in its source, without another query; else it is refused with the form that works."""
    with pytest.raises(UnsupportedArgument, match="apart from the statement of that table") as caught:
        declared(table + "\nCREATE FLOW f AS INSERT INTO t BY NAME REPLACE WHERE d > 1 SELECT 1")
    assert caught.value.where == "a.sql:2:1"
    assert "FLOW REPLACE WHERE condition BY NAME query" in caught.value.remedy


def test_keys_are_noted():
    """A key is kept as a clause without effect, for the linter."""
    (idle,) = declared("CREATE STREAMING TABLE t (id INT PRIMARY KEY)").idle_clauses
    assert (idle.dataset, idle.location) == ("t", SourceLocation("a.sql", 1))


def test_properties_of_a_view_are_noted():
    """Lakeflow's views may have properties; here they are kept as a clause without effect, for the linter."""
    registry = declared(
        "CREATE TEMPORARY VIEW v (a COMMENT 'x') COMMENT 'c' TBLPROPERTIES ('quality' = 'silver') AS SELECT 1 AS a"
    )
    (idle,) = registry.idle_clauses
    assert (idle.dataset, idle.clause) == ("v", "TBLPROPERTIES")
    assert registry.datasets()[0].comment == "c"
