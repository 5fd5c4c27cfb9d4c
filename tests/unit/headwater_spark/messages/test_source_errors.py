"""What users' code and Spark say is quoted without the secrets in it."""

from __future__ import annotations

import pytest

from headwater_spark.messages.source_errors import describe, name_meant


@pytest.mark.parametrize(
    "said",
    [
        "no login: kafka.sasl.jaas.config=Plain password='Hunter2Canary'",
        "jdbc:x://me:Hunter2Canary@db",
        "key 'Hunter2Canary'",
    ],
)
def test_an_error_without_its_secret(monkeypatch, said: str):
    """By its name, in an address, or known by its value; type and the rest stay."""
    monkeypatch.setenv("HEADWATER_SECRET_KEY", "Hunter2Canary")
    text = describe(ValueError(said))
    assert text.startswith("ValueError: ")
    assert "[redacted]" in text
    assert "Hunter2" not in text


def test_a_definition_that_calls_exit():
    """`sys.exit()` in a function is an error of its source: the update ended with code 0, as if all were well."""
    from headwater.definitions.flow import Flow
    from headwater.errors import SourceFileFailed
    from headwater_spark.messages.user_errors import user_errors

    with (
        pytest.raises(SourceFileFailed, match="SystemExit: 0"),
        user_errors(Flow("t", "t", lambda: None), frozenset(), live=False),
    ):
        raise SystemExit(0)


class _Session:
    readStream = "a reader"  # noqa: N815 - Spark's spelling

    def __getattr__(self, name: str):
        """As Spark's frames do: an error of their own kind."""
        raise AttributeError(f"[ATTRIBUTE_NOT_SUPPORTED] Attribute `{name}` is not supported.")


def _of_a_session():
    return _Session().readstream


def _of_the_face():
    import headwater.pipelines as dp

    return dp.streming_table


def _of_a_variable():
    events_stream = 1
    return events_stream + event_stream  # noqa: F821 - the error that is looked at


def _of_a_call():
    return sorte([1])  # noqa: F821 - the error that is looked at


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (_of_a_session, "readStream"),
        (_of_the_face, "streaming_table"),
        (_of_a_variable, "events_stream"),
        (_of_a_call, "sorted"),
    ],
)
def test_a_misspelled_name_has_the_nearest(call, meant: str):
    """In a function of a source: the remedy names what its author probably meant, as guides' `spark.readstream`."""
    from headwater.definitions.flow import Flow
    from headwater.errors import SourceFileFailed
    from headwater_spark.messages.user_errors import user_errors

    with (
        pytest.raises(SourceFileFailed) as caught,
        user_errors(Flow("t", "t", lambda: None), frozenset(), live=False),
    ):
        call()
    assert caught.value.remedy == f"Did you mean {meant!r}?"


def test_a_name_that_nothing_resembles():
    """No name is made up, and an error that names nothing has no suggestion."""
    with pytest.raises(AttributeError) as caught:
        _Session().qqqq
    assert name_meant(caught.value) is None
    assert name_meant(AttributeError("of somebody's own")) is None
    assert name_meant(ValueError("readstream")) is None
