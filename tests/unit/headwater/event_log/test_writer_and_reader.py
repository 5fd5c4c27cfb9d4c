"""The event log: what is written is found again, once, in order, without secrets."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headwater.errors import ExpectationViolated, FlowInterrupted
from headwater.event_log import details, reader
from headwater.event_log.conditions import EventLogNotWritten
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.event import event_table
from headwater.event_log.writer import EventLogWriter


def writer(folder: Path, update: str = "u1", request: str | None = "r1") -> EventLogWriter:
    return EventLogWriter(folder, "orders", "Orders", update, request)


def batch(log: EventLogWriter, number: int, rows: int, *, flow: str = "bronze", epoch: int = 0) -> bool:
    body = details.flow_progress(
        FlowStatus.RUNNING,
        metrics={"num_input_rows": rows, "num_output_rows": rows - 1, "backlog_records": 7},
        dropped=1,
        quarantined=0,
        end_offsets={"orders": {"0": rows}},
    )
    return log.emit(
        "flow_progress", "a batch", flow=flow, dataset=flow, batch_id=number, epoch=epoch, details=body
    )


def test_missing_log_answers_nothing(tmp_path):
    """Every question to a log that does not exist yet has an empty answer."""
    assert reader.events(tmp_path) == []
    assert reader.updates(tmp_path) == []
    assert reader.latest_update(tmp_path) is None
    assert reader.flow_results(tmp_path) == []
    assert reader.last_batch(tmp_path, "bronze", 0) is None


def test_order_and_filters(tmp_path):
    """Records come back in the order of emit, and each filter and the limit keep the right ones."""
    with writer(tmp_path) as log:
        for number in range(5):
            log.emit("user_action", f"message {number}", flow=f"f{number % 2}", level="INFO")
        log.emit("user_action", "it's bad", level="WARN", dataset="o'brien")
    messages = [event["message"] for event in reader.events(tmp_path)]
    assert messages == [*(f"message {number}" for number in range(5)), "it's bad"]
    assert [e["message"] for e in reader.events(tmp_path, flow="f1")] == ["message 1", "message 3"]
    assert [e["message"] for e in reader.events(tmp_path, dataset="o'brien", level="WARN")] == ["it's bad"]
    assert [e["message"] for e in reader.events(tmp_path, limit=2)] == ["message 4", "it's bad"]
    assert reader.events(tmp_path, update_id="none") == []


def test_columns_are_lakeflows(tmp_path):
    """The table has the columns and nested fields that queries written for Lakeflow's event log name."""
    from deltalake import DeltaTable

    with writer(tmp_path) as log:
        log.emit("create_update", "made", details=details.create_update())
    schema = DeltaTable(str(event_table(tmp_path))).schema()
    fields = {field.name: json.loads(field.type.to_json()) for field in schema.fields}
    assert list(fields) == [
        *("id", "sequence", "origin", "timestamp", "message", "level"),
        *("maturity_level", "error", "details", "event_type"),
    ]
    assert fields["timestamp"] == "timestamp"
    plane = fields["sequence"]["fields"][0]
    assert (plane["name"], [f["name"] for f in plane["type"]["fields"]]) == (
        "data_plane_id",
        ["instance", "seq_no"],
    )
    origin = {f["name"]: f["type"] for f in fields["origin"]["fields"]}
    assert origin["batch_id"] == "long"
    assert origin["epoch"] == "integer"
    assert {
        "pipeline_id",
        "update_id",
        "request_id",
        "flow_id",
        "flow_name",
        "dataset_name",
        "sink_name",
    } <= set(origin)


def test_results_sum_batches_and_take_the_last_status(tmp_path):
    """A flow's rows are the sums over its batches, and its state, error and version those of the last terminal record."""
    with writer(tmp_path) as log:
        log.emit("create_update", "made", details=details.create_update())
        log.emit("update_progress", "runs", details=details.update_progress(UpdateState.RUNNING))
        for status in (FlowStatus.QUEUED, FlowStatus.STARTING):
            log.emit(
                "flow_progress",
                "",
                flow="bronze",
                dataset="bronze",
                epoch=0,
                details=details.flow_progress(status),
            )
        assert batch(log, 0, 10)
        assert batch(log, 1, 20)
        log.emit(
            "flow_progress",
            "done",
            flow="bronze",
            dataset="bronze",
            epoch=0,
            details=details.flow_progress(FlowStatus.COMPLETED, version=4),
        )
        log.emit(
            "flow_progress",
            "bad",
            flow="silver",
            dataset="silver",
            details=details.flow_progress(FlowStatus.FAILED, will_retry=False),
            error=ExpectationViolated("Row breaks positive."),
        )
        log.emit("update_progress", "failed", details=details.update_progress(UpdateState.FAILED))
    bronze, silver = reader.flow_results(tmp_path)
    assert (bronze.state, bronze.input_rows, bronze.output_rows, bronze.dropped_rows) == (
        "COMPLETED",
        30,
        28,
        2,
    )
    assert (bronze.batches, bronze.backlog_records, bronze.version) == (2, 7, 4)
    assert bronze.seconds is not None
    assert bronze.finished
    assert silver.state == "FAILED"
    assert "Row breaks positive." in (silver.error or "")
    latest = reader.latest_update(tmp_path)
    assert latest is not None
    assert (latest.update_id, latest.request_id, latest.state) == ("u1", "r1", "FAILED")


def test_terminal_record_alone_carries_totals(tmp_path):
    """A flow without batch records (a materialized view) has the numbers of its terminal record."""
    with writer(tmp_path) as log:
        body = details.flow_progress(FlowStatus.COMPLETED, metrics={"num_output_rows": 12}, version=3)
        log.emit("flow_progress", "done", flow="gold", dataset="gold", details=body)
    (gold,) = reader.flow_results(tmp_path, update_id="u1")
    assert (gold.output_rows, gold.batches, gold.state) == (12, 0, "COMPLETED")


def test_a_views_rows_and_its_quality_stand_in_two_records(tmp_path):
    """The rows are in its one batch, what rules kept out is in its end, as on Lakeflow; together they are the flow's."""
    with writer(tmp_path) as log:
        body = details.flow_progress(FlowStatus.RUNNING, metrics={"num_input_rows": 9, "num_output_rows": 6})
        log.emit("flow_progress", "", level="METRICS", flow="gold", dataset="gold", details=body)
        body = details.flow_progress(FlowStatus.COMPLETED, dropped=2, quarantined=1)
        log.emit("flow_progress", "done", flow="gold", dataset="gold", details=body)
    (gold,) = reader.flow_results(tmp_path, update_id="u1")
    assert (gold.input_rows, gold.output_rows, gold.dropped_rows, gold.quarantined_rows) == (9, 6, 2, 1)
    assert (gold.batches, gold.state) == (1, "COMPLETED")


def test_request_joins_its_attempts(tmp_path):
    """Results of a request add up its updates; an attempt that left a flow out does not hide what was done."""
    with writer(tmp_path, "u1") as log:
        batch(log, 0, 10)
        log.emit("flow_progress", "", flow="bronze", details=details.flow_progress(FlowStatus.COMPLETED))
        body = details.flow_progress(FlowStatus.FAILED, will_retry=True)
        log.emit(
            "flow_progress", "", flow="silver", details=body, error=FlowInterrupted("The broker went away.")
        )
    with writer(tmp_path, "u2") as log:
        log.emit("flow_progress", "", flow="bronze", details=details.flow_progress(FlowStatus.EXCLUDED))
        log.emit("flow_progress", "", flow="silver", details=details.flow_progress(FlowStatus.STARTING))
        batch(log, 0, 5, flow="silver")
        log.emit("flow_progress", "", flow="silver", details=details.flow_progress(FlowStatus.COMPLETED))
    bronze, silver = reader.flow_results(tmp_path, request_id="r1")
    assert (bronze.state, bronze.input_rows, bronze.update_id) == ("COMPLETED", 10, "u1")
    assert (silver.state, silver.input_rows, silver.update_id, silver.error) == ("COMPLETED", 5, "u2", None)


def test_replayed_batch_is_recorded_once(tmp_path):
    """A batch that the log holds is left out, in the same run and after a restart that knows of it."""
    with writer(tmp_path) as log:
        assert batch(log, 0, 10)
        assert batch(log, 1, 10)
        assert not batch(log, 1, 10)
    assert reader.last_batch(tmp_path, "bronze", 0) == 1
    assert reader.last_batch(tmp_path, "bronze", 1) is None
    with writer(tmp_path, "u2") as log:
        log.set_known_batches("bronze", 0, reader.last_batch(tmp_path, "bronze", 0))
        assert not batch(log, 1, 10)
        assert batch(log, 2, 10)
        assert batch(log, 0, 10, epoch=1)
    records = reader.events(tmp_path, flow="bronze")
    assert [(r["origin"]["epoch"], r["origin"]["batch_id"]) for r in records] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]


def test_batch_ids_are_the_same_in_another_process(tmp_path):
    """The id of a batch's record depends on nothing but pipeline, flow, epoch and batch."""
    for place in ("a", "b"):
        with writer(tmp_path / place) as log:
            batch(log, 3, 10)
    first, second = (reader.events(tmp_path / place)[0]["id"] for place in ("a", "b"))
    assert first == second


def test_secrets_are_taken_out(tmp_path):
    """Neither messages nor details nor errors keep what stands behind a secret's name."""
    hidden = "hunter2-very-secret"
    with writer(tmp_path) as log:
        log.emit(
            "flow_progress",
            f"can't log in: password={hidden}; kafka://user:{hidden}@broker:9092",
            details={
                "options": {"kafka.sasl.jaas.config": f'X required password="{hidden}";', "path": "/data"},
                "list": [{"fs.azure.account.key.x": hidden}, f"SharedAccess sas={hidden}"],
                "tokens": 5,
            },
            error=FlowInterrupted(f"bad client_secret: '{hidden}'"),
        )
    (event,) = reader.events(tmp_path)
    assert hidden not in json.dumps(event, default=str)
    assert event["details"]["options"]["path"] == "/data"
    assert event["details"]["tokens"] == 5
    assert event["message"].startswith("can't log in: password=[redacted]")


def test_ordinary_sentences_stay(tmp_path):
    """What only resembles a secret's name stays as it was written."""
    text = "Disaster: sasl.mechanism=PLAIN, file:///a/b.json at 10:15, path=/data"
    with writer(tmp_path) as log:
        log.emit("user_action", text)
    assert reader.events(tmp_path)[0]["message"] == text


def test_long_texts_are_cut(tmp_path):
    """A message or detail over 8 kB is cut and says so, and the details stay JSON."""
    with writer(tmp_path) as log:
        log.emit("user_action", "é" * 10_000, details={"explain": "x" * 100_000, "kept": 1})
    (event,) = reader.events(tmp_path)
    assert len(event["message"].encode()) <= 8192
    assert "20000 bytes" in event["message"]
    assert len(event["details"]["explain"]) <= 8192
    assert event["details"]["kept"] == 1


def test_thread_writes_without_being_asked(tmp_path, monkeypatch):
    """Events reach the table about a second later although nobody calls flush."""
    import time

    monkeypatch.setattr("headwater.event_log.writer.FLUSH_SECONDS", 0.05)
    log = writer(tmp_path)
    try:
        log.emit("user_action", "hello")
        deadline = time.monotonic() + 20
        while not reader.events(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(reader.events(tmp_path)) == 1
    finally:
        log.close()


def test_failed_append_is_kept_and_written_later(tmp_path, caplog):
    """An append that fails loses nothing: the next one writes the same events."""
    place = tmp_path / "system"
    place.write_text("in the way")
    log = writer(tmp_path)
    log.emit("user_action", "first")
    with pytest.raises(EventLogNotWritten):
        log.flush()
    place.unlink()
    log.emit("user_action", "second")
    log.close()
    assert [event["message"] for event in reader.events(tmp_path)] == ["first", "second"]
    assert "can't be written for now" in caplog.text


def test_a_damaged_log_is_told_from_a_full_disk(tmp_path):
    """What delta-rs says of it is one line, without its stack; what helps is named, and helps."""
    for text in ("first", "second"):
        with writer(tmp_path) as log:
            log.emit("user_action", text)
    table = tmp_path / "system" / "events"
    newest = max((table / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:200])
    log = writer(tmp_path)
    log.emit("user_action", "third")
    with pytest.raises(EventLogNotWritten) as caught:
        log.flush()
    assert "\n" not in caught.value.what
    assert "headwater events" in caught.value.remedy
    table.rename(tmp_path / "aside")
    log.close()
    assert [event["message"] for event in reader.events(tmp_path)] == ["third"]


def test_close_that_fails_shows_the_events(tmp_path, capsys):
    """Events that can't be written at the end are printed to standard error, and close raises."""
    (tmp_path / "system").write_text("in the way")
    log = writer(tmp_path)
    log.emit("user_action", "nearly lost")
    with pytest.raises(EventLogNotWritten):
        log.close()
    assert "nearly lost" in capsys.readouterr().err


def test_error_column_holds_the_cause_and_the_stack(tmp_path):
    """An exception is recorded with its class, its cause and the lines it passed; transient ones are not fatal."""

    def broken() -> None:
        raise ValueError("root")

    try:
        try:
            broken()
        except ValueError as cause:
            raise FlowInterrupted("The broker went away.") from cause
    except FlowInterrupted as error:
        with writer(tmp_path) as log:
            log.emit("flow_progress", "failed", error=error)
    column = reader.events(tmp_path)[0]["error"]
    assert column["fatal"] is False
    assert [e["class_name"] for e in column["exceptions"]] == [
        "headwater.errors.FlowInterrupted",
        "ValueError",
    ]
    assert column["exceptions"][1]["stack"][0]["method_name"] == "broken"


def test_closed_writer_refuses(tmp_path):
    """Nothing can be emitted into a closed writer, where it would be lost."""
    log = writer(tmp_path)
    log.close()
    log.close()
    with pytest.raises(EventLogNotWritten):
        log.emit("user_action", "too late")


def test_many_small_files_are_compacted(tmp_path, monkeypatch):
    """A writer that closes joins the many small files that long updates leave, and no record is lost."""
    from deltalake import DeltaTable

    monkeypatch.setattr("headwater.event_log.writer._COMPACT_ABOVE_FILES", 3)
    log = writer(tmp_path)
    for number in range(5):
        log.emit("user_action", str(number))
        log.flush()
    log.close()
    assert len(DeltaTable(str(event_table(tmp_path))).file_uris()) == 1
    assert [event["message"] for event in reader.events(tmp_path)] == list("01234")


def test_a_writer_says_which_batches_have_a_record(tmp_path):
    """Those that were in the log before it, and those that it took, written yet or not; of the same flow and epoch."""
    with writer(tmp_path) as log:
        log.set_known_batches("bronze", 0, 2)
        batch(log, 4, 10)
        assert [batch for batch in range(6) if log.has_batch("bronze", 0, batch)] == [0, 1, 2, 4]
        assert not log.has_batch("bronze", 1, 4)
        assert not log.has_batch("silver", 0, 1)


def test_batches_in_a_row_are_remembered_as_one_number(tmp_path: Path):
    """A writer that runs for days keeps no list of them; none is recorded twice, and an older position lowers nothing."""
    body = {"flow_progress": {"status": "RUNNING"}}
    with EventLogWriter(tmp_path, "p", "p", "u") as log:
        taken = [
            log.emit("flow_progress", "b", flow="f", batch_id=batch, epoch=0, details=body)
            for batch in (0, 1, 3, 2, 4, 3)
        ]
        assert taken == [True, True, True, True, True, False]
        assert (log._recorded_batches, log._known_batches) == (set(), {("f", 0): 4})
        log.set_known_batches("f", 0, 1)
        assert [log.has_batch("f", 0, batch) for batch in (2, 4, 5)] == [True, True, False]


def test_a_long_update_makes_few_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Records of batches wait together, as long as they are few; small files are put together while the update runs."""
    monkeypatch.setattr("headwater.event_log.writer._COMPACT_AFTER", 3)
    monkeypatch.setattr("headwater.event_log.writer._COMPACT_ABOVE_FILES", 2)
    monkeypatch.setattr("headwater.event_log.writer.FLUSH_SECONDS", 0.02)
    monkeypatch.setattr("headwater.event_log.writer._MOST_BATCHES_WAITING", 1000)
    with EventLogWriter(tmp_path, "p", "p", "u", flush_seconds=0.2) as log:
        ends, emitted = time.monotonic() + 2.2, 0
        while time.monotonic() < ends:
            batch(log, emitted, 3)
            emitted += 1
            time.sleep(0.01)
        files = len(DeltaTable(str(event_table(tmp_path))).file_uris())
    assert emitted > 50
    assert len(reader.events(tmp_path)) == emitted
    history = [entry["operation"] for entry in DeltaTable(str(event_table(tmp_path))).history()]
    assert history.count("WRITE") <= 12
    assert "OPTIMIZE" in history
    assert files < 8


def test_what_can_not_wait_is_written_at_once(tmp_path: Path):
    """A status, the first records of an update, and the fifth batch of a flow: a killed driver leaves few without a record."""
    with EventLogWriter(tmp_path, "p", "p", "u", flush_seconds=60) as log:

        def written(count: int, seconds: float = 10) -> bool:
            ends = time.monotonic() + seconds
            while len(reader.events(tmp_path)) != count and time.monotonic() < ends:
                time.sleep(0.05)
            return len(reader.events(tmp_path)) == count

        log.emit("update_progress", "", details=details.update_progress(UpdateState.RUNNING))
        assert written(1)
        for number in range(4):
            batch(log, number, 3)
        assert not written(5, 1.5)
        batch(log, 4, 3)
        assert written(6)
