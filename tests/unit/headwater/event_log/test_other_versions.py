"""A log that another version wrote: read and gone on with, never broken."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.event_log import details, reader
from headwater.event_log.conditions import EventLogUnreadable
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.event import arrow_schema, event_table
from headwater.event_log.retention import maintain_event_log
from headwater.event_log.writer import EventLogWriter


def write_update(folder, update):
    with EventLogWriter(folder, "orders", "Orders", update, "r1") as log:
        log.emit("create_update", "asked for", details=details.create_update())
        body = details.flow_progress(FlowStatus.COMPLETED, metrics={"num_output_rows": 3})
        log.emit("flow_progress", "done", flow="bronze", dataset="bronze", epoch=1, batch_id=0, details=body)
        log.emit("update_progress", "ended", details=details.update_progress(UpdateState.COMPLETED))


def rewritten(folder, change):
    """Write the log's rows again, as ``change`` makes of them: what another version would have written."""
    path = event_table(folder)
    rows = pa.table(DeltaTable(str(path)).to_pyarrow_table())
    for file in sorted(path.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    write_deltalake(str(path), change(rows))


def older(rows):
    """Without columns and parts that came later."""
    origin = [
        {k: v for k, v in o.items() if k not in ("request_id", "epoch", "sink_name")}
        for o in rows["origin"].to_pylist()
    ]
    kept = rows.drop_columns(["maturity_level", "error", "origin"])
    return kept.append_column("origin", pa.array(origin))


def newer(rows):
    """With a column and a part of the origin that this version does not know, in another order."""
    origin = [{"region": "here", **o} for o in rows["origin"].to_pylist()]
    more = rows.drop_columns(["origin"]).append_column("origin", pa.array(origin))
    return more.append_column("weight", pa.array([1.5] * rows.num_rows))


@pytest.mark.parametrize("change", [older, newer])
def test_read_and_gone_on_with(tmp_path, change):
    """Every question is answered over the other version's log, before and after this version has written to it."""
    write_update(tmp_path, "u1")
    rewritten(tmp_path, change)
    assert [e["event_type"] for e in reader.events(tmp_path)] == [
        "create_update",
        "flow_progress",
        "update_progress",
    ]
    assert reader.latest_update(tmp_path).state == "COMPLETED"
    names = reader.log_names(tmp_path)
    assert (names.flows, names.updates) == (("bronze",), ("u1",))
    assert [f.output_rows for f in reader.flow_results(tmp_path, update_id="u1")] == [3]
    assert reader.events(tmp_path)[0]["origin"]["request_id"] == (None if change is older else "r1")
    assert reader.last_batches(tmp_path) == {}

    write_update(tmp_path, "u2")
    assert [u.update_id for u in reader.updates(tmp_path)] == ["u1", "u2"]
    assert reader.events(tmp_path)[-1]["origin"]["request_id"] == "r1"
    assert len(reader.events(tmp_path, request_id="r1")) == (3 if change is older else 6)
    maintain_event_log(tmp_path, 1)
    assert len(reader.events(tmp_path)) == 6


def test_a_log_that_needs_a_newer_version(tmp_path):
    """A table with a feature that is not known here is reported as such, with what to do; it is left as it is."""
    write_update(tmp_path, "u1")
    first = event_table(tmp_path) / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    newer_protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["notKnownHere"],
        "writerFeatures": ["notKnownHere"],
    }
    written = [{"protocol": newer_protocol} if "protocol" in action else action for action in actions]
    first.write_text("".join(json.dumps(action) + "\n" for action in written))
    before = sorted(first.parent.iterdir())
    with pytest.raises(EventLogUnreadable, match="notKnownHere"):
        reader.events(tmp_path)
    assert sorted(first.parent.iterdir()) == before


@pytest.mark.parametrize(
    "damage", ["a commit that ends in its middle", "an empty commit", "a data file that is gone"]
)
def test_a_damaged_log(tmp_path, damage: str):
    """One line says what delta-rs says, without the frames of its code, and what to do: not an error that nobody foresaw."""
    write_update(tmp_path, "u1")
    if damage == "a data file that is gone":
        for file in event_table(tmp_path).glob("*.parquet"):
            file.unlink()
    else:
        last = max((event_table(tmp_path) / "_delta_log").glob("*.json"))
        last.write_text(last.read_text()[: 40 if "middle" in damage else 0])
    with pytest.raises(EventLogUnreadable) as raised:
        reader.events(tmp_path)
    assert "\n" not in raised.value.what
    assert "aside" in raised.value.remedy


def test_details_of_another_type(tmp_path):
    """Details that are a struct of the table's, and no text, are read as they are."""
    write_update(tmp_path, "u1")
    rewritten(
        tmp_path,
        lambda rows: rows.drop_columns(["details"]).append_column(
            "details", pa.array([{"kept": number} for number in range(rows.num_rows)])
        ),
    )
    assert [e["details"] for e in reader.events(tmp_path)] == [{"kept": 0}, {"kept": 1}, {"kept": 2}]


def test_other_details_are_no_fault(tmp_path):
    """Records whose details are not JSON, or of a type or status that is not known here, are shown and left out of sums."""
    write_update(tmp_path, "u1")

    def strange(rows):
        texts = [
            "{not json",
            '{"flow_progress":{"status":"HIBERNATING"}}',
            '{"update_progress":{"state":"COMPLETED"}}',
        ]
        place = rows.column_names.index("details")
        return rows.sort_by("timestamp").set_column(place, "details", pa.array(texts))

    rewritten(tmp_path, strange)
    assert reader.events(tmp_path)[0]["details"] == {}
    assert reader.flow_results(tmp_path, update_id="u1") == []
    assert reader.latest_update(tmp_path).state == "COMPLETED"


def test_todays_log_has_todays_columns(tmp_path):
    """What this version writes has exactly its own schema: nothing is rewritten for the usual case."""
    write_update(tmp_path, "u1")
    assert [f.name for f in DeltaTable(str(event_table(tmp_path))).schema().fields] == arrow_schema().names
