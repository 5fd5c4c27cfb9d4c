"""What Spark's real-time mode permits, decided from what a plan has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.definitions.flow import FlowKind
from headwater.definitions.sink import Sink, SinkKind
from headwater_spark.plans.real_time import RealTimePlan, StreamRead, real_time_objection

TOPIC = Sink(SinkKind.KAFKA, "kafka", {"topic": "out"})
ORDERS = StreamRead("kafka", {"subscribe": "orders"})
PLAIN = RealTimePlan((ORDERS,), frozenset({"Project", "Filter", "StreamingRelationV2"}))


def test_a_projection_between_two_topics():
    """Map-like queries, explode, unions of different topics and joins with static tables are permitted."""
    assert real_time_objection(PLAIN, FlowKind.UPDATE, TOPIC) is None
    both = RealTimePlan(
        (ORDERS, StreamRead("kafka", {"subscribe": "returns"})),
        frozenset({"Union", "Generate", "Join", "StreamingRelationV2", "SubqueryAlias", "View"}),
    )
    assert real_time_objection(both, FlowKind.UPDATE, TOPIC) is None


@pytest.mark.parametrize(
    ("changes", "kind", "sink", "reason"),
    [
        ({}, FlowKind.APPEND, TOPIC, "update mode"),
        ({}, FlowKind.UPDATE, None, "a table"),
        ({}, FlowKind.UPDATE, Sink(SinkKind.DELTA, "delta", {}), "'delta'"),
        ({"streams": (StreamRead("rate", {}),)}, FlowKind.UPDATE, TOPIC, "reads rate"),
        ({"streams": (ORDERS, StreamRead("delta", {}))}, FlowKind.UPDATE, TOPIC, "reads delta"),
        ({"streams": ()}, FlowKind.UPDATE, TOPIC, "nothing"),
        ({"streams": (ORDERS, ORDERS)}, FlowKind.UPDATE, TOPIC, "twice"),
        ({"operators": frozenset({"Project", "Aggregate"})}, FlowKind.UPDATE, TOPIC, "operator Aggregate"),
        ({"operators": frozenset({"Deduplicate"})}, FlowKind.UPDATE, TOPIC, "operator Deduplicate"),
        ({"operators": frozenset({"MapInPandas"})}, FlowKind.UPDATE, TOPIC, "operator MapInPandas"),
        ({"joins_streams": True}, FlowKind.UPDATE, TOPIC, "join streams"),
        ({"python": True}, FlowKind.UPDATE, TOPIC, "functions of Python"),
    ],
)
def test_what_is_refused(changes, kind, sink, reason):
    """Each with its reason and something to do."""
    objection = real_time_objection(replace(PLAIN, **changes), kind, sink)
    assert objection is not None
    assert reason in objection[0]
    assert objection[1]


@pytest.mark.parametrize(
    "option",
    ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "endingTimestamp"],
)
def test_options_that_plan_a_batch(option):
    """Spark's Kafka source refuses them in real-time mode, at the first batch: they are named before."""
    stream = StreamRead("kafka", {"subscribe": "orders", option.lower(): "5"})
    objection = real_time_objection(replace(PLAIN, streams=(stream,)), FlowKind.UPDATE, TOPIC)
    assert objection is not None
    assert option in objection[1]
