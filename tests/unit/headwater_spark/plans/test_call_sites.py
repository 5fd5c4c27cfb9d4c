"""PySpark notes no line for columns of the engine, and all lines for those of users."""

from __future__ import annotations

import threading

import pytest
from pyspark.errors import utils

from headwater_spark.plans import call_sites
from headwater_spark.plans.call_sites import without_call_sites


@pytest.fixture(autouse=True)
def _noting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that notes lines, as it does unless somebody says otherwise."""
    monkeypatch.setattr(call_sites, "_notes_call_sites", lambda: True)


def noted_in_another_thread() -> bool:
    """What PySpark is answered there."""
    answers: list[bool] = []
    other = threading.Thread(target=lambda: answers.append(utils.is_debugging_enabled()))
    other.start()
    other.join()
    return answers[0]


def test_nothing_is_noted_within_the_engine():
    """From the outermost of its functions to that one's end, and in no other thread, where a user's function may run."""

    @without_call_sites
    def inner() -> bool:
        return utils.is_debugging_enabled()

    @without_call_sites
    def outer() -> tuple[bool, bool, bool]:
        return inner(), utils.is_debugging_enabled(), noted_in_another_thread()

    assert utils.is_debugging_enabled()
    assert outer() == (False, False, True)
    assert utils.is_debugging_enabled()


def test_an_error_ends_it_too():
    """A function that raises leaves nothing behind."""

    @without_call_sites
    def failing() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        failing()
    assert utils.is_debugging_enabled()


def test_who_wants_no_notes_gets_none(monkeypatch: pytest.MonkeyPatch):
    """Where they are switched off for the session, they stay so."""
    monkeypatch.setattr(call_sites, "_notes_call_sites", lambda: False)
    assert not utils.is_debugging_enabled()


def test_the_operations_of_a_column_ask():
    """PySpark goes by this answer; with another one its columns would be as slow as ever, and nobody would see it."""
    asked: list[str] = []
    wrapped = utils._with_origin(lambda *_: "result")  # type: ignore[type-var]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "is_debugging_enabled", lambda: asked.append("asked"))
        assert wrapped() == "result"
    assert asked == ["asked"]
