"""Alerts to a web hook."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook, BaseNotifier
from airflow.sdk.exceptions import AirflowException

_SECONDS = 10.0


class WebhookNotifier(BaseNotifier):  # type: ignore[misc]  # Airflow's types are not followed
    """Posts an alert as JSON: ``text`` (as Slack and Mattermost read it), ``title``, ``state``, ``pipeline``, ``check``, ``lines``, ``advice``.

    The address is that of an Airflow connection: host, port, and ``https`` unless its schema is ``http``. Its path, which
    mostly is the secret, is the connection's password; it is in no log and no error.

    Args:
        connection: the id of the connection.

    """

    def __init__(self, connection: str = "headwater_webhook") -> None:
        super().__init__()
        self.connection = connection

    def notify(self, context: Any) -> None:
        """Post the alert; raises AirflowException if it is not taken."""
        import httpx

        alert = context["alert"]
        connection = BaseHook.get_connection(self.connection)
        port = f":{connection.port}" if connection.port else ""
        scheme = "http" if connection.schema == "http" else "https"
        address = f"{scheme}://{connection.host}{port}/{(connection.password or '').lstrip('/')}"
        body = {
            name: getattr(alert, name)
            for name in ("title", "text", "state", "pipeline", "check", "lines", "advice")
        }
        try:
            answer = httpx.post(address, json=body, timeout=_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The error's own text has the address.
            raise AirflowException(
                f"The web hook of the connection {self.connection} can't be reached: {type(error).__name__}."
            ) from None
        if not answer.is_success:
            raise AirflowException(
                f"The web hook of the connection {self.connection} answered {answer.status_code}."
            )
