"""The forms that statements of pipelines have, and what to do instead of one that they don't have."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.suggestions import nearest

_TABLE = "name [(columns, CONSTRAINT rule EXPECT (condition) [ON VIOLATION DROP ROW | FAIL UPDATE | QUARANTINE ROW])] [clauses]"
_CHANGES = "target FROM STREAM(source) KEYS (key) [APPLY AS DELETE WHEN condition] SEQUENCE BY column [STORED AS SCD TYPE 1 | 2]"
FORMS = {
    "CREATE OR REFRESH STREAMING TABLE": f"CREATE OR REFRESH [PRIVATE] STREAMING TABLE {_TABLE} [AS query]",
    "CREATE STREAMING TABLE": f"CREATE [PRIVATE] STREAMING TABLE {_TABLE} [AS query]",
    "CREATE OR REFRESH MATERIALIZED VIEW": f"CREATE OR REFRESH [PRIVATE] MATERIALIZED VIEW {_TABLE} AS query",
    "CREATE MATERIALIZED VIEW": f"CREATE [PRIVATE] MATERIALIZED VIEW {_TABLE} AS query",
    "CREATE TEMPORARY VIEW": "CREATE TEMPORARY VIEW name [(rules)] AS query",
    "CREATE OR REPLACE TEMPORARY VIEW": "CREATE OR REPLACE TEMPORARY VIEW name [(rules)] AS query",
    "CREATE OR REFRESH STREAMING LIVE TABLE": f"CREATE OR REFRESH STREAMING LIVE TABLE {_TABLE} AS query",
    "CREATE OR REFRESH LIVE TABLE": f"CREATE OR REFRESH LIVE TABLE {_TABLE} AS query",
    "CREATE LIVE TABLE": f"CREATE LIVE TABLE {_TABLE} AS query",
    "CREATE TEMPORARY LIVE VIEW": "CREATE TEMPORARY LIVE VIEW name [(rules)] AS query",
    "CREATE STREAMING LIVE VIEW": "CREATE STREAMING LIVE VIEW name [(rules)] AS query",
    "CREATE TABLE": f"CREATE TABLE {_TABLE} [FLOW INSERT [ONCE] BY NAME query]",
    "CREATE FLOW": f"CREATE FLOW name AS INSERT INTO [ONCE] target BY NAME query, or AS AUTO CDC INTO {_CHANGES}",
    "AUTO CDC INTO": f"CREATE FLOW name AS AUTO CDC INTO {_CHANGES}",
    "APPLY CHANGES INTO": f"APPLY CHANGES INTO {_CHANGES}",
    "SET": "SET key = value",
    "USE CATALOG": "USE CATALOG name",
    "USE SCHEMA": "USE SCHEMA name",
}
_NO_ACTION = "A pipeline's tables hold what their queries give."
_ASK = "Query in a notebook, or with `headwater events --sql`; a file of queries belongs outside the folders under `libraries`."
_BATCH = (
    "An update runs the sources of a pipeline; what has to be done beside it belongs in a task of the DAG."
)
_FORBIDDEN = {
    "INSERT": f"{_NO_ACTION} Append with {FORMS['CREATE FLOW'].partition(',')[0]}.",
    "DELETE": f"{_NO_ACTION} Rows that changes delete: AUTO CDC with APPLY AS DELETE WHEN.",
    "UPDATE": f"{_NO_ACTION} Rows that changes replace: AUTO CDC.",
    "MERGE": f"{_NO_ACTION} Rows that changes replace: AUTO CDC.",
    "TRUNCATE": f"{_NO_ACTION} `headwater run --full-refresh TABLE` fills one again from the beginning.",
    "DROP": "Take its statement out of the source; `headwater drop` removes the table's files.",
    "REFRESH": "`headwater run --tables NAME` updates some tables; the rows of a condition are recomputed by `headwater backfill --where`.",
    "COPY": "Write CREATE OR REFRESH STREAMING TABLE name AS SELECT * FROM STREAM read_files('/folder', format => 'json').",
    "OPTIMIZE": "`headwater maintenance` does it.",
    "VACUUM": "`headwater maintenance` does it.",
    **dict.fromkeys(("SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"), _ASK),
    **dict.fromkeys(
        ("GRANT", "REVOKE", "ANALYZE", "CACHE", "UNCACHE", "CLEAR", "MSCK", "RESTORE", "CALL", "EXECUTE", "DECLARE", "BEGIN",
         "COMMENT", "LOAD", "EXPORT", "IMPORT", "UNDROP", "SYNC", "REPAIR", "RESET", "ADD"), _BATCH
    ),
}  # fmt: skip
_INTO = "into the statement that declares the table"
_ELSEWHERE = "a table that the pipeline only reads is altered where it is written"
# By a word of the statement, the first that it has: what says the same for good.
_ALTERED = {
    "TBLPROPERTIES": f"Write TBLPROPERTIES ('key' = 'value') {_INTO}; the next update sets them. {_ELSEWHERE.capitalize()}; a change "
    "feed has what is written after it was turned on.",
    "CLUSTER": f"Write CLUSTER BY (...) {_INTO}.",
    "COMMENT": f"Write COMMENT {_INTO}, or behind the column's type.",
    "SCHEDULE": f"Write SCHEDULE {_INTO}, or `airflow: {{schedule: ...}}` into pipeline.yml.",
    "COLUMN": f"A table's columns are those of its query, or those {_INTO}.",
    "COLUMNS": f"A table's columns are those of its query, or those {_INTO}.",
    "CONSTRAINT": f"Write CONSTRAINT name EXPECT (condition) {_INTO}.",
}
_BETWEEN = ("OR", "REPLACE", "REFRESH", "EXTERNAL", "GLOBAL", "PRIVATE")
_CREATED = {
    "TABLE": "Write CREATE OR REFRESH STREAMING TABLE (rows are appended) or MATERIALIZED VIEW (equals its query); or CREATE TABLE "
    "without AS, which flows fill.",
    "VIEW": "Write CREATE TEMPORARY VIEW (for this pipeline alone), or CREATE OR REFRESH MATERIALIZED VIEW (stored, for all).",
    "FUNCTION": "Write the expression into the query, or register a function in a Python source.",
    "SCHEMA": "Folders of schemas are made with the first table.",
    "DATABASE": "Folders of schemas are made with the first table.",
    "CATALOG": "Folders of catalogs are made with the first table.",
}


def instead(words: Sequence[str]) -> str | None:
    """What to do instead of a statement that does something at once, by its first words; None where it is none of those."""
    upper = [word.upper() for word in words if word != "("]
    if upper[:1] == ["ALTER"]:
        said = next((remedy for word, remedy in _ALTERED.items() if word in upper), None)
        return said or f"Write it {_INTO}; {_ELSEWHERE}."
    if not upper or upper[0] != "CREATE":
        return _FORBIDDEN.get(upper[0]) if upper else None
    created = next((word for word in upper[1:] if word not in _BETWEEN), "")
    return _CREATED.get(created)


def nearest_form(words: Sequence[str]) -> str:
    """The remedy for a statement that begins with these words: the form most like it."""
    beginning = " ".join(word.upper() for word in words[:5])
    heads = {head[: len(beginning) + 4]: head for head in FORMS}
    near = nearest(beginning, FORMS, cutoff=0.5) or heads.get(nearest(beginning, heads, cutoff=0.5) or "")
    if near is not None:
        return f"The nearest form: {FORMS[near]}."
    return "A source declares: CREATE STREAMING TABLE, MATERIALIZED VIEW, TEMPORARY VIEW, FLOW; it may SET and USE."
