"""Of a source's options the manifest has what observers need, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater_spark.sources.plan_sources import DELTA_OPTIONS, TableNames, _entry

CANARY = "Hunter2Canary"
NAMES = TableNames(Path("/stubs"), Path("/warehouse"), {"shop/orders": "orders"})
LOGIN = f'PlainLoginModule required username="u" password="{CANARY}";'
GIVEN = {
    "kafka": {"kafka.bootstrap.servers": "kafka:9092", "subscribe": "orders", "kafka.sasl.jaas.config": LOGIN},
    "eventhubs": {"eventhubs.connectionString": f"Endpoint=sb://ns/;SharedAccessKey={CANARY}", "maxFileAge": "1d"},
    "kinesis": {"streamName": "s", "endpoint": f"https://me:{CANARY}@kinesis:4567", "awsSecretKey": CANARY},
    "jdbc": {"url": f"jdbc:postgresql://me:{CANARY}@db/shop", "dbtable": "orders", "password": CANARY},
    "json": {"path": f"s3a://AKIA:{CANARY}@bucket/landing", "fs.s3a.secret.key": CANARY},
    "csv": {"path": f"abfss://lot@lake.dfs.core.windows.net/in?sv=1&sig={CANARY}"},
    "delta": {"path": f"s3a://AKIA:{CANARY}@bucket/table"},
    "custom": {"path": f"https://host/a?token={CANARY}"},
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("streaming", [True, False])
def test_no_secret_is_kept(name: str, streaming: bool):
    """Of whatever source, in an option or in an address."""
    entry = _entry(name, GIVEN[name], NAMES, streaming=streaming)
    assert CANARY not in entry.model_dump_json()
    kept = {
        "kafka": "kafka:9092",
        "kinesis": "kinesis:4567",
        "json": "s3a://bucket/landing",
        "csv": "abfss://lot@lake.dfs",
        "delta": "bucket/table",
    }
    assert kept.get(name, "") in json.dumps(entry.model_dump(mode="json"))


def test_how_a_broker_is_reached_is_kept():
    """Whoever asks it without Spark has to know that it answers nobody without a login."""
    entry = _entry("kafka", {**GIVEN["kafka"], "kafka.security.protocol": "SASL_SSL"}, NAMES, streaming=True)
    assert entry.options["kafka.security.protocol"] == "SASL_SSL"


@pytest.mark.parametrize("path", ["/data/token=7/in", "file:/data/pwd=a/in", "data/sig=b", "/data/a:b@c"])
def test_local_folders_are_kept_as_they_are(path: str):
    """A folder of a partition may be named like a secret; lag and checks have to list it."""
    entry = _entry("json", {"path": path}, NAMES, streaming=True)
    assert entry.path == path.removeprefix("file:")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("kafka", {"maxOffsetsPerTrigger": "7", "minPartitions": "4"}),
        ("kinesis", {"maxRecordsPerTrigger": "7"}),
        ("json", {"path": "/data/in", "maxFilesPerTrigger": "7"}),
        ("delta", {"path": "/warehouse/shop/orders", "maxBytesPerTrigger": "7g"}),
    ],
)
def test_what_bounds_a_batch_is_kept(name: str, given: dict[str, str]):
    """Advice on limits has to know them, in the spelling in which they are written; options reach us in lower case."""
    wanted = {key: value for key, value in given.items() if key != "path"}
    entry = _entry(name, {key.lower(): value for key, value in given.items()}, NAMES, streaming=True)
    assert entry.options == wanted


def test_limits_reach_stand_ins_of_tables():
    """A stream from a table of the pipeline is resolved over a stand-in, whose options are those that a Delta stream may have."""
    assert {"maxfilespertrigger", "maxbytespertrigger"} <= DELTA_OPTIONS
