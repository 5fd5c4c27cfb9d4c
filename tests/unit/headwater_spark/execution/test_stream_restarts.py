"""A stream that starts again in one update: for which errors, how often, and what is changed before."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, state_of

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import SchemaChanged, SourceSchemaChanged, UnknownFields
from headwater_spark.execution import remedies
from headwater_spark.execution.restarts import Start, run_with_restarts
from headwater_spark.quarantine.unreadable_files import UnreadableFile
from headwater_spark.sources.cloud_files.rescue import LATE_FILE, UNKNOWN_FIELDS

FLOW = flow()
QUARANTINED = dataset(expectations=(Expectation("r", "id > 0", ViolationAction.QUARANTINE),))
FILE = UnreadableFile("/in/a b", 0, 1, 0, None, "")
DAMAGED = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a%20b.  SQLSTATE: KD001"
FIELDS = f"{UNKNOWN_FIELDS}new in file /in/a"
MOVED = "[DELTA_SCHEMA_CHANGED] Detected schema change"


def raised(text: str) -> Exception:
    """An error as Spark's come: of the class that a text names before its colon, else a RuntimeError."""
    kind, colon, message = text.partition(": ")
    known = {
        "AssertionError": AssertionError,
        "SocketException": type("SocketException", (RuntimeError,), {}),
    }
    return known[kind](message) if colon and kind in known else RuntimeError(text)


class Cloud:
    """The files of one flow, and how their schema takes new fields."""

    def __init__(self, *changes: list[str], reads: bool = True) -> None:
        self.careful: set[str] = {"orders"}
        self.evolutions: list[Any] = []
        self._changes, self._reads = list(changes), reads

    def reads_of(self, _: str) -> bool:
        return self._reads

    def evolve(self, name: str, checkpoint: Any, columns: Any) -> list[str]:
        self.evolutions.append(columns)
        return self._changes.pop(0) if self._changes else []


def run(
    tmp_path: Path, *errors: str | None, cloud: Cloud | None = None, stop: bool = False
) -> tuple[int, Cloud, Any]:
    """How often a flow that fails with these errors, one after the other, is started; None: it is well."""
    cloud = cloud or Cloud()
    context: Any = context_of(tmp_path, dataset(), flows=(FLOW,))
    context.pipeline.evaluation.cloud = cloud
    if stop:
        context.stop_requested.set()
    left = list(errors)
    context.runs = []

    def begin(start: Start) -> None:
        if start.reason is None:
            cloud.careful.discard("orders")
        context.runs.append(set(cloud.careful))
        context.said.append(start.reason)
        error = left.pop(0)
        if error is not None:
            raise raised(error)

    reload = partial(remedies.reload_columns, run_of(context))
    context.error = run_with_restarts(begin, (reload,), context.stop_requested)
    return len(context.runs), cloud, context


def test_a_stream_that_is_well(tmp_path: Path):
    """It runs once, without looking at each file twice."""
    runs, cloud, context = run(tmp_path, None)
    assert (runs, cloud.careful, context.error) == (1, set(), None)


@pytest.mark.parametrize(
    "error",
    [
        "[DELTA_METADATA_CHANGED] The metadata has been changed",
        MOVED,
        "AssertionError: assertion failed: Invalid batch: id#1",
        "[DELTA_STREAMING_METADATA_EVOLUTION] x",
        "[DELTA_STREAMING_SCHEMA_EVOLUTION] x",
        "[DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART] x",
    ],
)
def test_columns_that_moved(tmp_path: Path, error: str):
    """A table's columns changed while it ran: nothing was committed, and another start sees them."""
    runs, cloud, context = run(tmp_path, error, None, cloud=Cloud(reads=False))
    assert (runs, context.error, cloud.evolutions) == (2, None, [])
    assert "starts again" in context.said[1]


def test_a_file_that_came_between(tmp_path: Path):
    """The next start looks at each file again; the one after it need not."""
    runs, _, context = run(tmp_path, f"{LATE_FILE}/in/x", None)
    assert (runs, context.runs) == (2, [set(), {"orders"}])
    # A plan that shows the text is no such file.
    assert run(tmp_path, f"[X] Project [raise_error({LATE_FILE}, x)]", None)[0] == 1


def test_new_fields_that_the_schema_takes(tmp_path: Path):
    """The schema evolves by the names in the message, without the file's, and the stream runs once more."""
    runs, cloud, context = run(tmp_path, FIELDS, None, cloud=Cloud(["new"]))
    assert (runs, context.error) == (2, None)
    assert cloud.evolutions == [remedies.wider_columns("new")]


def test_new_fields_that_it_does_not_take(tmp_path: Path):
    """Refused by name; the stream is not started again."""
    runs, _, context = run(tmp_path, FIELDS)
    assert (runs, type(context.error)) == (1, UnknownFields)
    assert "new in file /in/a" in context.error.what


@pytest.mark.parametrize(
    ("errors", "cloud", "kind"),
    [
        ((FIELDS, FIELDS), Cloud(["new"], ["newer"]), SchemaChanged),
        ((MOVED, MOVED), Cloud(reads=False), SourceSchemaChanged),
        ((FIELDS, MOVED), Cloud(["new"]), SourceSchemaChanged),
        ((MOVED, "[DELTA_METADATA_CHANGED] x"), Cloud(reads=False), SchemaChanged),
        ((MOVED, "boom"), Cloud(reads=False), RuntimeError),
    ],
)
def test_once_more_and_no_oftener(tmp_path: Path, errors, cloud, kind):
    """What stops it a second time ends it, with what happened; another error stays what it is."""
    runs, _, context = run(tmp_path, *errors, None, cloud=cloud)
    assert (runs, type(context.error)) == (2, kind)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        ("boom", {}),
        (FIELDS, {"cloud": Cloud(reads=False)}),
        (MOVED, {"stop": True}),
        (f"[X] Project [raise_error({UNKNOWN_FIELDS}, x)]", {}),
        ("[X] a record says DELTA_SCHEMA_CHANGED", {}),
    ],
)
def test_what_another_start_does_not_help(tmp_path: Path, error, options):
    """Other errors, texts of a plan, and whatever comes while the update is told to stop."""
    runs, _, context = run(tmp_path, error, **options)
    assert (runs, type(context.error)) == (1, RuntimeError)


def readable(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *errors: str | None,
    damaged: tuple[list[UnreadableFile], ...] = (),
    table: Any = QUARANTINED,
    stop: bool = False,
    state: bool = True,
) -> tuple[list[tuple[UnreadableFile, ...]], Any]:
    """What each run of a flow leaves out; the error that is left."""
    context: Any = context_of(tmp_path, table, flows=(FLOW,))
    context.pipeline.evaluation.settings = lambda *_: __import__("contextlib").nullcontext()
    context.pipeline.evaluation.evaluate = lambda _: "frame"
    if state:
        state_of(context, epoch=3)
    if stop:
        context.stop_requested.set()
    left, seen, runs = list(errors), list(damaged), []

    def begin(start: Start) -> None:
        runs.append(start.left_out)
        error = left.pop(0)
        if error is not None:
            raise raised(error)

    def find(frame: str, folder: Path, _: Any, known: list[UnreadableFile]) -> list[UnreadableFile]:
        assert (frame, folder.name, tuple(known)) == ("frame", "3", runs[-1])
        return seen.pop(0) if seen else []

    monkeypatch.setattr(remedies, "find_unreadable", find)
    leave_out = partial(remedies.leave_files_out, run_of(context, table))
    return runs, run_with_restarts(begin, (leave_out,), context.stop_requested)


def test_a_file_that_can_not_be_read(monkeypatch, tmp_path: Path):
    """The stream goes on without the damaged files of its batch, and of each later one."""
    other = UnreadableFile("/in/c", 0, 2, 0, None, "")
    runs, error = readable(monkeypatch, tmp_path, DAMAGED, DAMAGED, None, damaged=([FILE], [other]))
    assert (runs, error) == ([(), (FILE,), (FILE, other)], None)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        ("boom", {}),
        (DAMAGED, {"table": dataset()}),
        (DAMAGED, {"stop": True}),
        (DAMAGED, {"state": False}),
        (f"SocketException: {DAMAGED}", {}),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] file file:///in/a", {}),
    ],
)
def test_what_fails_as_it_is(monkeypatch, tmp_path: Path, error, options):
    """Other errors, also of the network; a table without a quarantine; an update that is told to stop."""
    runs, caught = readable(monkeypatch, tmp_path, error, damaged=([FILE],), **options)
    assert (runs, str(caught)) == ([()], error.removeprefix("SocketException: "))


def test_nothing_found_is_no_other_start(monkeypatch, tmp_path: Path):
    """Where no damaged file of the batch is found, the error stays: it would come again for ever."""
    runs, caught = readable(monkeypatch, tmp_path, DAMAGED, DAMAGED, damaged=([FILE], []))
    assert (len(runs), str(caught)) == (2, DAMAGED)
