from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.object_stores import StoreServer, store_server


@pytest.fixture(scope="module")
def s3() -> Iterator[StoreServer]:
    """An S3 server with a bucket ``places``."""
    with store_server() as server:
        server.make_bucket("places")
        yield server
