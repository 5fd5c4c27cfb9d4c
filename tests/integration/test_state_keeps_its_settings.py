"""State is kept as it was laid down first, whatever the settings become; functions keep state that can be read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.in_step import Share, Steps, in_step

from headwater.commands.command_line import main
from headwater.errors import QueryFailed

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = "org.apache.spark.sql.execution.streaming.state."
SOURCE = """
def landed():
    return spark.readStream.schema("id INT, user STRING").json(LANDING)

@dp.table
def plain():
    return landed()

@dp.table
def usual():
    return landed().dropDuplicates(["id"])

@dp.table(spark_conf={})
def chosen():
    return landed().dropDuplicates(["id"])
"""
FUNCTIONS = """
import datetime as dt

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

def landed():
    return spark.readStream.schema("id INT, user STRING").option("maxFilesPerTrigger", 1).json(LANDING)

class Collected(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getListState("seen", "id INT")

    def handleInputRows(self, key, rows, timers):
        for frame in rows:
            for number in frame["id"]:
                self.seen.appendValue((int(number),))
        ids = sorted(value[0] for value in self.seen.get())
        yield pd.DataFrame({"user": [key[0]], "ids": ["+".join(map(str, ids))]})

    def close(self):
        pass

def as_text(key, frames, state):
    seen = [state.get[0]] if state.exists else []
    for frame in frames:
        seen += [str(number) for number in sorted(frame["id"])]
    state.update(("+".join(seen),))
    yield pd.DataFrame({"user": [key[0]], "ids": ["+".join(seen)]})

@dp.table
def in_a_list():
    return landed().groupBy("user").transformWithStateInPandas(Collected(), "user STRING, ids STRING", "Append", "None")

def with_values(key, frames, state):
    seen, by_time = state.get if state.exists else ([], {})
    assert state.getOption is None or isinstance(by_time, dict)
    for frame in frames:
        seen = [*seen, *(Row(id=int(number), text=None) for number in sorted(frame["id"]))]
        by_time[dt.datetime(2024, 1, len(seen))] = [len(seen)]
    state.update((seen, by_time))
    yield pd.DataFrame({"user": [key[0]], "ids": ["+".join(str(row.id) for row in seen)]})

@dp.table
def in_values():
    kinds = "Seen ARRAY<STRUCT<id: INT, text: STRING>>, byTime MAP<TIMESTAMP, ARRAY<INT>>"
    return landed().groupBy("user").applyInPandasWithState(with_values, "user STRING, ids STRING", kinds, "append", "NoTimeout")

@dp.table
def in_a_text():
    return landed().groupBy("user").applyInPandasWithState(as_text, "user STRING, ids STRING", "seen STRING", "append", "NoTimeout")
"""


def settings(partitions: int, store: str) -> dict[str, str]:
    """The settings of a flow."""
    return {PARTITIONS: str(partitions), PROVIDER: STORES + store}


def later_settings_are_for_flows_that_begin_anew(case: Share) -> Steps:
    """A flow goes on with its first partitions and state store, and an update says so; after a full refresh it has those of then."""
    first, later = settings(3, "HDFSBackedStateStoreProvider"), settings(5, "RocksDBStateStoreProvider")
    case.rewrite(SOURCE.replace("{}", repr(first)))

    def kept(flow: str) -> tuple[dict[str, str], int]:
        checkpoint = case.checkpoint(flow)
        state = checkpoint.read_state()
        folder = checkpoint.epoch_folder(state.epoch) / "state" / "0"
        laid_down = [part for part in folder.glob("*") if part.name.isdigit()]
        return dict(state.state_settings), len(laid_down)

    case.land([{"id": n, "user": "a"} for n in (1, 1, 2)])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert kept("plain") == ({}, 0)
    assert kept("usual") == (settings(2, "RocksDBStateStoreProvider"), 2)
    assert kept("chosen") == (first, 3)
    case.rewrite(SOURCE.replace("{}", repr(later)))
    case.land([{"id": n, "user": "a"} for n in (2, 3)])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert kept("chosen") == (first, 3)
    ignored = {
        (record["origin"]["flow_name"], body["setting"]): (body["kept"], body["asked"])
        for record in case.events(event_type=("operation_progress",), level="WARN")
        for body in [record["details"]["operation_progress"]]
        if body["type"] == "STATE_SETTING_KEPT"
    }
    assert ignored == {(case.own("chosen"), key): (first[key], later[key]) for key in (PARTITIONS, PROVIDER)}
    assert case.rows("chosen", "id") == case.rows("usual", "id") == [(1,), (2,), (3,)]
    assert (yield {"full_refresh": ("chosen",)}).state == "COMPLETED"
    assert kept("chosen") == (later, 5)
    assert case.rows("chosen", "id") == [(1,), (2,), (3,)]


def functions_keep_lists(case: Share) -> Steps:
    """A list goes from batch to batch and from update to update, as list state, as text or as itself, also under another name."""
    case.rewrite(FUNCTIONS)
    case.land([{"id": 1, "user": "a"}, {"id": 2, "user": "b"}])
    case.land([{"id": 3, "user": "a"}])
    report = yield
    assert report.state == "COMPLETED", report.error
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    names = (case.own("in_a_list"), case.own("listed"))
    assert main(["rename", str(case.folder), *names, "--yes", *roots]) == 0
    case.rewrite(FUNCTIONS.replace("in_a_list", "listed"))
    case.land([{"id": 4, "user": "a"}])
    report = yield
    assert report.state == "COMPLETED", report.error
    for table in ("listed", "in_a_text", "in_values"):
        assert case.rows(table) == [("a", "1"), ("a", "1+3"), ("a", "1+3+4"), ("b", "2")]


TABLES = ("plain", "usual", "chosen", "in_a_list", "in_a_text", "in_values", "listed")


@pytest.mark.usefixtures("pipeline")
def test_state_goes_on(tmp_path: Path):
    """Its settings, and what functions keep in it: what the docstrings say."""
    in_step(tmp_path, TABLES, [later_settings_are_for_flows_that_begin_anew, functions_keep_lists])


@pytest.mark.parametrize(
    ("kind", "column"), [("seen ARRAY<INTERVAL DAY>", "seen"), ("n INT, byKey MAP<STRING, VARIANT>", "byKey")]
)
def test_arrays_of_what_is_no_json_in_a_state(pipeline, kind, column):
    """Refused before anything runs, with the column, the reason, and the two ways out."""
    case = pipeline(FUNCTIONS.replace("seen STRING", kind))
    with pytest.raises(QueryFailed, match=f"state column '{column}' of applyInPandasWithState") as refused:
        case.manifest()
    assert "lower case" in str(refused.value)
    assert "transformWithStateInPandas" in str(refused.value.remedy)
    assert case.nothing_written()
