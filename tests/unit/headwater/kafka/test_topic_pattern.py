"""Patterns of topics: read as Java reads them, or not at all."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import SourceUnreachable
from headwater.kafka.offsets import BrokerTopics
from headwater.kafka.topic_pattern import topic_pattern
from headwater.metrics.kafka_backlog import kafka_backlog

TOPICS = ["orders", "orders1", "orders-eu", "orders.eu", "orders_9", "clicks", "Orders", "__internal", "a&b"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        (r"orders.*", ["orders", "orders1", "orders-eu", "orders.eu", "orders_9"]),
        (r"orders\.eu|clicks", ["orders.eu", "clicks"]),
        (r"orders[0-9_\-]{1,2}\w*", ["orders1", "orders-eu", "orders_9"]),
        (r"^(?:orders|clicks)$", ["orders", "clicks"]),
        (r"(?!__)[a-z]++\d?", ["orders", "orders1", "clicks"]),
        (r"[^a-z].+", ["Orders", "__internal"]),
        (r"[a-z]+[-.]\w{2,}", ["orders-eu", "orders.eu"]),
    ],
)
def test_what_both_languages_read_the_same(pattern: str, matched: list[str]):
    """Such a pattern means the topics that Java's reading of it means."""
    compiled = topic_pattern(pattern)
    assert [name for name in TOPICS if compiled.fullmatch(name)] == matched


@pytest.mark.parametrize(
    "pattern",
    [
        r"orders\p{Digit}+",
        r"[a-z&&[^o]]+",
        r"[a[b-d]]+",
        r"\Qorders\E.*",
        r"(?<name>orders)\k<name>",
        r"(?i)orders",
        r"(?u)orders",
        r"orders\h*",
        r"\x{6f}rders",
        r"\u006frders",
        r"\1(o)",
        r"(?>o+)rders",
        r"orders{",
        r"[]a]+",
        r"[^]a]+",
        r"[a||b]+",
        r"orders(",
        r"*orders",
        r"o{99999999999999999999}",
        "(" * 2000 + ")" * 2000,
    ],
)
def test_what_is_javas_alone_is_not_guessed(pattern: str):
    """Such a pattern is an error that names it, of the kind that makes lag not known; never one of Python's own."""
    with pytest.raises(SourceUnreachable, match="is not known without Spark") as raised:
        topic_pattern(pattern)
    assert repr(pattern) in raised.value.what


@given(st.text(st.sampled_from(r"ab1.-_\[](){}?*+|^$&,:=!<>pdwQEk")))
def test_any_text_is_a_pattern_or_such_an_error(pattern: str):
    """No text makes another error, and what is taken is what Python would have compiled."""
    try:
        compiled = topic_pattern(pattern)
    except SourceUnreachable:
        return
    assert compiled == re.compile(pattern, re.ASCII)


def test_lag_of_such_a_pattern_is_not_known(monkeypatch: pytest.MonkeyPatch):
    """With the broker's answer there, lag says that the pattern can't be read, and whether there is news is open."""
    monkeypatch.setattr(BrokerTopics, "_ask", lambda _self, _question: _NoTopics())
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribePattern": r"orders\p{Digit}+"}
    backlog = kafka_backlog(options, {"orders1": {"0": 1}})
    assert "without Spark" in (backlog.unknown or "")
    assert backlog.moved is None


def test_settings_that_no_client_can_be_made_of():
    """A file of certificates that is not there, and an unknown protocol, make lag not known, and say what is wrong."""
    for login in (
        {"security.protocol": "SSL", "ssl.ca.location": "/no/such/ca.pem"},
        {"security.protocol": "CARRIER_PIGEON"},
    ):
        options = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "ev"}
        backlog = kafka_backlog(
            options, None, lambda servers, login=login: BrokerTopics(servers, login=login)
        )
        assert "No client for Kafka at broker:9092" in (backlog.unknown or "")


class _NoTopics:
    topics: ClassVar[dict[str, object]] = {}
