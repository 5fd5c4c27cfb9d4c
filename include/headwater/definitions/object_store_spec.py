"""``object_store`` in ``pipeline.yml``: where the server of storage and warehouse is. Credentials have no place in the file."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from headwater.definitions.spec_model import Strict
from headwater.storage.access import is_server

_REGION = r"^[A-Za-z0-9-]{1,64}$"


class ObjectStoreSpec(Strict):
    """How ``s3://`` is reached, or ``abfss://`` where roots lie there; what is left out comes from the environment of AWS's own tools.

    ``endpoint``: the URL of another server than Amazon's. ``path_style``: the bucket stands in the path; so by default where
    there is an endpoint. ``sources``: files are read there though no text of the pipeline shows an address.
    """

    endpoint: str | None = None
    region: str | None = Field(default=None, pattern=_REGION)
    path_style: bool | None = None
    sources: bool = False

    @field_validator("endpoint")
    @classmethod
    def _an_address(cls, endpoint: str | None) -> str | None:
        if endpoint is None:
            return None
        if not is_server(endpoint):
            raise ValueError("write https://host or https://host:port")
        parts = urlsplit(endpoint)
        if parts.username or parts.password:
            raise ValueError("credentials have no place in this file; the store's default chain finds them")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError("an endpoint is a host and a port; the bucket stands in storage and warehouse")
        return endpoint
