"""The connection of Airflow by which a store is reached. It is looked up where it is used, when it is used.

A DAG file, a page of all pipelines and a trigger open pipelines without looking anything up. What is found stays in memory for a
minute, so that a key that was changed in Airflow counts from then on, in services that run for months, too.

Decision 0204.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSecretsBackendAccessDenied
from airflow.sdk.log import mask_secret
from pydantic import ValidationError

from headwater.definitions.airflow_spec import DAG_ID_PATTERN
from headwater.definitions.names import invalid_name
from headwater.definitions.object_store_spec import ObjectStoreSpec
from headwater.runtime.secret_values import note_secret
from headwater.storage.access import Login
from headwater.storage.conditions import StoreRefused

VARIABLE = "HEADWATER_STORE_CONNECTION"
_SECONDS = 60.0
# Of an AWS connection's extra. Others say whose keys they are in ways that only Airflow's own client of AWS follows.
_EXTRA = (
    "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "endpoint_url", "region_name", "service_config",
)  # fmt: skip
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_looked_up: dict[str, tuple[float, Mapping[str, str]]] = {}


def store_login(name: str | None, environment: Mapping[str, str] = os.environ) -> Login | None:
    """What looks a connection up.

    Args:
        name: as ``airflow: {store_connection: ...}`` of a pipeline has it; without one, HEADWATER_STORE_CONNECTION counts.
        environment: where that variable is.

    Returns:
        None where neither names one: the store's default chain finds credentials.

    Raises:
        InvalidName: the variable can't name a connection.
    """
    chosen = name or environment.get(VARIABLE, "").strip()
    if not chosen:
        return None
    if DAG_ID_PATTERN.fullmatch(chosen) is None:
        remedy = "Use letters, digits, underscores, dashes and dots, at most 128 characters."
        raise invalid_name(chosen, "connection", VARIABLE, remedy)
    return partial(login_variables, chosen)


def login_variables(name: str) -> Mapping[str, str]:
    """What a connection says, by the names of AWS's variables, as it was at most a minute ago.

    Raises:
        StoreRefused: there is no such connection, or it is none that can be followed.
    """
    until, variables = _looked_up.get(name, (0.0, {}))
    if time.monotonic() >= until:
        variables = _variables(name)
        _looked_up[name] = (time.monotonic() + _SECONDS, variables)
    return variables


def _variables(name: str) -> Mapping[str, str]:
    connection = _connection(name)
    if connection.conn_type != "aws":
        raise _refused(f"The connection {name!r} is not of type aws.", "Give it that type in Airflow.")
    extra = _extra(name, connection)
    texts = {
        "AWS_ACCESS_KEY_ID": connection.login or extra.get("aws_access_key_id"),
        "AWS_SECRET_ACCESS_KEY": connection.password or extra.get("aws_secret_access_key"),
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "AWS_ENDPOINT_URL_S3": _endpoint(extra),
        "AWS_REGION": extra.get("region_name"),
    }
    for secret in filter(None, (texts[key] for key in _KEYS)):
        mask_secret(secret)
        note_secret(secret)
    variables = {key: text for key, text in texts.items() if text}
    _check(name, variables)
    return variables


def _connection(name: str) -> Any:
    try:
        return BaseHook.get_connection(name)
    except (AirflowNotFoundException, AirflowSecretsBackendAccessDenied):
        raise _refused(
            f"Airflow has no connection {name!r} for this store, or does not give it.",
            "Make one of type aws (Admin, Connections), or name another.",
        ) from None


def _extra(name: str, connection: Any) -> Mapping[str, Any]:
    said = connection.extra_dejson or {}
    if not isinstance(said, Mapping):
        raise _refused(
            f"The connection {name!r} has an extra that is no JSON object.", 'Write {"region_name": "..."}.'
        )
    # Airflow's form leaves a null where a field was cleared.
    extra = {key: value for key, value in said.items() if value is not None}
    unknown = sorted(set(extra) - set(_EXTRA))
    if unknown:
        raise _refused(
            f"The connection {name!r} has {unknown[0]!a} in its extra, which only Airflow's own client of AWS follows.",
            f"Leave keys there that are known here ({', '.join(_EXTRA)}); a role that the machines have needs no connection.",
        )
    if any(not isinstance(extra.get(key, ""), str) for key in _EXTRA[:-1]):
        raise _refused(f"The connection {name!r} has something else than text in its extra.", "Write texts.")
    return extra


def _endpoint(extra: Mapping[str, Any]) -> str | None:
    """The server of S3, where it is named for that alone, else of all services."""
    services = extra.get("service_config")
    of_s3 = services.get("s3") if isinstance(services, Mapping) else None
    own = of_s3.get("endpoint_url") if isinstance(of_s3, Mapping) else None
    return str(own or extra.get("endpoint_url") or "") or None


def _check(name: str, variables: Mapping[str, str]) -> None:
    key_id, secret, token = (key in variables for key in _KEYS)
    if key_id != secret or (token and not key_id):
        raise _refused(
            f"The connection {name!r} has a part of a login only.",
            "Give it a login (the access key) and a password (the secret key), or neither.",
        )
    if key_id and not token and os.environ.get("AWS_SESSION_TOKEN"):
        raise _refused(
            f"The keys of the connection {name!r} have no session token, and this environment has one of others: they can't be told apart.",
            "Take AWS_SESSION_TOKEN out of the environment of Airflow's services.",
        )
    try:
        ObjectStoreSpec(endpoint=variables.get("AWS_ENDPOINT_URL_S3"), region=variables.get("AWS_REGION"))
    except ValidationError as error:
        wrong = error.errors(include_input=False)[0]
        raise _refused(
            f"The connection {name!r} has no usable {wrong['loc'][0]}: {wrong['msg']}.",
            "Correct endpoint_url and region_name in its extra.",
        ) from None


def _refused(what: str, remedy: str) -> StoreRefused:
    return StoreRefused(what, where="store_connection", remedy=remedy)
