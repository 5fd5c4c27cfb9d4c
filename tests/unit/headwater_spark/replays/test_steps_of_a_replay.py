"""The steps of a replay of one flow: what is marked, written and discarded, in which order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, state_of

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import HeadwaterError, UnknownQuarantinedRow, UsageError
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.table import RowFilter
from headwater_spark.replays import replay as module
from headwater_spark.replays.replayed_query import HELD_ID
from headwater_spark.rules import expectations, judgement

NOTHING: Any = None
RULES = (
    Expectation("bad", "bad", ViolationAction.QUARANTINE),
    Expectation("odd", "odd", ViolationAction.DROP),
)
# Both rules are kept, one is broken, both are; ``gone`` is no longer returned by the query.
OUTCOMES = {"good": (True, True), "held": (False, True), "odd": (True, False), "both": (False, False)}


class Marks:
    """Records the marks, and what is known of the lease."""

    application, flow = "p.replay.u1.orders@0", "orders"

    def __init__(self, steps: list[Any]) -> None:
        self._steps = steps

    def mark_replaying(self, ids: Frame, count: int) -> None:
        self._steps.append(("replaying", [row[HELD_ID] for row in ids.rows], count))

    def mark(self, ids: Frame, status: RowStatus, reason: str) -> None:
        self._steps.append((str(status), [row[HELD_ID] for row in ids.rows], reason.partition(" ")[0]))

    def check_written(self, table: Path) -> None:
        self._steps.append(("check", table.name))

    def finish(self) -> None:
        self._steps.append("finish")


class Replay:
    """A replay of the flow ``orders``, with a quarantine of rows with these ids."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[Any] = []
        plain_functions(monkeypatch, module, expectations, judgement)
        one, table = flow(), dataset(expectations=RULES)
        self.context: Any = context_of(root, table, flows=(one,))
        self.run: Any = run_of(self.context, table, one)
        state_of(self.context, epoch=4)
        monkeypatch.setattr(module, "in_own_session", lambda frame: frame)
        monkeypatch.setattr(module, "_marks_of", lambda *_, **__: Marks(self.steps))
        monkeypatch.setattr(type(self.context), "check_lease", lambda _: self.steps.append("lease"))
        monkeypatch.setattr(module, "target_of", lambda _: "target")
        monkeypatch.setattr(module, "write_batch", self._write)

    def _write(self, _context: object, rows: Frame, target: str, transaction: Any) -> None:
        about = json.loads(transaction.user_metadata)
        assert (transaction.application, transaction.batch_id) == (Marks.application, 0)
        assert (about["epoch"], about["replay"]) == (4, "u1")
        assert not [name for name in rows.columns if name.startswith("__headwater")]
        self.steps.append((target, [row["name"] for row in rows.rows]))

    def rows(self, *names: str) -> Frame:
        """What the flow's query makes of held rows: the columns of the row, and the held row's id."""
        rows = [dict(zip(("name", "bad", "odd", HELD_ID), (n, *OUTCOMES[n], n), strict=True)) for n in names]
        return Frame(rows, ["name", "bad", "odd", HELD_ID])


def held(*names: str) -> Frame:
    """The rows of the quarantine that are replayed."""
    return Frame([{c.ID: name} for name in names], [c.ID])


def replayed(replay: Replay, monkeypatch: pytest.MonkeyPatch, chosen: Frame, returned: Frame) -> Any:
    """The report of a replay in which the query gives these rows for those that are chosen."""
    monkeypatch.setattr(module, "_recomputed", lambda *_: (returned, "row"))
    return module._replay_rows(replay.run, Path("q"), chosen, NOTHING)  # type: ignore[arg-type]


def test_what_becomes_of_each_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Good rows are marked before the table has them; only then what is dropped, or no longer comes, is discarded; the others stay held.

    A row that breaks both kinds of rules is held, as when it came.
    """
    replay = Replay(tmp_path, monkeypatch)
    report = replayed(replay, monkeypatch, held(*OUTCOMES, "gone"), replay.rows(*OUTCOMES))
    assert replay.steps == [
        "lease",
        ("replaying", ["good"], 1),
        ("target", ["good"]),
        ("check", "orders"),
        "lease",
        "finish",
        "lease",
        ("discarded", ["odd"], "dropped"),
        "lease",
        ("discarded", ["gone"], "left"),
    ]
    assert (report.replayed, report.held, report.dropped, report.left_out) == (1, 2, 1, 1)
    assert (report.flow, report.method, report.files) == ("orders", "row", 0)


def test_nothing_is_written_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows that all still break a rule stay as they are; no commit is made."""
    replay = Replay(tmp_path, monkeypatch)
    report = replayed(replay, monkeypatch, held("held", "both"), replay.rows("held", "both"))
    assert (replay.steps, report.held) == ([], 2)


class Files:
    """What is found in the files that are read again."""

    def __init__(
        self, replay: Replay, monkeypatch: pytest.MonkeyPatch, rows: Frame | None, readable: int
    ) -> None:
        self.again: dict[str, frozenset[str]] = {}
        evaluation = replay.context.pipeline.evaluation
        evaluation.cloud = SimpleNamespace(again=self.again)
        evaluation.evaluate = lambda _: "frame"
        replay.context.spark.createDataFrame = lambda ids, _: Frame(
            [{HELD_ID: one} for (one,) in ids], [HELD_ID]
        )
        monkeypatch.setattr(module, "with_source", lambda one: one)
        monkeypatch.setattr(module, "replayable_files", lambda _f, _o, files, _m: (files[:readable], rows))
        monkeypatch.setattr(
            module, "QuarantineTable", lambda *given: SimpleNamespace(hold_pending=self._hold(replay, given))
        )

    def _hold(self, replay: Replay, given: Any) -> Any:
        assert given == (Path("q"), "orders", 4, "u1", RULES)

        def hold(judged: Frame, transaction: Any, replay_id: str) -> None:
            assert (transaction.application, replay_id) == (Marks.application, "u1")
            replay.steps.append(("pending", len(judged.rows)))

        return hold


ENTRIES = [{c.ID: name, c.ROW: json.dumps({"path": f"/in/{name}"})} for name in "ab"]


def test_rows_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The files that can be read are marked, what is to be held waits for the end, then the table gets the others."""
    replay = Replay(tmp_path, monkeypatch)
    files = Files(replay, monkeypatch, replay.rows(*OUTCOMES).drop(HELD_ID), 1)
    report = module._replay_files(replay.run, Path("q"), ENTRIES)  # type: ignore[arg-type]
    assert replay.steps == [
        "lease",
        ("replaying", ["a"], 1),
        "lease",
        ("pending", 4),
        ("target", ["good"]),
        ("check", "orders"),
        "lease",
        "finish",
    ]
    assert (report.replayed, report.held, report.dropped, report.left_out) == (1, 2, 1, 0)
    assert (report.method, report.files, report.damaged_files) == ("file", 1, 1)
    assert files.again == {"orders": frozenset({"/in/a", "/in/b"})}


def test_files_that_are_still_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is marked."""
    replay = Replay(tmp_path, monkeypatch)
    Files(replay, monkeypatch, None, 0)
    report = module._replay_files(replay.run, Path("q"), ENTRIES)  # type: ignore[arg-type]
    assert (replay.steps, report.files, report.damaged_files) == ([], 0, 2)


@pytest.mark.parametrize(
    ("method", "corrections", "sources", "query", "chosen"),
    [
        ("auto", {}, True, True, "source"),
        ("auto", {}, True, False, "row"),
        ("auto", {}, False, True, "row"),
        ("auto", {"name": "'x'"}, True, True, "row"),
        ("source", {}, True, True, "source"),
        ("source", {}, True, False, "can't be recomputed"),
        ("source", {}, False, True, "can't be recomputed"),
        ("source", {"name": "'x'"}, True, True, "--set corrects"),
        ("row", {}, True, True, "row"),
        ("row", {"other": "1"}, True, True, "returns no such column"),
    ],
)
def test_from_what_rows_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, corrections: dict[str, str], sources: bool, query: bool,
    chosen: str,
):  # fmt: skip
    """From the source's records where all are known and the query can take them, else from the rows as they were stored."""
    replay = Replay(tmp_path, monkeypatch)
    evaluation = replay.context.pipeline.evaluation
    evaluation.cloud = SimpleNamespace(again={})
    evaluation.evaluate = lambda _: Frame([], ["name"])
    monkeypatch.setattr(module, "query_over", lambda *_: "made again" if query else None)
    functions = SimpleNamespace(**{**vars(module.F), "from_json": lambda column, *_: column})
    monkeypatch.setattr(module, "F", functions)
    rows = [
        {c.ID: "1", c.ROW: None, c.SOURCE_RECORD: "{}"},
        {c.ID: "2", c.ROW: None, c.SOURCE_RECORD: "{}" if sources else None},
    ]
    stored = SimpleNamespace(select=lambda *_: SimpleNamespace(select=lambda *_: Corrected()))

    class Held(Frame):
        def select(self, *_: Any) -> Any:
            return stored.select()

    held_rows: Any = Held(rows, [c.ID, c.ROW, c.SOURCE_RECORD])
    arguments: Any = SimpleNamespace(method=method, corrections=corrections)
    if chosen in ("source", "row"):
        made, how = module._recomputed(replay.run, held_rows, arguments)
        assert how == chosen
        assert (made == "made again") is (chosen == "source")
        assert evaluation.cloud.again == {"orders": frozenset()}
    else:
        with pytest.raises(UsageError) as caught:
            module._recomputed(replay.run, held_rows, arguments)
        assert chosen in caught.value.what


class Corrected:
    """Stored rows whose columns are set."""

    def withColumn(self, name: str, _: Any) -> Corrected:  # noqa: N802 - Spark's name
        assert name == "name"
        return self


def whole_flow(
    replay: Replay, monkeypatch: pytest.MonkeyPatch, rows: int, files: int, *, of_rows: bool = False
) -> list[str]:
    """Which parts of a flow's quarantine are replayed."""
    done: list[str] = []

    class Held:
        def __init__(self, kind: str = "all") -> None:
            self.kind = kind

        def where(self, condition: Any) -> Held:
            texts = {module.IS_FILE: "files", f"NOT {module.IS_FILE}": "rows"}
            return Held(texts[condition] if isinstance(condition, str) else "all")

        def persist(self) -> Held:
            done.append("kept")
            return self

        def unpersist(self) -> None:
            done.append("released")

        def collect(self) -> list[int]:
            assert self.kind == "files"
            return [0] * files

        def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
            assert self.kind == "rows"
            return not rows

    monkeypatch.setattr(module.FlowRun, "settings", lambda *_: nullcontext())
    replay.context.pipeline.registry = SimpleNamespace(flows=lambda: [flow()])
    monkeypatch.setattr(module, "_check_done", lambda *_: done.append("checked"))
    monkeypatch.setattr(module, "_replay_rows", lambda _r, _p, held, _a: done.append(held.kind) or "rows")
    monkeypatch.setattr(module, "_replay_files", lambda *_: done.append("files") or "files")
    monkeypatch.setattr(module, "_record", lambda _, report: done.append(f"record {report}"))
    arguments: Any = SimpleNamespace(of_rows=of_rows)
    module._replay_flow(replay.context, replay.run.dataset, Path("q"), "orders", Held(), arguments)  # type: ignore[arg-type]
    return done


@pytest.mark.parametrize(
    ("rows", "files", "of_rows", "parts"),
    [
        (1, 0, False, ["rows"]),
        (1, 1, False, ["rows", "files"]),
        (0, 1, False, ["files"]),
        (1, 1, True, ["rows"]),
        (0, 0, False, ["rows"]),
    ],
)
def test_rows_and_files_are_replayed_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, files: int, of_rows: bool, parts: list[str]
):
    """Both where there are both; files are left alone where only rows are asked for; each part has its record."""
    done = whole_flow(Replay(tmp_path, monkeypatch), monkeypatch, rows, files, of_rows=of_rows)
    assert done == ["kept", "checked", *parts, *(f"record {part}" for part in parts), "released"]


def test_a_flow_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its code can't be run: what to do is said."""
    replay = Replay(tmp_path, monkeypatch)
    replay.context.pipeline.registry = SimpleNamespace(flows=lambda: [flow("other", "others")])
    with pytest.raises(UsageError, match="no longer in the pipeline"):
        module._replay_flow(replay.context, replay.run.dataset, Path("q"), "orders", NOTHING, NOTHING)


@pytest.mark.parametrize(
    ("name", "kind", "answer"),
    [
        ("ORDERS", DatasetKind.STREAMING_TABLE, None),
        ("other", DatasetKind.STREAMING_TABLE, "no table"),
        ("orders", DatasetKind.TEMPORARY_VIEW, "no table"),
        ("orders", DatasetKind.MATERIALIZED_VIEW, "all of it is recomputed"),
    ],
)
def test_tables_that_are_replayed_into(tmp_path: Path, name: str, kind: DatasetKind, answer: str | None):
    """Streaming tables of the pipeline, however their name is spelled."""
    context = context_of(tmp_path, dataset(kind=kind))
    if answer is None:
        assert module._dataset(context, name).name == "orders"
    else:
        with pytest.raises(HeadwaterError, match=answer):
            module._dataset(context, name)


def test_the_identity_of_a_renamed_flow(tmp_path: Path):
    """Rows are held under the name in the flow's commits; those of a flow that was removed under its own."""
    one = flow("now", "orders")
    context: Any = context_of(tmp_path, dataset(), flows=(one,))
    context.pipeline.registry.flows = lambda: [one, flow("more", "others")]
    own = context.identity("orders", "now")
    assert module._identity_of(context, dataset(), "now") == own
    assert module._identity_of(context, dataset(), "more").names == ("p", "more")


def test_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is marked as replayed, nothing is discarded, and what was cached is released."""
    replay = Replay(tmp_path, monkeypatch)

    def lost(*_: object) -> None:
        raise OSError("lost")

    released: list[bool] = []

    @contextmanager
    def judged(*given: Any) -> Iterator[Any]:
        with judgement.judged_batch(*given) as answer:
            try:
                yield answer
            finally:
                released.append(True)

    monkeypatch.setattr(module, "judged_batch", judged)
    monkeypatch.setattr(module, "write_batch", lost)
    with pytest.raises(OSError, match="lost"):
        replayed(replay, monkeypatch, held(*OUTCOMES, "gone"), replay.rows(*OUTCOMES))
    assert replay.steps == ["lease", ("replaying", ["good"], 1)]
    assert released == [True]


def test_a_replay_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a killed one left is settled first, under the lease; then each flow's held rows, as they were before the marks that follow."""
    context: Any = context_of(tmp_path, dataset(), flows=(flow(), flow("more", "orders"), flow("other")))
    context.pipeline.registry.flows = lambda: [flow(), flow("more", "orders"), flow("other")]
    context.pipeline.manifest.catalog = None
    steps: list[Any] = []
    rows = SimpleNamespace(collect=lambda: [("more",), ("orders",)])
    rows.select = rows.distinct = rows.orderBy = lambda *_: rows
    rows.where = lambda condition: steps.append(("where", condition)) or rows
    reader = SimpleNamespace(load=lambda path: steps.append(("load", Path(path).name)) or rows)
    reader.format = lambda _: reader
    reader.option = lambda name, value: steps.append((name, value)) or reader
    context.spark.read = reader
    there = False
    monkeypatch.setattr(type(context), "check_lease", lambda _: steps.append("lease"))
    for name, instead in {
        "live_context": lambda *_, lease: nullcontext(context), "refuse_foreign_tables": lambda *_: None,
        "table_exists": lambda _: there, "head_version": lambda _: 5,
        "check_row_filter": lambda _, __, flows, rules: steps.append(("flows", flows, rules)),
        "settle": lambda *_: steps.append("settle"),
        "_replay_flow": lambda *given: steps.append(("replay", given[3])) or [given[3]],
    }.items():  # fmt: skip
        monkeypatch.setattr(module, name, instead)
    project: Any = SimpleNamespace(pipeline_id="p", warehouse=tmp_path, lease=lambda _: None)
    chosen = RowFilter((), None, None, None)
    arguments: Any = SimpleNamespace(table="orders", chosen=chosen)
    with pytest.raises(UnknownQuarantinedRow, match="no quarantined rows"):
        module.replay(project, arguments)
    assert steps == []
    there = True
    assert module.replay(project, arguments).flows == ("more", "orders")
    held = RowFilter((), None, None, RowStatus.HELD).where
    assert steps == [
        ("flows", ["orders", "more"], []), "lease", "settle", ("versionAsOf", "5"), ("load", "orders_quarantine"), ("where", held),
        ("replay", "more"), ("replay", "orders"),
    ]  # fmt: skip
