from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.object_stores import StoreServer, leading_to


@pytest.fixture(scope="module")
def s3(light_store: StoreServer) -> Iterator[StoreServer]:
    """A light S3 server with a bucket ``places``; modules that prove what the seam makes of S3 have moto instead."""
    with leading_to(light_store):
        light_store.make_bucket("places")
        yield light_store


@pytest.fixture(scope="module")
def moto(moto_store: StoreServer) -> Iterator[StoreServer]:
    """An S3 server that others have written, with a bucket ``places``."""
    with leading_to(moto_store):
        moto_store.make_bucket("places")
        yield moto_store
