"""The settings of a session that decide about the rows of a query: where one is another, its view is recomputed.

Decision 0162.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyspark

TIME_ZONE = "spark.sql.session.timeZone"
_DECIDING = (
    "spark.sql.ansi.enabled", TIME_ZONE, "spark.sql.caseSensitive", "spark.sql.mapKeyDedupPolicy",
    "spark.sql.timestampType", "spark.sql.storeAssignmentPolicy", "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.charAsVarchar", "spark.sql.readSideCharPadding", "spark.sql.groupByOrdinal", "spark.sql.orderByOrdinal",
)  # fmt: skip
# Noted where somebody has set one. Spark reads them while a query runs, so that its plan does not say which value it was made with.
_WHERE_SET = (
    "spark.sql.legacy.", "spark.sql.json.", "spark.sql.jsonGenerator.", "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.variant.", "spark.sql.icu.", "spark.sql.execution.pythonUDF.", "spark.sql.execution.pyspark.binaryAsBytes",
    "spark.sql.execution.pandas.convertToArrowArraySafely", "spark.sql.execution.pandas.inferPandasDictAsMap",
    "spark.sql.files.ignore", "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.avro.datetimeRebaseModeInRead",
)  # fmt: skip


def deciding_settings(session: Any, own: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that decide about rows, with Spark's version.

    Args:
        session: of the query.
        own: the flow's own settings.
    """
    known = session._jsparkSession.sessionState().conf().settings()  # noqa: SLF001 - only those that are set
    # As one text: each key by itself is two calls, and to ask for one that is not set is one.
    there = str(known.keySet().toString()).strip("[]").split(", ")
    chosen = [key for key in there if key in _DECIDING or key.startswith(_WHERE_SET)]
    deciding = {"spark": str(pyspark.__version__), **{key: str(session.conf.get(key)) for key in chosen}}
    return deciding | {key: value for key, value in own.items() if key.startswith(_WHERE_SET)}
