"""How a stream's rows reach their target: decided from what Spark says it can do, and from what was declared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import dataset, flow, sink

from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.flow import FlowKind, Replacement
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.sink import SinkKind
from headwater.errors import HeadwaterError, QueryFailed, UnsupportedArgument
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.resolution import output_mode as subject
from headwater_spark.resolution.output_mode import check_alone, output_mode

TABLE, TOPIC = dataset(), sink(SinkKind.KAFKA, "kafka")
PLAIN, UPDATE = flow(), flow(kind=FlowKind.UPDATE)
NEWER = flow(replacement=Replacement(("id", "Part"), "at"))
CHANGES: Any = ChangeFlow("events", ("id",), "n")


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch):
    """The mode of a stream that Spark can run in these modes only, whose grouping keys are in its result, or not."""

    def mode(can: str, one: Any = PLAIN, target: Any = TABLE, keys: tuple[str, ...] = ("day",)) -> OutputMode:
        tried: list[str] = []

        def objection(_: Any, name: str) -> str | None:
            assert name not in tried, "Each question is an exception of the JVM: it is asked once."
            tried.append(name)
            return None if name in can.split() else f"no {name}"

        monkeypatch.setattr(subject, "_objection", objection)
        monkeypatch.setattr(subject, "check_state", lambda *_: None)
        monkeypatch.setattr(subject, "aggregation_keys", lambda _: keys)
        return output_mode(SimpleNamespace(columns=["ID", "part", "at"]), one, target)  # type: ignore[arg-type]

    return mode


@pytest.mark.parametrize(
    ("can", "keys", "expected"),
    [
        ("append", ("day",), OutputMode(OutputKind.APPEND)),
        ("append update complete", ("day",), OutputMode(OutputKind.APPEND)),
        ("update complete", ("day",), OutputMode(OutputKind.UPDATE, ("day",))),
        ("update complete", (), OutputMode(OutputKind.COMPLETE)),
        ("complete", ("day",), OutputMode(OutputKind.COMPLETE)),
        ("update", ("day",), OutputMode(OutputKind.UPDATE, ("day",))),
    ],
)
def test_a_table(decide, can: str, keys: tuple[str, ...], expected: OutputMode):
    """Appended to where that can be; else merged by its grouping keys; else replaced by each batch."""
    assert decide(can, keys=keys) == expected


@pytest.mark.parametrize(("can", "keys"), [("", ("day",)), ("update", ())])
def test_what_no_table_can_take(decide, can: str, keys: tuple[str, ...]):
    """Spark's reason is given."""
    with pytest.raises(QueryFailed, match="no append"):
        decide(can, keys=keys)


@pytest.mark.parametrize(
    ("can", "one", "expected"),
    [
        ("append", PLAIN, OutputMode()),
        ("update", UPDATE, OutputMode(OutputKind.UPDATE)),
        ("append update", UPDATE, OutputMode(OutputKind.UPDATE)),
    ],
)
def test_a_sink(decide, can: str, one: Any, expected: OutputMode):
    """It is appended to, or sent the rows that change where the flow says so: nothing is merged there."""
    assert decide(can, one, TOPIC) == expected


@pytest.mark.parametrize(
    ("can", "one", "target", "kind", "remedy"),
    [
        ("update complete", PLAIN, TOPIC, QueryFailed, "update_flow"),
        ("complete", PLAIN, TOPIC, QueryFailed, "watermark"),
        ("append", UPDATE, TOPIC, QueryFailed, "append_flow"),
        ("update", UPDATE, TABLE, UnsupportedArgument, "append_flow"),
        ("update", UPDATE, sink(SinkKind.DELTA, "delta"), UnsupportedArgument, "foreach_batch_sink"),
    ],
)
def test_what_a_target_can_not_take(
    decide, can: str, one: Any, target: Any, kind: type[HeadwaterError], remedy: str
):
    """Refused with a way out."""
    with pytest.raises(kind) as caught:
        decide(can, one, target)
    assert remedy in caught.value.remedy


def test_changes_and_replacements(decide):
    """Change events are merged by the declared keys; replacements by the result's own names, from a stream of rows only."""
    assert decide("", flow(changes=CHANGES)) == OutputMode(OutputKind.CHANGES, ("id",))
    assert decide("append", NEWER) == OutputMode(OutputKind.REPLACE, ("ID", "part"))
    with pytest.raises(QueryFailed, match="no append"):
        decide("update complete", NEWER)
    for lacks in (Replacement(("nope",), "at"), Replacement(("id",), "nope")):
        with pytest.raises(QueryFailed, match="'nope'"):
            decide("append", flow(replacement=lacks))


@pytest.mark.parametrize(
    ("name", "query_mode"),
    [
        ("append", "append"),
        ("update", "update"),
        ("complete", "complete"),
        ("replace", "append"),
        ("changes", "append"),
    ],
)
def test_what_spark_is_asked_for(name: str, query_mode: str):
    """Rows that find what they replace by themselves come as a stream of rows."""
    assert OutputKind(name).query_mode == query_mode


@pytest.mark.parametrize(
    ("name", "alone"), [("update", True), ("complete", True), ("append", False), ("replace", False)]
)
def test_what_has_its_table_for_itself(name: str, alone: bool):
    """An aggregation that keeps the table equal to itself; by itself it is fine."""
    check_alone(PLAIN, OutputMode(OutputKind(name)), TABLE, 1)
    if alone:
        with pytest.raises(QueryFailed):
            check_alone(PLAIN, OutputMode(OutputKind(name)), TABLE, 2)
    else:
        check_alone(PLAIN, OutputMode(OutputKind(name)), TABLE, 2)
