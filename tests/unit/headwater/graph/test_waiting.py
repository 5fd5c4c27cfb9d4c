"""A flow may wait for what it does not read, as long as the names are known and nothing waits for itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.errors import DatasetCycle, UnknownDataset
from headwater.graph.waiting import beside, check_waits, upstream

NAMES = ("a", "b", "c", "d")


def flow(name: str, *after: str, into: str = "") -> Flow:
    """A flow that waits for ``after``."""
    return Flow(name, into or name, lambda: None, SourceLocation("s.py", 7), depends_on=after)


def test_names_have_to_be_known():
    """A name that the pipeline lacks is refused at the flow's line, with the nearest one."""
    with pytest.raises(UnknownDataset, match="'ordes'") as caught:
        check_waits([flow("load", "ordes", into="t")], ("orders", "t"), {})
    assert caught.value.where == "s.py:7"
    assert "'orders'" in caught.value.remedy


@pytest.mark.parametrize(
    ("flows", "reads", "circle"),
    [
        ([flow("a", "a")], {}, "a -> a"),
        ([flow("a", "b"), flow("b")], {"b": ["a"]}, "a -> b -> a"),
        # Through a second flow of the table and a view.
        ([flow("f", into="a"), flow("g", "b", into="a"), flow("v"), flow("b")], {"v": ["a"], "b": ["v"]}, "a -> b -> v -> a"),
    ],
)  # fmt: skip
def test_nothing_waits_for_itself(flows: list[Flow], reads: dict[str, list[str]], circle: str):
    """A circle of reading and waiting is refused, with the circle and the line of a flow that waits."""
    with pytest.raises(DatasetCycle) as caught:
        check_waits(flows, (*NAMES, "v"), reads)
    shown = caught.value.what.removeprefix("Datasets wait for each other in a circle: ").removesuffix(".")
    # A circle has no first name.
    around = [shown.split(" -> ")[:-1][i:] + shown.split(" -> ")[:-1][:i] for i in range(shown.count("->"))]
    assert circle.split(" -> ")[:-1] in around
    assert caught.value.where == "s.py:7"


def test_flows_are_waited_for_by_name():
    """A flow into the same table is waited for by itself, one into another table with its table; what is both is a dataset."""
    live, history = flow("live", "history", "other", "v", "t", into="t"), flow("history", into="t")
    flows = [live, history, flow("other", into="u"), flow("v", into="v"), flow("t", into="t")]
    assert beside(live, flows) == ("history", "t")
    assert upstream(live, flows, ("t", "u", "v")) == ("u", "v")
    check_waits(flows, ("t", "u", "v"), {})


def test_a_flow_does_not_wait_for_itself():
    """Flows of one table that wait for each other are refused, and so is one that names itself or its own table."""
    around = [
        flow("live", "late", into="t"),
        flow("history", into="t"),
        flow("late", "history", "live", into="t"),
    ]
    with pytest.raises(
        DatasetCycle,
        match=r"Flows wait for each other in a circle: (live -> late -> live|late -> live -> late)",
    ):
        check_waits(around, ("t",), {})
    with pytest.raises(DatasetCycle, match="Datasets wait for each other in a circle: t -> t"):
        check_waits([flow("live", "live", into="t")], ("t",), {})
    with pytest.raises(DatasetCycle, match="Datasets wait for each other in a circle: t -> t"):
        check_waits([flow("live", "t", into="t")], ("t",), {})


def test_a_flow_may_read_its_own_table():
    """A stream that reads what it has written before waits for nothing, with or without another flow that waits."""
    check_waits([flow("t"), flow("u", "t")], ("t", "u"), {"t": ["t"], "u": ["u"]})


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.booleans())))
def test_what_has_an_order_passes(edges: list[tuple[str, str, bool]]):
    """Edges that all go one way are accepted, whether they are reads or waits."""
    down = [(one, other, waits) for one, other, waits in edges if one > other]
    flows = [flow(name, *(o for n, o, waits in down if n == name and waits)) for name in NAMES]
    check_waits(
        flows, NAMES, {name: [o for n, o, waits in down if n == name and not waits] for name in NAMES}
    )


def test_the_line_of_a_flow_that_waits():
    """Of a circle of waiting and reading the line of what waits is shown: what only reads has no name to take out."""
    reads = Flow("b", "b", lambda: None, SourceLocation("reads.py", 1))
    for flows in ([flow("a", "b"), reads], [reads, flow("a", "b")]):
        with pytest.raises(DatasetCycle) as caught:
            check_waits(flows, ("a", "b"), {"b": ["a"]})
        assert caught.value.where == "s.py:7"
    other = Flow("other", "a", lambda: None, SourceLocation("other.py", 1))
    with pytest.raises(DatasetCycle) as caught:
        check_waits([other, flow("a", "b"), reads], ("a", "b"), {"b": ["a"]})
    assert caught.value.where == "s.py:7"
