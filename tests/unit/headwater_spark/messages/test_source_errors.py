"""What users' code and Spark say is quoted without the secrets in it."""

from __future__ import annotations

import pytest

from headwater_spark.messages.source_errors import describe


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
