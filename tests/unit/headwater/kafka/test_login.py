"""Logins at brokers whose lag is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.definitions.broker_login import BrokerLogin
from headwater.errors import SourceUnreachable
from headwater.kafka import login as kafka_login
from headwater.kafka.login import broker_connection, client_settings

LOGIN = BrokerLogin(protocol="SASL_SSL", username="reader", password_env="READER_PASSWORD", ca_file="ca.pem")


def test_settings_of_the_client():
    """Names become the client's, and secrets come out of the environment."""
    assert client_settings(LOGIN, "b:9093", {"READER_PASSWORD": "canary"}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": "canary",
        "ssl.ca.location": "ca.pem",
    }
    certificate = BrokerLogin(protocol="SSL", certificate_file="c.pem", key_file="k.pem")
    assert client_settings(certificate, "b:9093", {}) == {
        "security.protocol": "SSL",
        "ssl.certificate.location": "c.pem",
        "ssl.key.location": "k.pem",
    }


def test_a_secret_that_is_not_there():
    """A variable that is not set is named, with the broker that asks for it."""
    with pytest.raises(SourceUnreachable, match="READER_PASSWORD is not set") as caught:
        client_settings(LOGIN, "b:9093", {})
    assert "b:9093" in caught.value.what


def test_the_login_is_that_of_any_of_the_servers(pipeline, monkeypatch: pytest.MonkeyPatch):
    """A list of servers is found by each of its addresses; other brokers are asked without a login."""
    logins = []
    monkeypatch.setattr(
        kafka_login, "BrokerTopics", lambda servers, login: logins.append((servers, dict(login)))
    )
    monkeypatch.setenv("READER_PASSWORD", "canary")
    spec = pipeline.project.spec.model_copy(update={"brokers": {"a:9093, b:9093": LOGIN}})
    connect = broker_connection(replace(pipeline.project, spec=spec))
    connect("b:9093,c:9093")
    connect("c:9093")
    assert [(servers, login.get("sasl.username")) for servers, login in logins] == [
        ("b:9093,c:9093", "reader"),
        ("c:9093", None),
    ]


def test_a_broker_that_asks_for_a_login_nobody_has(pipeline, monkeypatch: pytest.MonkeyPatch):
    """Where Spark reads by a protocol with a login and ``brokers`` has none, that is said at once, and nobody waits for an answer."""
    opened = []
    monkeypatch.setattr(kafka_login, "BrokerTopics", lambda servers, login: opened.append(servers))
    with pytest.raises(SourceUnreachable, match=r"c:9093 requires a login .* brokers in") as caught:
        broker_connection(pipeline.project, "SASL_SSL")("c:9093")
    assert "brokers" in caught.value.remedy
    assert opened == []
    broker_connection(pipeline.project, "PLAINTEXT")("c:9093")
    monkeypatch.setenv("READER_PASSWORD", "canary")
    spec = pipeline.project.spec.model_copy(update={"brokers": {"d:9093": LOGIN}})
    broker_connection(replace(pipeline.project, spec=spec), "SASL_SSL")("d:9093")
    assert opened == ["c:9093", "d:9093"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol": "SASL_SSL", "username": "x"}, "needs username and password_env"),
        ({"protocol": "SASL_SSL", "username": "x", "password": "p"}, "password"),
        ({"protocol": "SSL", "username": "x"}, "has no username"),
        ({"protocol": "SSL", "key_file": "k"}, "belong together"),
        ({"protocol": "SASL_SSL", "username": "x", "password_env": "a b"}, "password_env"),
        ({"protocol": "PLAINTEXT"}, "protocol"),
    ],
)
def test_what_is_no_login(given: dict[str, str], message: str):
    """Half a login, a secret in the file, or a name that is not a variable is refused."""
    with pytest.raises(ValueError, match=message):
        BrokerLogin.model_validate(given)
