"""The declaration of event hooks: what is recorded, and what is refused."""

from __future__ import annotations

import pytest

from headwater import pipelines as dp
from headwater.errors import DuplicateDataset, UnsupportedArgument
from headwater.graph.registry import Registry, registering


@pytest.fixture
def registry():
    with registering(Registry()) as active:
        yield active


def test_both_forms_record_a_hook(registry):
    """With and without arguments the function is recorded under its name, and stays callable."""

    @dp.on_event_hook
    def plain(event):
        return event

    @dp.on_event_hook(max_allowable_consecutive_failures=3)
    def limited(event):
        return event

    assert [(hook.name, hook.max_failures) for hook in registry.hooks()] == [("plain", None), ("limited", 3)]
    assert plain({}) == {}
    assert registry.hooks()[0].location.file == __file__


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
def test_a_limit_that_is_no_count_is_refused(registry, limit):
    """The limit is a whole number from 0, or None."""
    with pytest.raises(UnsupportedArgument, match="whole number from 0"):
        dp.on_event_hook(max_allowable_consecutive_failures=limit)


async def later(event):
    return event


def generator(event):
    yield event


def none_at_all():
    return None


def two(event, other):
    return event, other


@pytest.mark.parametrize("function", [later, generator, none_at_all, two, 5])
def test_what_can_not_be_called_with_an_event_is_refused(registry, function):
    """A function that takes no event, or two, or that would only make a coroutine, is refused with its line."""
    with pytest.raises(UnsupportedArgument) as caught:
        dp.on_event_hook(max_allowable_consecutive_failures=1)(function)
    assert "on_event_hook" in caught.value.what


def test_a_name_is_taken_once(registry):
    """The log tells hooks by their names, so a second of one name is refused."""
    dp.on_event_hook(two_words := lambda event: event)
    with pytest.raises(DuplicateDataset, match="is defined twice"):
        dp.on_event_hook(two_words)
