"""Azure's storage accounts: addresses, servers and logins, as obstore, delta-rs and Hadoop's client want them.

Decision 0212.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from headwater.storage.conditions import StoreRefused

SCHEME = "abfss"
_ADDRESS = re.compile(
    r"(?P<container>[a-z0-9][a-z0-9-]{2,62})@(?P<account>[a-z0-9]{3,24})\.dfs\.core\.windows\.net"
)
# As obstore and delta-rs read them.
_SERVER = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_KEY = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
_CLIENT = ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID")
_SECRET = ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET")
_TENANT = (
    "AZURE_STORAGE_TENANT_ID", "AZURE_STORAGE_AUTHORITY_ID", "AZURE_TENANT_ID", "AZURE_AUTHORITY_ID",
)  # fmt: skip
_AUTHORITY = ("AZURE_STORAGE_AUTHORITY_HOST", "AZURE_AUTHORITY_HOST")
_FEDERATED = ("AZURE_FEDERATED_TOKEN_FILE",)
_SAS = ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN")

AUTH_TYPE = "fs.azure.account.auth.type"
_OAUTH = "fs.azure.account.oauth2"
_PROVIDER = "fs.azure.account.oauth.provider.type"
_PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2."


def account_of(bucket: str) -> str:
    """The storage account in ``container@account.dfs.core.windows.net``; raises StoreRefused for anything else."""
    match = _ADDRESS.fullmatch(bucket)
    if match is None:
        raise StoreRefused(
            f"{bucket!a} names no container of a storage account.",
            remedy="Write abfss://container@account.dfs.core.windows.net/folder.",
        )
    return match["account"]


def server(declared: str | None, environment: Mapping[str, str]) -> str | None:
    """Scheme, host and port of the server, None for Azure's own.

    Args:
        declared: the spec's ``endpoint``.
        environment: what obstore and delta-rs read; there, the account may stand behind the host.
    """
    given = declared or first(environment, *_SERVER)
    if not given:
        return None
    parts = urlsplit(given)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def blob_server(endpoint: str | None, bucket: str) -> str | None:
    """The URL below which containers lie: a server of one's own has the account in the path of requests."""
    account = account_of(bucket)
    return None if endpoint is None else f"{endpoint}/{account}"


def delta_options(endpoint: str | None, bucket: str) -> dict[str, str]:
    """``storage_options`` of delta-rs, without credentials: it finds them in the environment, as obstore does."""
    url = blob_server(endpoint, bucket)
    if url is None:
        return {}
    return {"azure_storage_endpoint": url, "allow_http": str(url.startswith("http://")).lower()}


def hadoop_login(environment: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings for the login that obstore and delta-rs find in the same environment, in the order in which they look.

    They contain secrets, and belong into the memory of a driver only.
    """
    key, client, secret, tenant, federated, sas = (
        first(environment, *names) for names in (_KEY, _CLIENT, _SECRET, _TENANT, _FEDERATED, _SAS)
    )
    if key:
        return {AUTH_TYPE: "SharedKey", "fs.azure.account.key": key}
    if client and secret and tenant:
        authority = (first(environment, *_AUTHORITY) or "https://login.microsoftonline.com").rstrip("/")
        return {
            AUTH_TYPE: "OAuth",
            _PROVIDER: f"{_PROVIDERS}ClientCredsTokenProvider",
            f"{_OAUTH}.client.endpoint": f"{authority}/{tenant}/oauth2/token",
            f"{_OAUTH}.client.id": client,
            f"{_OAUTH}.client.secret": secret,
        }
    if client and tenant and federated:
        return {
            AUTH_TYPE: "OAuth",
            _PROVIDER: f"{_PROVIDERS}WorkloadIdentityTokenProvider",
            f"{_OAUTH}.client.id": client,
            f"{_OAUTH}.msi.tenant": tenant,
            f"{_OAUTH}.token.file": federated,
        }
    if sas:
        return {AUTH_TYPE: "SAS", "fs.azure.sas.fixed.token": sas}
    of_machine = {AUTH_TYPE: "OAuth", _PROVIDER: f"{_PROVIDERS}MsiTokenProvider"}
    return of_machine | ({f"{_OAUTH}.client.id": client} if client else {})


def first(environment: Mapping[str, str], *names: str) -> str | None:
    """The value of the first variable that has one."""
    return next((environment[name] for name in names if environment.get(name)), None)
