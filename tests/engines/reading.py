"""Reads tables with other engines. Runs in an environment that has them and nothing of Headwater.

``python reading.py FOLDER...`` prints JSON: for each engine and folder the sum of ``id`` and the number of rows, or the error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path


def duckdb(folder: str) -> tuple[int, int]:
    import duckdb
    import duckdb_extension_delta as extension

    (file,) = Path(extension.__file__).parent.glob("extensions/*/delta.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{file}'")
    rows, total = connection.execute("select count(*), sum(id) from delta_scan(?)", [folder]).fetchall()[0]
    return int(total), int(rows)


def polars(folder: str) -> tuple[int, int]:
    import polars as pl

    frame = pl.read_delta(folder)
    return int(frame["id"].sum()), frame.height


def delta_rs(folder: str) -> tuple[int, int]:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    query = "select sum(id) as total, count(*) as number from t"
    answer = pa.table(QueryBuilder().register("t", DeltaTable(folder)).execute(query).read_all())
    return int(answer["total"][0].as_py()), int(answer["number"][0].as_py())


ENGINES: dict[str, Callable[[str], tuple[int, int]]] = {
    "duckdb": duckdb,
    "polars": polars,
    "delta-rs": delta_rs,
}


def read(engine: str, folder: str) -> list[int] | str:
    """The sum and the number, or why not."""
    try:
        return list(ENGINES[engine](folder))
    except BaseException as error:  # an engine in Rust may panic
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    print(
        json.dumps({engine: {folder: read(engine, folder) for folder in sys.argv[1:]} for engine in ENGINES})
    )
