"""What can be done about what stands against ever refreshing a view by what changed."""

from __future__ import annotations

_LIMIT = "leave the LIMIT to those who read the view, or rank inside of groups: row_number() OVER (PARTITION BY ...)"
_IN_PYTHON = "use functions of single rows in place of it (a UDF), or Spark's own"
_BY_OPERATOR = {
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail"), _LIMIT),
    "Sample": "choose rows by their values, as pmod(xxhash64(id), 10) = 0 does",
    "LogicalRDD": "write these rows into a Delta table, and read that",
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
        _IN_PYTHON,
    ),
    "Join": "have the result contain a column by which the reads are joined, of type string, integer, decimal, boolean, date or timestamp",
    "Window": "give the window a PARTITION BY and the result a column of it, of type string, integer, decimal, boolean, date or timestamp, "
    "or rank where the view is read",
    "Deduplicate": "say which row stays: row_number() OVER (PARTITION BY the keys ORDER BY all that decides) = 1",
}  # fmt: skip
_BY_EXPRESSION = {
    "_metadata": "keep the file's name in a column of the table, when its rows are taken in",
    "CollectList": "sort what is collected: sort_array(collect_list(x))",
    "CollectSet": "sort what is collected: sort_array(collect_set(x))",
    "ListAgg": "order it: listagg(x) WITHIN GROUP (ORDER BY x)",
    "Mode": "say which of several values: mode(x, true)",
    **dict.fromkeys(("First", "Last", "AnyValue"), "say which row: min_by(x, y) or max_by(x, y)"),
    "ApproximatePercentile": "use the exact one: percentile(x, 0.5)",
}
_BY_NAME = {
    "AGGREGATE_NOT_TOP_NODE": "have the result contain a column of each GROUP BY and PARTITION BY, of type string, integer, decimal, "
    "boolean, date or timestamp; what is aggregated over all rows follows new rows alone, by count, sum, min and max",
    "TIME_FUNCTION": "compare with the clock where the view is read, or give the day as a parameter of the pipeline",
    "USER_DEFINED_FUNCTION": "declare it without asNondeterministic() if equal values give equal results",
    "EXPECTATIONS_NOT_SUPPORTED": "have such rules on the table that the view reads; rules that warn, drop or fail by single rows are no hindrance",
    "INPUT_NOT_IN_DELTA": "take the source in by a streaming table, and read that",
}


def remedy(kind: str, sub_type: str | None, operator: str | None, expression: str | None) -> str | None:
    """What to do about an issue, without a full stop; None where nothing but another query helps.

    Args:
        kind: its type; ``sub_type``: its further name, ``operator`` and ``expression``: what of the query it is about.
    """
    named = (
        _BY_OPERATOR.get(operator or ""), _BY_EXPRESSION.get(expression or ""), _BY_NAME.get(sub_type or ""), _BY_NAME.get(kind),
    )  # fmt: skip
    return next((one for one in named if one is not None), None)
