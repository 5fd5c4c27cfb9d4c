"""Which rows of a SQL text are given the column that says in which file they lie."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from headwater_spark.facade.file_metadata import METADATA, rows_with_metadata


class Rows:
    """A frame as far as it is asked: its columns, and whether it has the hidden one."""

    def __init__(self, *columns: str, hidden: bool = True) -> None:
        self.columns = list(columns)
        self._hidden = hidden

    def select(self, *_: str) -> Rows:
        if not self._hidden:
            raise AnalysisException("there is no such column")
        return Rows(*self.columns, METADATA)


FILES, TABLE, PLAIN, NAMED = Rows("id"), Rows("id"), Rows("id", hidden=False), Rows("id", METADATA)


@pytest.mark.parametrize(
    ("files", "tables", "carrying"),
    [
        ({1: FILES}, {9: TABLE}, [1]),
        ({}, {9: TABLE, 12: PLAIN}, [9]),
        ({1: PLAIN}, {9: TABLE}, [9]),
        ({}, {9: TABLE, 12: NAMED}, []),
        ({1: NAMED}, {9: TABLE}, []),
    ],
)
def test_whose_rows_have_it(files: dict[int, Any], tables: dict[int, Any], carrying: list[int]) -> None:
    """Files before tables, and none beside rows with a column of that name: the bare name has one meaning."""
    given = rows_with_metadata(files, tables)
    assert list(given) == carrying
    assert all(frame.columns == ["id", METADATA] for frame in given.values())
