"""Which kind a dataset is, and what a flow that does not fit is advised, in the language it is written in."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import dataset, flow

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source_location import SourceLocation
from headwater.errors import NotADataFrame
from headwater_spark.resolution.dataset_kinds import resolved_kind

STREAM, BATCH = (SimpleNamespace(isStreaming=streams) for streams in (True, False))


@pytest.mark.parametrize(
    ("kind", "frame", "file", "remedy"),
    [
        (DatasetKind.STREAMING_TABLE, BATCH, "a.py", "spark.readStream"),
        (DatasetKind.STREAMING_TABLE, BATCH, "a.sql", "FROM STREAM table"),
        (DatasetKind.MATERIALIZED_VIEW, STREAM, "a.py", "spark.read or"),
        (DatasetKind.MATERIALIZED_VIEW, STREAM, "a.SQL", "Leave STREAM out"),
    ],
)
def test_the_remedy_is_in_the_flows_language(kind: DatasetKind, frame: Any, file: str, remedy: str):
    """Who wrote SQL is shown SQL."""
    one = replace(flow(), location=SourceLocation(file, 3))
    with pytest.raises(NotADataFrame) as caught:
        resolved_kind(replace(dataset(), kind=kind), [(one, frame)])
    assert remedy in str(caught.value.remedy)
    assert caught.value.where == str(one.location)


@pytest.mark.parametrize(
    ("frame", "kind"), [(STREAM, DatasetKind.STREAMING_TABLE), (BATCH, DatasetKind.MATERIALIZED_VIEW)]
)
def test_a_table_is_what_its_own_query_gives(frame: Any, kind: DatasetKind):
    """``@dp.table`` makes a streaming table of a stream, and a materialized view of a batch."""
    table = replace(dataset(), kind=DatasetKind.TABLE)
    assert resolved_kind(table, [(replace(flow(), name=table.name), frame)]) is kind
