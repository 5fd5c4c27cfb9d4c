"""Whether delta-rs would write the values of a table again as they are, and true bounds of them.

Tried with deltalake 1.6.6. It reads the times of Parquet's old form (INT96, which Spark wrote by default for years) as nanoseconds, so one of
the year 9999 or 1500 comes out as another. In the bounds that it writes beside a file it leaves NaN out, which is above all numbers to
Spark, and has decimals as floats: a query would pass over files that have its rows. Decision 0262.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Within these, nanoseconds since 1970 fit 64 bits.
_FIRST, _LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (1678, 2262))
# So many digits a float has in any case.
_DIGITS_OF_FLOATS = 15
# The least and the greatest value of a file -> whether all between them are kept.
_Check = Callable[[Any, Any], bool]


def values_kept(opened: DeltaTable) -> bool:
    """Whether no value of the table, and no bound, becomes another one where delta-rs rewrites its files."""
    import pyarrow as pa
    import pyarrow.compute as pc

    partitions = set(opened.metadata().partition_columns)
    fields = [f for f in json.loads(opened.schema().to_json())["fields"] if f["name"] not in partitions]
    checks = dict(_checks(fields))
    if None in checks.values():
        return False
    files = pa.table(opened.get_add_actions(flatten=True))
    if files.num_rows == 0:
        return True
    names = {f"{kind}.{name}" for name in checks for kind in ("min", "max", "null_count")} | {"num_records"}
    if not names <= set(files.column_names):
        return not checks
    plain = {
        name: (
            pc.cast(files[name], pa.int64()) if pa.types.is_timestamp(files[name].type) else files[name]
        ).to_pylist()
        for name in names
    }
    return all(
        _kept(plain, name, check, row)
        for name, check in checks.items()
        for row in range(files.num_rows)
        if check
    )


def _kept(files: Mapping[str, list[Any]], name: str, check: _Check, row: int) -> bool:
    low, high, nulls = (files[f"{kind}.{name}"][row] for kind in ("min", "max", "null_count"))
    if low is None or high is None:
        return nulls is not None and nulls == files["num_records"][row]
    return check(low, high)


def _checks(fields: list[dict[str, Any]], above: str = "") -> Iterator[tuple[str, _Check | None]]:
    """What each column's bounds have to be, by its path; None where the type alone says that values may not be kept."""
    for field in fields:
        kind, name = field["type"], above + field["name"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _checks(kind["fields"], f"{name}.")
        elif isinstance(kind, dict):
            # What is in arrays and maps has no bounds.
            if '"timestamp"' in json.dumps(kind):
                yield name, None
        elif kind == "timestamp":
            yield name, _within_nanoseconds
        elif kind in ("float", "double"):
            yield name, _without_nan
        elif kind.startswith("decimal") and int(kind.partition("(")[2].partition(",")[0]) > _DIGITS_OF_FLOATS:
            yield name, None


def _within_nanoseconds(low: int, high: int) -> bool:
    return low >= _FIRST and high < _LAST


def _without_nan(low: float, high: float) -> bool:
    return not (math.isnan(low) or math.isnan(high))
