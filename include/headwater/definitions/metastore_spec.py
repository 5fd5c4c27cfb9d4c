"""``metastore`` in ``pipeline.yml``: the catalog that lists the pipeline's tables for other readers. No secret has a place in it."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from headwater.definitions.spec_model import Strict

_PORT = 9083
_OTHERS = {
    "unity": "Unity Catalog can't be registered with: its server and its Spark catalog are not among the packages that this version is "
    "built and tried with, and tables that it manages keep their commits outside of the log that every check here reads",
    "glue": "AWS Glue is reached by an API of its own, which is not implemented",
    "iceberg": "tables of a pipeline are Delta tables; an Iceberg catalog can't list them",
}


class MetastoreSpec(Strict):
    """Where tables are registered after an update.

    ``type``: the kind of catalog. ``uri``: ``thrift://host:port`` of a metastore service, or several with commas: the first that
    answers is used.
    """

    type: Literal["hive"] = "hive"
    uri: str = Field(min_length=1)

    @field_validator("type", mode="before")
    @classmethod
    def _known_type(cls, kind: object) -> object:
        reason = _OTHERS.get(kind.lower()) if isinstance(kind, str) else None
        if reason is not None:
            raise ValueError(
                f"{reason}. Write `type: hive`, or leave `metastore` out: tables are found by their path"
            )
        return kind

    @field_validator("uri")
    @classmethod
    def _addresses(cls, uri: str) -> str:
        for each in uri.split(","):
            _address(each)
        return uri

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports, in the order in which they are tried."""
        return tuple(_address(each) for each in self.uri.split(","))


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(text.strip())
    if parts.scheme != "thrift" or not parts.hostname or re.search(r"[\s\x00-\x1f]", text.strip()):
        raise ValueError(
            "write thrift://host:9083, or several with commas; TLS, HTTP and Kerberos are not spoken"
        )
    if parts.username or parts.password:
        raise ValueError("a metastore takes no login in its address; credentials have no place in this file")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("an address is a host and a port; the database follows from the names of the tables")
    port = parts.port  # raises ValueError
    return parts.hostname, _PORT if port is None else port
