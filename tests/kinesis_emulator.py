"""Moto's emulator of Kinesis on loopback: the real client speaks to it; the real service was never asked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import boto3
from moto.core import DEFAULT_ACCOUNT_ID
from moto.kinesis.models import kinesis_backends
from moto.server import ThreadedMotoServer

REGION = "eu-west-1"


class KinesisEmulator:
    """A running emulator. ``endpoint``: its URL."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.client: Any = boto3.client(
            "kinesis",
            region_name=REGION,
            endpoint_url=endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def make(self, stream: str, shards: int = 1) -> None:
        """Make a stream."""
        self.client.create_stream(StreamName=stream, ShardCount=shards)

    def put(self, stream: str, values: Sequence[object]) -> None:
        """Put one record a value, each with the value as its key."""
        for value in values:
            data = value if isinstance(value, bytes) else str(value).encode()
            self.client.put_record(StreamName=stream, Data=data, PartitionKey=str(value))

    def split(self, stream: str, shard: str) -> None:
        """Split a shard in the middle.

        The emulator would deal its records out to the children, and go on to put new ones into it; Kinesis does neither.
        """
        inner = kinesis_backends[DEFAULT_ACCOUNT_ID][REGION].streams[stream]
        records = inner.shards[shard].records
        before = set(inner.shards)
        middle = (inner.shards[shard].starting_hash + inner.shards[shard].ending_hash) // 2
        self.client.split_shard(StreamName=stream, ShardToSplit=shard, NewStartingHashKey=str(middle))
        inner.shards[shard].records = records
        inner.shards[shard].starting_hash = inner.shards[shard].ending_hash
        for child in set(inner.shards) - before:
            inner.shards[child].records.clear()


@contextmanager
def kinesis_emulator() -> Iterator[KinesisEmulator]:
    """Run an emulator inside the block, on a free port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield KinesisEmulator(f"http://{host}:{port}")
    finally:
        server.stop()
