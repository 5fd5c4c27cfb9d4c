"""A file that can't be read to its end gives no row, and one entry in the quarantine; all others are taken in."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.in_step import Share, Steps, in_step

import replay_quarantine
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import StagedAppend

LINES = """
@dp.table
@dp.expect_or_quarantine("small", "id < 1000")
def orders():
    rows = spark.readStream.schema("id INT, note STRING").option("maxFilesPerTrigger", 3).json(LANDING + "/lines")
    return rows.select("id")
"""
# Two streams into one table; of the second each row gives two, and it is read twice.
COLUMNS = """
@dp.table
@dp.expect_or_quarantine("small", "id < 1000")
def both():
    columns = spark.readStream.format("cloudFiles").option("cloudFiles.format", "parquet").load(LANDING + "/columns")
    rows = spark.readStream.schema("id INT, note STRING").json(LANDING + "/more")
    more = rows.select(F.explode(F.array("id", F.col("id") + 1)).alias("id")).union(rows.where("id < 0").select("id"))
    return columns.select(F.col("id").cast("int").alias("id")).union(more)
"""


def packed(path: Path, ids: range, *, cut: bool = False) -> Path:
    """A file of JSON lines, packed; ``cut`` off long after its first rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps({"id": i, "note": f"{i * 7919 % 104729:x}"}) + "\n" for i in ids)
    data = gzip.compress(text.encode())
    hidden = path.with_name(f".{path.name}")
    hidden.write_bytes(data[: len(data) * 2 // 3] if cut else data)
    hidden.rename(path)
    return path


def files_held(case: Any, name: str = "orders") -> list[tuple[str, str]]:
    """The files in a quarantine, and how they stand."""
    rows = case.rows(f"{name}_quarantine", "_row, _status, error_reason, _file")
    of_files = [row for row in rows if row[2] == "unreadable_file"]
    assert all(unquote(row[3]).endswith(json.loads(row[0])["path"]) for row in of_files)
    return sorted((json.loads(row[0])["path"].rpartition("/")[2], row[1]) for row in of_files)


def ids(case: Any, name: str = "orders") -> list[int]:
    """The rows of a table."""
    return [row[0] for row in case.rows(name, "id")]


def replayed(case: Share, table: str, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Run a replay in this process; its exit code, and what it says of each flow."""
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}", "--json"]
    shown = io.StringIO()
    with redirect_stdout(shown):
        code = replay_quarantine.main([str(case.folder), case.own(table), *arguments, *roots])
    return code, json.loads(shown.getvalue().splitlines()[-1]).get("flows", [])


def batches(case: Any, flow: str = "orders") -> list[tuple[int, int, int]]:
    """Rows written, rows and files quarantined, of each batch."""
    bodies = [r["details"]["flow_progress"] for r in case.events(flow=flow, level="METRICS")]
    return [
        (
            body["metrics"]["num_output_rows"],
            body["data_quality"]["quarantined_records"],
            body["data_quality"].get("quarantined_files", 0),
        )
        for body in bodies
    ]


def a_file_that_is_cut_off(case: Share) -> Steps:
    """No row before the damage is taken in; a kill between the commits doubles nothing; mended, the file is replayed once."""
    case.rewrite(LINES)
    folder = case.landing / "lines"
    packed(folder / "a.json.gz", range(5))
    broken = packed(folder / "b (1) ü.json.gz", range(100, 20100), cut=True)
    (folder / "c.json.gz").write_text('{"id": 7}\n')  # no archive at all
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StagedAppend, "commit", lambda *_: 1 / 0)
        assert (yield).state == "FAILED"
    assert files_held(case) == [("b (1) ü.json.gz", "held"), ("c.json.gz", "held")]
    packed(folder / "d.json.gz", range(5, 9))
    report = yield
    assert report.state == "COMPLETED", report.error
    assert ids(case) == list(range(9))
    assert files_held(case) == [("b (1) ü.json.gz", "held"), ("c.json.gz", "held")]
    assert batches(case) == [(5, 0, 2), (4, 0, 0)]
    details = json.loads(case.rows("orders_quarantine", "_row", "1")[0][0])
    assert details["size"] == broken.stat().st_size
    assert "end of input stream" in details["error"]
    check_replay(case, broken)
    assert (yield).state == "COMPLETED"
    assert ids(case) == [*range(9), *range(100, 104), 999]


def check_replay(case: Share, broken: Path) -> None:
    """What still can't be read stays; a replay that is killed on either side of the commit is settled by the next."""
    assert replayed(case, "orders")[1][0] == {
        "flow": case.own("orders"), "method": "file", "replayed": 0, "held": 0, "dropped": 0, "left_out": 0,
        "files": 0, "damaged_files": 2,
    }  # fmt: skip
    packed(broken, range(100, 104))
    packed(broken.with_name("c.json.gz"), range(999, 1002))
    write = DeltaAppend.write

    def before(*_: object) -> None:
        raise RuntimeError("killed")

    def after(*arguments: Any) -> None:
        write(*arguments)
        raise RuntimeError("killed")

    for dying in (before, after):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(DeltaAppend, "write", dying)
            assert replayed(case, "orders")[0] == 1
        assert [status for _, status in files_held(case)] == ["replaying", "replaying"]
    assert replayed(case, "orders")[1][0]["replayed"] == 0
    assert [status for _, status in files_held(case)] == ["replayed", "replayed"]
    assert ids(case) == [*range(9), *range(100, 104), 999]
    quarantined = case.rows("orders_quarantine", "id, _status, error_reason, _source_record, _batch", "1")
    rows = [(row[:3], json.loads(row[3])["id"], row[4]) for row in quarantined if row[0] is not None]
    assert rows == [((1000, "held", "small"), 1000, None), ((1001, "held", "small"), 1001, None)]


def streams_of_two_sources(case: Share) -> Steps:
    """A damaged Parquet file of one source leaves the other's files alone; nothing fails, nothing is missing."""
    yield  # nothing is committed in the first update
    case.rewrite(COLUMNS)
    good = case.landing / "columns"
    case_rows = pytest.importorskip("pyarrow").table({"id": [1, 2, 3000]})
    from pyarrow import parquet

    good.mkdir(parents=True)
    parquet.write_table(case_rows, good / "a.parquet")
    data = (good / "a.parquet").read_bytes()
    packed(case.landing / "more" / "m.json.gz", range(10, 12))
    case.manifest()
    (good / "b.parquet").write_bytes(data[:-20])
    packed(case.landing / "more" / "n.json.gz", range(20, 3000), cut=True)
    report = yield
    assert report.state == "COMPLETED", report.error
    assert ids(case, "both") == [1, 2, 10, 11, 11, 12]
    assert files_held(case, "both") == [("b.parquet", "held"), ("n.json.gz", "held")]
    assert batches(case, "both") == [(6, 1, 2)]
    (good / "b.parquet").write_bytes(data)
    packed(case.landing / "more" / "n.json.gz", range(20, 22))
    code, flows = replayed(case, "both", "--rule", "unreadable_file")
    assert (code, flows[0]["replayed"], flows[0]["held"], flows[0]["files"]) == (0, 6, 1, 2)
    assert ids(case, "both") == [1, 1, 2, 2, 10, 11, 11, 12, 20, 21, 21, 22]


def without_a_quarantine(case: Share) -> Steps:
    """The flow fails, names the file, and says what can be done."""
    yield
    case.rewrite(LINES.replace("expect_or_quarantine", "expect_or_drop"))
    packed(case.landing / "lines" / "b.json.gz", range(20000), cut=True)
    report = yield
    assert report.state == "FAILED"
    assert "b.json.gz" in str(report.error)
    assert "expect_or_quarantine" in report.error.remedy


@pytest.mark.usefixtures("pipeline")
def test_files_that_can_not_be_read(tmp_path: Path):
    """With a quarantine, in one source or two, and without: what the docstrings say."""
    # The one whose replays resolve the pipeline several times is the last: by then the others have left it.
    scenarios = [without_a_quarantine, streams_of_two_sources, a_file_that_is_cut_off]
    in_step(tmp_path, ("orders", "both"), scenarios)
