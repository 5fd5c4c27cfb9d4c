"""Each form of a statement becomes what it says, with the user's text and places."""

from __future__ import annotations

import pytest

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.sql_sources.reading import read_source
from headwater.sql_sources.source import Fragment, Place, SqlSource
from headwater.sql_sources.statements import ColumnLabel, DatasetStatement, FlowStatement
from headwater.sql_sources.values import Values

TABLE, VIEW = DatasetKind.STREAMING_TABLE, DatasetKind.MATERIALIZED_VIEW
TEMPORARY = DatasetKind.TEMPORARY_VIEW


def read(text: str) -> DatasetStatement | FlowStatement:
    """The one statement of a text."""
    (declaration,) = read_source(SqlSource("f.sql", text), Values({}.__getitem__))
    return declaration.statement


def dataset(text: str) -> DatasetStatement:
    """The one dataset of a text."""
    statement = read(text)
    assert isinstance(statement, DatasetStatement)
    return statement


def flow(text: str) -> FlowStatement:
    """The one flow of a text."""
    statement = read(text)
    assert isinstance(statement, FlowStatement)
    return statement


@pytest.mark.parametrize(
    ("head", "kind", "private"),
    [
        ("CREATE STREAMING TABLE", TABLE, False),
        ("create or refresh streaming table", TABLE, False),
        ("CREATE OR REPLACE STREAMING TABLE", TABLE, False),
        ("CREATE OR REFRESH PRIVATE STREAMING TABLE", TABLE, True),
        ("CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS", TABLE, False),
        ("CREATE MATERIALIZED VIEW", VIEW, False),
        ("CREATE OR REFRESH PRIVATE MATERIALIZED VIEW", VIEW, True),
        ("CREATE OR REPLACE MATERIALIZED VIEW", VIEW, False),
        ("CREATE STREAMING LIVE TABLE", TABLE, False),
        ("CREATE OR REFRESH STREAMING LIVE TABLE", TABLE, False),
        ("CREATE INCREMENTAL LIVE TABLE", TABLE, False),
        ("CREATE OR REFRESH TEMPORARY STREAMING LIVE TABLE", TABLE, True),
        ("CREATE LIVE TABLE", VIEW, False),
        ("CREATE OR REFRESH TEMPORARY LIVE TABLE", VIEW, True),
        ("CREATE TEMPORARY VIEW", TEMPORARY, False),
        ("CREATE OR REPLACE TEMP VIEW", TEMPORARY, False),
        ("CREATE LIVE VIEW", TEMPORARY, False),
        ("CREATE STREAMING LIVE VIEW", TEMPORARY, False),
        ("CREATE TEMPORARY STREAMING LIVE VIEW", TEMPORARY, False),
        ("CREATE TEMPORARY INCREMENTAL LIVE VIEW", TEMPORARY, False),
    ],
)
def test_kinds(head: str, kind: DatasetKind, private: bool):
    """Every spelling of a dataset's kind, old and new, in any letter case."""
    statement = dataset(f"{head} a.`b` AS SELECT 1")
    assert (statement.name, statement.kind, statement.stored.get("private", False)) == ("a.b", kind, private)
    assert statement.query is not None
    assert statement.query.text == "SELECT 1"


def test_a_query_is_taken_as_it_is_written():
    """What Spark runs is the user's text, comments and all, with the place where it begins."""
    query = "WITH a AS (SELECT 1 AS `as`) -- not AS this\n  SELECT 'AS; x', \"y\" FROM a /* ; */ WHERE x:y[0]::int > 1"
    statement = dataset(f"-- head\nCREATE MATERIALIZED VIEW v\n  AS {query} ;\n-- end")
    assert statement.query == Fragment(query, Place("f.sql", 3, 6))
    assert statement.place == Place("f.sql", 2, 1)


@pytest.mark.parametrize(
    "query", ["FROM a |> SELECT *", "VALUES (1)", "TABLE a", "(SELECT 1) UNION ALL (SELECT 2)"]
)
def test_queries_of_any_form(query: str):
    """What a query looks like is Spark's affair."""
    statement = dataset(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert statement.query is not None
    assert statement.query.text == query


@pytest.mark.parametrize("query", ["select distinct * from stream s", "WITH a AS (SELECT 1) SELECT * FROM a"])
def test_a_query_without_as(query: str):
    """As Spark's grammar has it, AS may be left out before SELECT and WITH."""
    statement = dataset(f"CREATE STREAMING TABLE t (CONSTRAINT r EXPECT (a)) COMMENT 'c' {query}")
    assert statement.query is not None
    assert statement.query.text == query
    assert statement.comment == "c"


COLUMNS = """(
  id BIGINT NOT NULL COMMENT 'it''s, (one)',
  place STRUCT<a: INT, b: ARRAY<DECIMAL(10, 2)>>, tags MAP<STRING, ARRAY<INT>>, v VARIANT, `a b` STRING COLLATE UTF8_LCASE,
  at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)) COMMENT 'd',
  CONSTRAINT ok EXPECT (id > 0 AND tags['(a)'] IN (1, 2)) ON VIOLATION DROP ROW,
  constraint w expect (id is not null),
  CONSTRAINT f EXPECT (day < current_date()) ON VIOLATION FAIL UPDATE,
  CONSTRAINT q EXPECT (id <> 7) ON VIOLATION QUARANTINE ROW
)"""


def test_columns_with_types_and_rules():
    """Columns become DDL text for Spark, whatever their types, and rules have the user's conditions."""
    statement = dataset(f"CREATE STREAMING TABLE t {COLUMNS} AS SELECT 1")
    assert statement.schema == (
        "id BIGINT NOT NULL COMMENT 'it''s, (one)',\nplace STRUCT<a: INT, b: ARRAY<DECIMAL(10, 2)>>,\n"
        "tags MAP<STRING, ARRAY<INT>>,\nv VARIANT,\n`a b` STRING COLLATE UTF8_LCASE,\nat TIMESTAMP,\n"
        "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)) COMMENT 'd'"
    )
    assert [(rule.name, rule.condition, rule.action) for rule in statement.rules] == [
        ("ok", "id > 0 AND tags['(a)'] IN (1, 2)", ViolationAction.DROP),
        ("w", "id is not null", ViolationAction.WARN),
        ("f", "day < current_date()", ViolationAction.FAIL),
        ("q", "id <> 7", ViolationAction.QUARANTINE),
    ]
    assert statement.rules[1].place == Place("f.sql", 6, 3)


@pytest.mark.parametrize(
    ("item", "schema", "idle"),
    [
        ("PRIMARY KEY (id) RELY", "id INT", "PRIMARY KEY"),
        ("CONSTRAINT pk PRIMARY KEY (id)", "id INT", "CONSTRAINT pk"),
        ("FOREIGN KEY (id) REFERENCES b (id, x)", "id INT", "FOREIGN KEY"),
        (
            "n STRING NOT NULL PRIMARY KEY COMMENT 'c'",
            "id INT,\nn STRING NOT NULL COMMENT 'c'",
            "the key on the column n",
        ),
        ("n STRING CONSTRAINT k PRIMARY KEY", "id INT,\nn STRING", "the key on the column n"),
    ],
)
def test_keys_say_nothing(item: str, schema: str, idle: str):
    """Keys are informational on Lakeflow: they are accepted, and said to have no effect."""
    statement = dataset(f"CREATE STREAMING TABLE t (id INT, {item}, CONSTRAINT r EXPECT (id > 0))")
    assert (statement.schema, list(statement.idle), len(statement.rules)) == (schema, [idle], 1)


def test_a_rule_without_a_comma_before_it():
    """Lakeflow takes a rule right behind the last column, as lists that are put together from parts have it."""
    statement = dataset(
        "CREATE LIVE TABLE t (id INT, n INT COMMENT 'c' CONSTRAINT r EXPECT (n > 0) ON VIOLATION DROP ROW) AS SELECT 1"
    )
    assert statement.schema == "id INT,\nn INT COMMENT 'c'"
    assert [(rule.name, rule.condition, rule.action) for rule in statement.rules] == [
        ("r", "n > 0", ViolationAction.DROP)
    ]


def test_columns_without_types():
    """They name the query's columns at their positions."""
    statement = dataset(
        "CREATE TEMPORARY VIEW v (a COMMENT 'x', `b c`, CONSTRAINT r EXPECT (a)) COMMENT \"of it\" AS SELECT 1, 2"
    )
    assert statement.labels == (ColumnLabel("a", "x"), ColumnLabel("b c"))
    assert statement.comment == "of it"
    assert [rule.name for rule in statement.rules] == ["r"]


@pytest.mark.parametrize(
    ("clause", "stored"),
    [
        ("USING DELTA", {"format": "DELTA"}),
        ("PARTITIONED BY (a, `b c`)", {"partition_cols": ["a", "b c"]}),
        ("CLUSTER BY (a)", {"cluster_by": ["a"]}),
        ("CLUSTER BY NONE", {"cluster_by": None}),
        ("CLUSTER BY AUTO", {"cluster_by_auto": True}),
        ("LOCATION '/data/t'", {"path": "/data/t"}),
        ("TBLPROPERTIES ('a' = 'b', \"c\"=\"d\")", {"table_properties": {"a": "b", "c": "d"}}),
        ("TBLPROPERTIES (pipelines.reset.allowed = false, x 1, 'y' '2', z = -3)",
         {"table_properties": {"pipelines.reset.allowed": "false", "x": "1", "y": "2", "z": "-3"}}),
        ("REFRESH POLICY FULL", {"refresh_policy": "full"}),
        ("REFRESH POLICY INCREMENTAL STRICT", {"refresh_policy": "incremental_strict"}),
    ],
)  # fmt: skip
def test_clauses(clause: str, stored: dict[str, object]):
    """Each becomes the argument that the Python face has for it, before and after others."""
    for text in (f"{clause} COMMENT 'c' 'd'", f"COMMENT 'cd' {clause}"):
        statement = dataset(f"CREATE MATERIALIZED VIEW t {text} AS SELECT 1")
        assert (dict(statement.stored), statement.comment) == (stored, "cd")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("'it''s'", "it's"),
        ("'a' 'b'", "ab"),
        (r"'it\'s'", "it's"),
        ('"a ""b"""', 'a "b"'),
        (r"'a\nb'", "a\nb"),
        (r"r'a\n'", "a\\n"),
    ],
)
def test_literals(written: str, text: str):
    """Quotes inside a literal, literals in a row, and raw ones mean what they mean in Spark."""
    assert dataset(f"CREATE STREAMING TABLE t COMMENT {written}").comment == text


CHANGES = """KEYS (id, `region`)
  IGNORE NULL UPDATES
  APPLY AS DELETE WHEN op = 'D' AND coalesce(columns, 1) = 1
  APPLY AS TRUNCATE WHEN op = 'T'
  SEQUENCE BY STRUCT(a, b)
  COLUMNS * EXCEPT (op, a)
  STORED AS SCD TYPE 2
  TRACK HISTORY ON * EXCEPT (city)"""
ARGUMENTS = {
    "ignore_null_updates": True,
    "apply_as_deletes": "op = 'D' AND coalesce(columns, 1) = 1",
    "apply_as_truncates": "op = 'T'",
    "sequence_by": "STRUCT(a, b)",
    "except_column_list": ["op", "a"],
    "stored_as_scd_type": "2",
    "track_history_except_column_list": ["city"],
}


@pytest.mark.parametrize(
    ("head", "name", "source", "once"),
    [
        ("CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s)", "f", "s", False),
        ("CREATE FLOW a.f COMMENT 'c' AS AUTO CDC INTO t FROM stream x.s", "a.f", "x.s", False),
        ("CREATE FLOW f AS AUTO CDC ONCE INTO t FROM s", "f", "s", True),
        ("CREATE FLOW f AS APPLY CHANGES INTO t FROM STREAM(s)", "f", "s", False),
        ("AUTO CDC INTO t FROM STREAM s", None, "s", False),
        ("APPLY CHANGES INTO t FROM STREAM(LIVE.s)", None, "LIVE.s", False),
    ],
)
def test_auto_cdc(head: str, name: str | None, source: str, once: bool):
    """All clauses, in the old and the new spelling; the source is a name."""
    statement = flow(f"{head}\n{CHANGES}")
    assert statement.changes is not None
    assert (statement.name, statement.target, statement.once, statement.changes.batch) == (
        name,
        "t",
        once,
        once,
    )
    assert (statement.changes.source, statement.changes.keys) == (source, ("id", "region"))
    assert dict(statement.changes.arguments) == ARGUMENTS


@pytest.mark.parametrize(
    ("clause", "arguments"),
    [
        ("COLUMNS a, b", {"column_list": ["a", "b"]}),
        ("COLUMNS (a)", {"column_list": ["a"]}),
        ("COLUMNS *", {}),
        ("COLUMNS TO UPDATE changed", {"columns_to_update": "changed"}),
        ("TRACK HISTORY ON a, b", {"track_history_column_list": ["a", "b"]}),
        ("STORED AS SCD TYPE 1", {"stored_as_scd_type": "1"}),
        ("IGNORE NULL UPDATES ON (a)", {"ignore_null_updates": True, "ignore_null_updates_column_list": ["a"]}),
        ("IGNORE NULL UPDATES ON * EXCEPT (a)", {"ignore_null_updates": True, "ignore_null_updates_except_column_list": ["a"]}),
    ],
)  # fmt: skip
def test_clauses_of_auto_cdc(clause: str, arguments: dict[str, object]):
    """Each clause by itself, before and after the others."""
    for text in (f"{clause} KEYS (k) SEQUENCE BY n", f"SEQUENCE BY n KEYS (k) {clause}"):
        changes = flow(f"AUTO CDC INTO t FROM STREAM(s) {text}").changes
        assert changes is not None
        assert dict(changes.arguments) == {"sequence_by": "n", **arguments}


@pytest.mark.parametrize(
    ("source", "text", "column"),
    [
        ("(SELECT * FROM STREAM(s) WHERE keys > 1)", "SELECT * FROM STREAM(s) WHERE keys > 1", 23),
        ("STREAM read_files('x')", "SELECT * FROM STREAM read_files('x')", 22),
        ("STREAM(read_files('x'))", "SELECT * FROM STREAM(read_files('x'))", 22),
        (
            "STREAM s WITH (SKIPCHANGECOMMITS = TRUE)",
            "SELECT * FROM STREAM s WITH (SKIPCHANGECOMMITS = TRUE)",
            22,
        ),
    ],
)
def test_changes_of_a_query(source: str, text: str, column: int):
    """A source that is more than a name is a query of its own."""
    changes = flow(f"AUTO CDC INTO t FROM {source} KEYS (k) SEQUENCE BY n").changes
    assert changes is not None
    assert changes.source == Fragment(text, Place("f.sql", 1, column))


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("INSERT INTO a.t BY NAME SELECT * FROM STREAM(s)", False),
        ("INSERT INTO ONCE a.t BY NAME SELECT * FROM STREAM(s)", True),
        ("INSERT ONCE INTO a.t BY NAME SELECT * FROM STREAM(s)", True),
    ],
)
def test_append_flows(text: str, once: bool):
    """Both spellings of ONCE."""
    statement = flow(f"CREATE FLOW f COMMENT 'c' AS {text}")
    assert (statement.name, statement.target, statement.once, statement.comment) == ("f", "a.t", once, "c")
    assert statement.query is not None
    assert statement.query.text == "SELECT * FROM STREAM(s)"


def test_flows_inside_a_table():
    """The flow of a streaming table may stand in its own statement."""
    head = "CREATE STREAMING TABLE t COMMENT 'c' FLOW"
    assert dataset("CREATE STREAMING TABLE t").query is None
    assert dataset("CREATE STREAMING TABLE t ()").schema is None
    appended = dataset(f"{head} INSERT BY NAME SELECT 1")
    assert (appended.once, appended.query and appended.query.text) == (False, "SELECT 1")
    assert dataset(f"{head} INSERT ONCE BY NAME SELECT 1").once
    changes = dataset(f"{head} AUTO CDC FROM STREAM s KEYS (k) SEQUENCE BY n").changes
    assert changes is not None
    assert changes.source == "s"
    assert dataset(f"{head} REPLACE WHERE d > '2' BY NAME SELECT 1").stored == {"replace_where": "d > '2'"}
    replaced = dataset(f"{head} REPLACE USING (a, b) SEQUENCE BY s BY NAME SELECT 1")
    assert replaced.stored == {"replace_using": ["a", "b"], "sequence_by": "s"}
