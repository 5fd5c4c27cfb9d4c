"""How an object store is reached. obstore, delta-rs and Spark's Hadoop file system are all configured from this one place.

Each of the three finds credentials by the store's own default chain (environment, profile, role, workload identity), so that they
are in no argument, manifest, log or page. Where a login was looked up elsewhere (a connection of Airflow), its keys are in the
memory of the process that uses them, and in the environment of the driver that it starts.

Decision 0184, decision 0204, decision 0212.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from headwater.storage import azure, retries
from headwater.storage.conditions import StoreRefused
from headwater.storage.retries import Tries

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

# One spelling for each store, everywhere: Spark, delta-rs and obstore all know these.
SCHEMES = ("s3", "gs", "abfss")
# Gives what a login consists of, by the names of AWS's variables: ACCESS_KEY_ID and SECRET_ACCESS_KEY, both or neither,
# SESSION_TOKEN, ENDPOINT_URL_S3 and REGION, each with AWS_ before it.
Login: TypeAlias = Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class StoreKeys:
    """Credentials that were looked up elsewhere. No text shows them."""

    key_id: str = field(repr=False)
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ObjectStore:
    """How a store is reached.

    ``scheme``: "s3", "gs" or "abfss". ``endpoint``: the URL of its server, None for the provider's own. ``region``: None
    where nothing names one. ``path_style``: the bucket stands in the path of a request, not in the name of the host.
    ``keys``: used instead of the store's default chain. ``later``: says all the rest when the store is used (``opened``).
    """

    scheme: str
    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    keys: StoreKeys | None = None
    later: Callable[[], ObjectStore] | None = field(default=None, repr=False)

    def opened(self) -> ObjectStore:
        """The store as it is reached now: a login is looked up by this, and whatever that raises is raised."""
        return self if self.later is None else self.later()

    @property
    def encrypted(self) -> bool:
        """Whether requests go over TLS; an ``http://`` endpoint has to be written to get anything else."""
        return self.endpoint is None or not self.endpoint.startswith("http://")

    def delta_options_of(self, bucket: str) -> dict[str, str]:
        """As ``delta_options``, for a bucket."""
        return (
            azure.delta_options(self.endpoint, bucket) if self.scheme == azure.SCHEME else self.delta_options
        )

    @property
    def delta_options(self) -> dict[str, str]:
        """``storage_options`` of delta-rs; without credentials where it finds them as we do. They are for a call, and for no text."""
        if self.later is not None:
            return self.opened().delta_options
        if self.scheme != "s3":
            return {}
        options = {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(not self.path_style).lower()}
        if self.endpoint is not None:
            options["AWS_ENDPOINT_URL"] = self.endpoint
            options["AWS_ALLOW_HTTP"] = str(not self.encrypted).lower()
        if self.region is not None:
            options["AWS_REGION"] = self.region
        if self.keys is not None:
            options |= {"AWS_ACCESS_KEY_ID": self.keys.key_id, "AWS_SECRET_ACCESS_KEY": self.keys.secret}
            options |= {"AWS_SESSION_TOKEN": self.keys.token} if self.keys.token else {}
        return options


def object_store(
    scheme: str,
    declared: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    login: Login | None = None,
) -> ObjectStore:
    """The access to the stores of a scheme.

    Args:
        scheme: one of SCHEMES.
        declared: ``object_store`` of ``pipeline.yml`` as plain values: ``endpoint``, ``region``, ``path_style``.
        environment: what the spec does not say is taken from ``AWS_ENDPOINT_URL_S3``, ``AWS_ENDPOINT_URL``, ``AWS_REGION``
            and ``AWS_DEFAULT_REGION``; of ``abfss``, the endpoint from ``AZURE_STORAGE_ENDPOINT``.
        login: looked up whenever the store is used, never before; it wins over the environment.

    Raises:
        StoreRefused: the endpoint is no URL: obstore would end the process.
    """
    if login is not None and scheme == "s3":
        return ObjectStore(scheme, later=partial(_by_login, declared, environment, login))
    given = {key: value for key, value in (declared or {}).items() if value is not None}
    if scheme == azure.SCHEME:
        reached = azure.server(given.get("endpoint"), environment)
        return ObjectStore(scheme, reached, path_style=reached is not None)
    if scheme != "s3":
        return ObjectStore(scheme, given.get("endpoint"), given.get("region"), bool(given.get("path_style")))
    endpoint = given.get("endpoint") or azure.first(environment, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if endpoint is not None and not is_server(endpoint):
        raise StoreRefused(
            "The address of the object store's server is no URL.",
            where="AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the endpoint of the connection",
            remedy="Write it as https://host or https://host:port (http:// where it has no TLS).",
        )
    region = given.get("region") or azure.first(environment, "AWS_REGION", "AWS_DEFAULT_REGION")
    # Servers with an address of their own seldom have a host name for each bucket.
    path_style = given.get("path_style", endpoint is not None)
    return ObjectStore(scheme, endpoint.rstrip("/") if endpoint else None, region, bool(path_style))


def is_server(endpoint: str) -> bool:
    """Whether a text is the URL of a server, with its scheme and a host."""
    try:
        parts = urlsplit(endpoint)
        named = parts.scheme in ("http", "https") and bool(parts.hostname)
        return named and (parts.port is None or parts.port > 0) and not re.search(r"[\s\x00-\x1f]", endpoint)
    except ValueError:  # a port that is no number, half an IPv6 address
        return False


def _by_login(
    declared: Mapping[str, Any] | None, environment: Mapping[str, str], login: Login
) -> ObjectStore:
    given = login()
    store = object_store("s3", declared, {**environment, **given})
    if "AWS_ACCESS_KEY_ID" not in given:
        return store
    keys = StoreKeys(
        given["AWS_ACCESS_KEY_ID"], given["AWS_SECRET_ACCESS_KEY"], given.get("AWS_SESSION_TOKEN")
    )
    return replace(store, keys=keys)


def client(store: ObjectStore, bucket: str, *, quick: bool = False) -> Client:
    """The client for a bucket (of ``abfss``: ``container@account.dfs.core.windows.net``), one a process.

    ``quick``: give up after seconds, for what is tried again anyway. The first call reads the environment; none reaches the network.
    """
    return _client(store, bucket, retries.LEASES if quick else retries.of_this_process())


@lru_cache(maxsize=64)
def _client(store: ObjectStore, bucket: str, tries: Tries) -> Client:
    from obstore.store import from_url

    options: dict[str, Any] = {
        "client_options": {"allow_http": not store.encrypted, "timeout": tries.request_timeout},
        "retry_config": tries.config(),
    }
    if store.scheme == "s3":
        options["virtual_hosted_style_request"] = not store.path_style
        options["region"] = store.region or "us-east-1"
        options |= _credentials(store.keys)
        options |= {"endpoint": store.endpoint} if store.endpoint is not None else {}
    if store.scheme == azure.SCHEME:
        url = azure.blob_server(store.endpoint, bucket)
        options |= {"endpoint": url} if url is not None else {}
    chosen: Client = from_url(f"{store.scheme}://{bucket}", **options)
    return chosen


def _credentials(keys: StoreKeys | None) -> dict[str, Any]:
    if keys is None:
        return {"credential_provider": _profile()}
    token = {"session_token": keys.token} if keys.token else {}
    return {"access_key_id": keys.key_id, "secret_access_key": keys.secret, **token}


def _profile() -> Any:
    """Credentials of a profile in AWS's files, which obstore does not read; None where it finds some itself."""
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials"
    if "AWS_ACCESS_KEY_ID" in os.environ or not (Path(named).is_file() or "AWS_PROFILE" in os.environ):
        return None
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()
