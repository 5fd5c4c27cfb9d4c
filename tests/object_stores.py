"""An S3 server on loopback for the tests (moto), which counts what it is asked."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headwater.storage.access import object_store
from headwater.storage.object_path import Bucket, ObjectPath

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "of-the-test",
    "AWS_SECRET_ACCESS_KEY": "of-the-test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@dataclass
class StoreServer:
    """A running server. ``requests``: each as (method, path with query), oldest first."""

    endpoint: str
    requests: list[tuple[str, str]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """Variables that lead any client to the server."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true"}

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        import boto3

        client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="of-the-test",
            aws_secret_access_key="of-the-test",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=name)

    def place(self, bucket: str, key: str = "") -> ObjectPath:
        """A place on the server."""
        return ObjectPath(Bucket(object_store("s3", {}, self.environment()), bucket), key)

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Count the requests of the block by method, ``LIST`` among them."""
        start, counts = len(self.requests), Counter[str]()
        yield counts
        for method, path in self.requests[start:]:
            counts["LIST" if method == "GET" and "list-type=2" in path else method] += 1


@contextmanager
def store_server() -> Iterator[StoreServer]:
    """Run a server on a free port of loopback."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    running = StoreServer(f"http://{host}:{port}")
    application: Any = server._server.app

    def counting(environment: dict[str, Any], start_response: Any) -> Any:
        query = environment.get("QUERY_STRING", "")
        running.requests.append((environment["REQUEST_METHOD"], f"{environment['PATH_INFO']}?{query}"))
        return application(environment, start_response)

    server._server.app = counting
    known = {name: os.environ.get(name) for name in running.environment()}
    os.environ.update(running.environment())
    try:
        yield running
    finally:
        for name, value in known.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        server.stop()
