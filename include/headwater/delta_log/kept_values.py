"""Whether delta-rs reads the values of a table as they are, and would write them again so, with true bounds of them.

Tried with deltalake 1.6.6. It reads the times of Parquet's old form (INT96, which Spark wrote by default for years) as nanoseconds, so one of
the year 9999 or 1500 comes out as another. In the bounds that it writes beside a file it leaves NaN out, which is above all numbers to
Spark, and has decimals as floats: a query would pass over files that have its rows. Decision 0262.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    checks = dict(_checks(_stored_fields(opened)))
    if None in checks.values():
        return False
    bounds = _bounds(_files(opened), checks)
    if bounds is None:
        return not checks
    return all(
        _kept(bounds, name, check, row)
        for name, check in checks.items()
        for row in range(len(bounds["num_records"]))
        if check
    )


def files_with_far_times(opened: DeltaTable) -> dict[str, str]:
    """The files of the table that have a time which nanoseconds can't hold, as far as the log says so: by path, the column."""
    names = [name for name, check in _checks(_stored_fields(opened)) if check is _within_nanoseconds]
    far: dict[str, str] = {}
    files = _files(opened) if names else None
    for name in names:
        bounds = _bounds(files, [name]) or {"path": []}
        for row, path in enumerate(bounds["path"]):
            ends = [bounds[f"{end}.{name}"][row] for end in ("min", "max")]
            if any(not _within_nanoseconds(end, end) for end in ends if end is not None):
                far.setdefault(path, name)
    return far


def _stored_fields(opened: DeltaTable) -> list[dict[str, Any]]:
    """Those whose values lie in the files."""
    partitions = set(opened.metadata().partition_columns)
    return [f for f in json.loads(opened.schema().to_json())["fields"] if f["name"] not in partitions]


def _files(opened: DeltaTable) -> Any:
    """What the log says of each file, as an Arrow table."""
    import pyarrow as pa

    return pa.table(opened.get_add_actions(flatten=True))


def _bounds(files: Any, columns: Iterable[str]) -> dict[str, list[Any]] | None:
    """What the log says of each file about these columns, moments as microseconds; None where it says nothing about one of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = {f"{kind}.{name}" for name in columns for kind in ("min", "max", "null_count")}
    names |= {"num_records", "path"}
    if files.num_rows == 0:
        return {name: [] for name in names}
    if not names <= set(files.column_names):
        return None
    return {
        name: (
            pc.cast(files[name], pa.int64()) if pa.types.is_timestamp(files[name].type) else files[name]
        ).to_pylist()
        for name in names
    }


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
