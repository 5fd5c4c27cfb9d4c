"""The clauses between a dataset's columns and its query, under the names that the Python face has for them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokenizer_core import TokenType

from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.parser import StatementParser
from headwater.sql_sources.schedule import read_schedule

_CLAUSES = (
    "USING", "PARTITIONED BY", "CLUSTER BY", "LOCATION", "COMMENT", "TBLPROPERTIES", "REFRESH POLICY", "SCHEDULE", "AS",
    "FLOW",
)  # fmt: skip
_REFUSED = {
    ("TRIGGER",): (
        "TRIGGER ON UPDATE",
        "Take it out, and let data that arrives begin the runs: `airflow: {schedule: on_data}` in pipeline.yml; `on_data` there has the "
        "quiet time and the least amounts.",
    ),
    ("WITH", "ROW", "FILTER"): (
        "WITH ROW FILTER",
        "Open Delta has no row filters. Filter in the query, or publish a filtered materialized view.",
    ),
    ("ROW", "FILTER"): ("ROW FILTER", "Open Delta has no row filters. Filter in the query."),
    ("DEFAULT", "COLLATION"): ("DEFAULT COLLATION", "Give columns their collation: name STRING COLLATE UTF8_LCASE."),
    ("TAGS",): ("TAGS", "There is no catalog that keeps them. Use TBLPROPERTIES."),
}  # fmt: skip


def read_clauses(parser: StatementParser, *, of_view: bool) -> dict[str, object]:
    """Read clauses up to AS, FLOW or the end, in any order, each once; the Python face's arguments for them.

    Raises:
        SqlNotUnderstood: an unknown clause, or one that is there twice.
        UnsupportedArgument: one that can't be honoured.
    """
    arguments: dict[str, object] = {}
    clauses: dict[tuple[str, ...], _Clause] = (_OF_VIEW if of_view else _STORED) | {("COMMENT",): _comment}
    while not (parser.at_end or parser.see("AS") or parser.see("FLOW") or query_begins(parser)):
        token = parser.current
        for refused, (what, remedy) in _REFUSED.items():
            if parser.see(*refused):
                parser.unsupported(what, token, remedy)
        words = next((words for words in clauses if parser.see(*words)), None)
        if words is None:
            known = ("COMMENT", "TBLPROPERTIES", "AS") if of_view else _CLAUSES
            parser.expected("A clause", *known)
        parser.words(*words)
        for name, value in clauses[words](parser).items():
            if name in arguments:
                raise SqlNotUnderstood(
                    f"{' '.join(words)} is there twice.", where=parser.place(token), remedy="Keep one."
                )
            arguments[name] = value
    return arguments


def query_begins(parser: StatementParser) -> bool:
    """Whether a query stands here without the AS before it, which Spark's grammar lets be left out."""
    return parser.see("SELECT") or (parser.see("WITH") and not parser.see("WITH", "ROW", "FILTER"))


def _comment(parser: StatementParser) -> dict[str, object]:
    return {"comment": parser.text("The comment")}


def _using(parser: StatementParser) -> dict[str, object]:
    return {"format": parser.plain_name("a format")}


def _location(parser: StatementParser) -> dict[str, object]:
    return {"path": parser.text("The folder")}


def _partitions(parser: StatementParser) -> dict[str, object]:
    return {"partition_cols": parser.listed(lambda: parser.plain_name("a column"))}


def _clusters(parser: StatementParser) -> dict[str, object]:
    if parser.words("AUTO"):
        return {"cluster_by_auto": True}
    if parser.words("NONE"):
        return {"cluster_by": None}
    return {"cluster_by": parser.listed(lambda: parser.plain_name("a column"))}


def _policy(parser: StatementParser) -> dict[str, object]:
    policies = ("AUTO", "FULL", "INCREMENTAL")
    if not any(map(parser.see, policies)):
        parser.expected("A policy", *policies)
    policy = parser.step().lower()
    strict = policy == "incremental" and parser.words("STRICT")
    return {"refresh_policy": f"{policy}_strict" if strict else policy}


def _schedule(parser: StatementParser) -> dict[str, object]:
    return {"schedule": read_schedule(parser)}


def _properties(parser: StatementParser) -> dict[str, object]:
    return {"table_properties": dict(parser.listed(lambda: _property(parser)))}


def _property(parser: StatementParser) -> tuple[str, str]:
    first = parser.current
    quoted = first.token_type is TokenType.STRING
    # Text beside text would be one text, and the sign between key and value may be left out.
    key = parser.step() if quoted else parser.name("a property")
    parser.words("=")
    return key, parser.scalar(f"The value of {key}")


_Clause = Callable[[StatementParser], dict[str, object]]
_OF_VIEW: dict[tuple[str, ...], _Clause] = {("TBLPROPERTIES",): _properties}
_STORED: dict[tuple[str, ...], _Clause] = {
    ("USING",): _using,
    ("PARTITIONED", "BY"): _partitions,
    ("CLUSTER", "BY"): _clusters,
    ("LOCATION",): _location,
    ("TBLPROPERTIES",): _properties,
    ("REFRESH", "POLICY"): _policy,
    ("SCHEDULE",): _schedule,
}
