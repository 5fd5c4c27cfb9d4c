"""Where an alert is posted to, and what is said where it is not taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from airflow.sdk.exceptions import AirflowException

from headwater_airflow.notifications import webhook
from headwater_airflow.notifications.alert import Alert
from headwater_airflow.notifications.webhook import WebhookNotifier

ALERT = Alert("shop", "lag", "open", ("bronze is late",), ("more cores",))


def post(monkeypatch: pytest.MonkeyPatch, answer: Any, **connection: Any) -> list[tuple[str, Any]]:
    """Where an alert is posted to over this connection, and what."""
    posts: list[tuple[str, Any]] = []

    def posted(address: str, *, json: Any, timeout: float) -> Any:
        posts.append((address, json))
        assert timeout == 10.0
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer)

    details = {"host": "hooks.example", "port": None, "schema": None, "password": "/T0/secret", **connection}
    monkeypatch.setattr(webhook.BaseHook, "get_connection", lambda _: SimpleNamespace(**details))
    monkeypatch.setattr(httpx, "post", posted)
    WebhookNotifier("hook").notify({"alert": ALERT})
    return posts


def test_an_alert_goes_over_tls_unless_the_connection_says_otherwise(monkeypatch: pytest.MonkeyPatch):
    """The path is the password of the connection; a schema that is not known is no reason to send in the clear."""
    ((address, body),) = post(monkeypatch, 200)
    assert address == "https://hooks.example/T0/secret"
    assert body == {
        "title": ALERT.title, "text": ALERT.text, "state": "open", "pipeline": "shop", "check": "lag",
        "lines": ("bronze is late",), "advice": ("more cores",),
    }  # fmt: skip
    assert post(monkeypatch, 204, port=8443, schema="other")[0][0] == "https://hooks.example:8443/T0/secret"
    assert post(monkeypatch, 200, port=80, schema="http")[0][0] == "http://hooks.example:80/T0/secret"


@pytest.mark.parametrize("answer", [404, 500, 302, httpx.ConnectError("no route to hooks.example/T0/secret")])
def test_an_alert_that_is_not_taken_is_an_error_without_the_address(
    monkeypatch: pytest.MonkeyPatch, answer: Any
):
    """The check stays announced as not sent; the secret is in no log."""
    with pytest.raises(AirflowException, match="connection hook") as refusal:
        post(monkeypatch, answer)
    assert "secret" not in str(refusal.value)
