"""What to write in a Python source instead of a command in ``spark.sql``."""

from __future__ import annotations

import re

_DECLARE = "Declare tables with @dp.table and dp.create_streaming_table; a source only describes queries."
_OF_FOLDERS = "Leave it out: folders of catalogs and schemas are made with the first table."
_OF_DECLARATION = (
    "Write it into the declaration of the table: table_properties={...}, comment=, cluster_by=, schema=; the next update sets it. "
    "A table that the pipeline only reads is altered where it is written."
)
# By how the text begins; the first that fits.
_REMEDIES = (
    (r"CREATE\s+(?:SCHEMA|DATABASE|CATALOG|VOLUME|EXTERNAL\s+VOLUME|EXTERNAL\s+LOCATION)\b", _OF_FOLDERS),
    (r"(?:ALTER|COMMENT\s+ON)\b", _OF_DECLARATION),
    (r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?FUNCTION\b", "Register it: spark.udf.register('f', f, 'bigint')."),
    (
        r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?(?:TEMP(?:ORARY)?\s+)?VIEW\b",
        "Decorate a function that returns its query with @dp.temporary_view.",
    ),
    (
        r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:EXTERNAL\s+)?TABLE\b",
        'Declare it: @dp.table over a function that returns its query, or dp.create_streaming_table("t", schema="id INT", '
        "table_properties={...}) for a table that flows fill.",
    ),
    (r"(?:MERGE|UPDATE|DELETE)\b", "Rows that changes replace or delete: dp.create_auto_cdc_flow; in a function under "
     "@dp.foreach_batch_sink such a statement may stand."),
    (r"INSERT\b", 'Append to a table of the pipeline with @dp.append_flow(target="t").'),
    (r"(?:OPTIMIZE|VACUUM)\b", "Leave it out: `headwater maintenance` does it."),
    (r"(?:REFRESH|MSCK|ANALYZE|CACHE|UNCACHE|CLEAR)\b", "Leave it out: tables are read as they stand."),
    (r"(?:DROP|TRUNCATE)\b", "Leave it out: `headwater drop` removes a table that is no longer declared, and `--full-refresh` fills one anew."),
    (r"(?:GRANT|REVOKE|DENY)\b", "Leave it out: rights are those of the files."),
)  # fmt: skip


def python_form(text: str) -> str:
    """The remedy for a command."""
    plain = re.sub(r"^\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*", "", text, flags=re.DOTALL)
    return next((remedy for start, remedy in _REMEDIES if re.match(start, plain, re.IGNORECASE)), _DECLARE)
