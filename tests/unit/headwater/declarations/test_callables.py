"""Functions that the update calls are checked where they are declared."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from headwater import pipelines as dp
from headwater.errors import UnsupportedArgument
from headwater.graph.registry import Registry, registering


@pytest.fixture
def registry():
    """A registry that declarations go to."""
    with registering(Registry(schema="shop")) as active:
        yield active


async def later(frame, number):
    return frame, number


def generator(frame, number):
    yield frame, number


def one(frame):
    return frame


def three(frame, number, more):
    return frame, number, more


@pytest.mark.parametrize("function", [later, generator, one, three, 5, partial(one, 1)])
def test_what_takes_no_batch_is_no_sink(registry: Registry, function: Any):
    """A function that takes no DataFrame and number, or that would do nothing, is refused with its line, not at the first batch."""
    with pytest.raises(UnsupportedArgument, match=r"dp\.foreach_batch_sink") as caught:
        dp.foreach_batch_sink(name="out")(function)
    assert "a function of a DataFrame and a number" in caught.value.remedy
    assert f"{__file__}:" in str(caught.value.where)
    assert not registry.datasets()


def test_arguments_that_have_values(registry: Registry):
    """What has more arguments is a sink where they have values."""

    @dp.foreach_batch_sink
    def out(frame, number, more=1):
        return frame, number, more

    dp.foreach_batch_sink(partial(three, more=1), name="other")
    assert [dataset.name for dataset in registry.datasets()] == ["out", "other"]
