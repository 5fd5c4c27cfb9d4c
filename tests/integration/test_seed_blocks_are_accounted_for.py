"""Every Python block of the texts that this project grew from runs as it is written, is refused with the form that
works, or defines no dataset. None is left out.

The texts lie beside the checkout of whoever builds Headwater, in ``../shared/seeds``. Without them this module is
skipped, and ``test_forms_of_lakeflow.py`` holds the same shapes in words of its own.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.lakeflow_blocks import (
    Block,
    Member,
    NotADataset,
    Outcome,
    Refused,
    Runs,
    build_world,
    columns_are,
    rows_are,
    run_block,
    run_together,
)

from headwater.runtime.ports import free_port
from headwater_demo.kafka_broker import KafkaBroker

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
HUB = "Endpoint=sb://127.0.0.1:{port}/;SharedAccessKeyName=a;SharedAccessKey=b/c=;EntityPath=events;UseDevelopmentEmulator=true"

pytestmark = [
    pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not beside this checkout"),
    pytest.mark.usefixtures("one_partition"),
]

# What each seed's blocks find around them: the imports of the seed's first cell, and what it leaves to the reader.
PRELUDES = {
    "000": "from pyspark.sql import functions as F",
    "001": """from pyspark.sql import functions as F
streamingDeltaDf = sourceDf = changesStream = spark.readStream.table("bronze.events")""",
    "003": """from pyspark.sql import SparkSession, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import *
from typing import Dict, List, Optional
event_schema = StructType([StructField("event_id", StringType()), StructField("user_id", StringType())])""",
    "004": """from pyspark.sql import SparkSession, DataFrame, functions as F
from pyspark.sql.functions import *
from pyspark.sql.types import *
event_schema = "event_id STRING, user_id STRING, event_type STRING, event_timestamp TIMESTAMP, platform STRING"
streaming_df = spark.readStream.table("bronze.events")""",
}

# All that is changed in a block: paths, hosts, and one line that is no code of a pipeline. {} is filled in below.
REPLACEMENTS = [
    ("/mnt/sales/json", "{files}/sales_json"),
    ("/mnt/sales/delta", "{files}/sales_delta"),
    ("/files/delta/user_events", "{tables}/raw/events"),
    ("/pathToMyDeltaTable", "{tables}/shop/myDeltaTable"),
    ("/mnt/landing/events", "{files}/events_json"),
    ("/mnt/logs/", "{files}/events_json"),
    ("/mnt/schemas/", "{schemas}/"),
    ("kafka-broker:9092", "{kafka}"),
    ('"broker:9092"', '"{kafka}"'),
    ("kafka:9092", "{kafka}"),
    # A look-up that the text's reader makes, not the pipeline.
    ('mcp__data-knowledge-base__get_document("pipeline", "lakeflow-pipelines")', "pass"),
]


def messages(topic: str, *tables: str) -> dict[str, int]:
    """Two messages arrive, and the next update takes exactly these into the topic's tables."""
    producer = Producer({"bootstrap.servers": KAFKA[0], "log_level": 0})
    for number in range(2):
        producer.produce(topic, key=str(number), value='{"event_id": "e", "user_id": "u"}')
    assert producer.flush(20) == 0
    return dict.fromkeys(tables, 2)


KAFKA: list[str] = []
SYNTAX = "invalid syntax"
started = partial(Refused, "ACTION_IN_DEFINITION")
distinct = partial(
    Refused, "UNSUPPORTED_STREAM_OPERATION", 'countDistinct("user_id")', 'F.approx_count_distinct("user_id")'
)
no_dataset = partial(NotADataset, condition="INVALID_PIPELINE", says="declare no dataset")

# Seed, number of the block -> what comes of it. Rows are those of `tests/lakeflow_blocks.py`.
OUTCOMES: dict[tuple[str, int], Outcome] = {
    ("000", 1): Runs({"streaming_sales": 6}),
    ("000", 2): Runs({"daily_sales": 1}),
    ("001", 1): Runs({"from_001_1": 6}, frame="streamingDeltaDf"),
    ("001", 2): started(".start(", "@dp.table"),
    ("001", 3): started(".start(", "@dp.table"),
    ("001", 4): Runs({"from_001_4": 6}, frame="streamingDeltaDf"),
    ("001", 5): Runs({"from_001_5": 6}, frame="streamingDeltaDf"),
    ("001", 6): no_dataset("a read that nothing uses"),
    # The text has a small letter where Spark has a capital one.
    ("001", 7): NotADataset("a reader that is not there", says="Did you mean 'readStream'?"),
    ("001", 8): NotADataset("a reader that is not there", says="Did you mean 'readStream'?"),
    ("001", 9): started(".start()", "def writeToDeltaLakeTableIdempotent(batch_df, batch_id)"),
    ("001", 10): started(".start()", "dp.create_auto_cdc_flow"),
    ("001", 11): NotADataset(
        "it names moments before the table was made", says="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    ),
    ("001", 12): no_dataset("a read that nothing uses"),
    ("003", 1): Runs({"customers": 1}),
    ("003", 2): Runs({"events": 6}),
    ("003", 3): Runs({"bronze_events": 6}),
    ("003", 4): Runs(
        {
            "events_from_delta": 6,
            "events_from_cloud_files": 6,
            "events_from_kafka": 0,
            "events_from_eventhub": 0,
        },
        arrives=partial(messages, "events-topic", "events_from_kafka"),
    ),
    ("003", 5): Runs(
        {"bronze_events_enriched": 6},
        check=columns_are(
            "bronze_events_enriched",
            "event_id",
            "event_type",
            "event_timestamp",
            "user_id",
            "device_type",
            "processed_at",
        ),
    ),
    ("003", 6): Runs({"my_stream": 6}),
    ("003", 7): started('.table("target")', '@dp.table(name="target")'),
    ("003", 8): Runs({"transaction_stream": 2}),
    ("003", 9): Runs({"events": 6}),
    ("003", 10): Runs({"events_with_schema": 6}),
    ("003", 11): Runs({"events_with_watermark": 6}),
    ("003", 12): distinct(),
    ("003", 13): NotADataset("three watermarks, no query", says=SYNTAX),
    ("003", 14): Runs({"events_with_lateness_tracking": 6}),
    ("003", 15): Runs({"stateless_transform": 3}),
    ("003", 16): Runs(
        {"stateful_aggregation": 2},
        check=rows_are("stateful_aggregation", "*", [("u1", 550.0), ("u2", 210.0)]),
    ),
    # Each of three closed events lies in five sliding windows.
    ("003", 17): Runs({"window_aggregations": 15}),
    ("003", 18): Runs({"deduplicated_events": 5}),
    # Two matches, and one click whose time for a match is over.
    ("003", 19): Runs({"joined_streams": 3}),
    # With a watermark of a day no window is closed yet.
    ("003", 20): Runs({"unbounded_state": 2, "bounded_state": 0}),
    ("003", 21): Runs(
        {"customers": 1, "enriched_transactions": 2},
        check=rows_are(
            "enriched_transactions", "transaction_id, customer_tier", [("t1", "gold"), ("t2", None)]
        ),
    ),
    ("003", 22): Runs({"slow_enrichment": 6, "fast_enrichment": 6}),
    ("003", 23): Runs({"stream_with_dimension": 6}),
    ("003", 24): Runs({"bronze_logs": 6}),
    ("003", 25): Runs({"deduplicated_events": 5}),
    # The text says that this merges; it appends, on Lakeflow too.
    ("003", 26): Runs({"merged_events": 6}),
    ("003", 27): Runs(
        {"hourly_metrics": 2},
        check=rows_are(
            "hourly_metrics", "category, total_revenue, event_count", [("a", 350.0, 2), ("b", 100.0, 2)]
        ),
    ),
    ("003", 28): Runs(
        {"user_sessions": 2},
        check=rows_are("user_sessions", "user_id, events_in_session", [("u1", 3), ("u2", 1)]),
    ),
    ("003", 29): no_dataset("comments"),
    ("003", 30): Runs({"optimized_aggregation": 3}),
    ("003", 31): Runs({"optimized_stream": 6}),
    ("003", 32): no_dataset("comments"),
    ("004", 1): NotADataset("look-ups of documents", says="NameError"),
    ("004", 2): started(
        '.table("prod_trusted_bronze.internal.user_events")',
        '@dp.table(name="prod_trusted_bronze.internal.user_events")',
    ),
    ("004", 3): no_dataset("a function that nothing calls"),
    ("004", 4): started('.table("silver.windowed_event_metrics")', "return df"),
    ("004", 5): no_dataset("comments"),
    ("004", 6): distinct(frame="streaming_metrics"),
    ("004", 7): started('.table("silver.deduplicated_events")', "return df"),
    # Both sides have user_id; which of them the table shall have, the query has to say.
    ("004", 8): Refused("DUPLICATE_COLUMN", "def from_block", '.select("e.*"', frame="joined_stream"),
    ("004", 9): Runs(
        {"from_004_9": 6},
        frame="enriched_stream",
        check=rows_are("from_004_9", "distinct user_id, user_name", [("u1", "Ann"), ("u2", None)]),
    ),
    ("004", 10): started('.table("bronze.user_events")', "return df"),
    ("004", 11): NotADataset("options, no query", says=SYNTAX),
    ("004", 12): NotADataset("triggers, no query", says=SYNTAX),
    ("004", 13): NotADataset("a trigger, no query", says=SYNTAX),
    ("004", 14): NotADataset("a trigger, no query", says=SYNTAX),
    ("004", 15): NotADataset("a trigger, no query", says=SYNTAX),
    ("004", 16): Runs(
        {"from_004_16": 0},
        frame="streaming_df",
        arrives=partial(messages, "events", "from_004_16", "events_from_eventhub"),
    ),
    ("004", 17): Runs({"from_004_17": 5}, frame="streaming_df"),
    ("004", 18): Refused("UNSUPPORTED_STREAM_OPERATION", ".cache()", "@dp.temporary_view"),
    ("004", 19): no_dataset("a setting"),
    ("004", 20): started(".start()", "@dp.table"),
    ("004", 21): Refused(
        "UNSUPPORTED_ARGUMENT", "spark.streams.addListener", "import StreamingQueryListener"
    ),
    ("004", 22): no_dataset("a function that nothing calls"),
    ("004", 23): no_dataset("a function that nothing calls"),
    ("004", 24): started('.table("bronze.raw_events")', '@dp.table(name="bronze.raw_events")'),
    ("004", 25): started('.table("silver.enriched_events")', "return df"),
    ("004", 26): started('.table("gold.realtime_metrics")', "return df"),
    ("004", 27):  # Without inferColumnTypes a nested value is text, on Lakeflow too: it has no fields.
    Refused("QUERY_FAILED", "properties.duration_seconds", '"cloudFiles.inferColumnTypes", "true"'),
    ("004", 28): NotADataset("decorators without a function", says=SYNTAX),
    ("004", 29): Runs({"silver_users_current": 2, "silver_users_history": 3}),
    ("004", 30): NotADataset("advice in pieces", says=""),
    ("004", 31): NotADataset("advice in pieces", says=SYNTAX),
}


# The block of bronze, silver and enriched sessions, with the option that its refusal names.
MENDED: dict[tuple[str, int], Runs] = {
    ("004", 27): Runs(
        {"bronze_raw_events": 6, "silver_sessions": 2, "silver_enriched_sessions": 2},
        check=rows_are("silver_enriched_sessions", "user_id, user_name", [("u1", "Ann"), ("u9", None)]),
    )
}
TYPED = (
    '.option("cloudFiles.format", "json")',
    '.option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")',
)


def blocks(seed: str) -> list[str]:
    """The Python blocks of a seed, in order."""
    text = next(SEEDS.glob(f"{seed}_*.txt")).read_text(encoding="utf-8")
    matches = re.findall(r"^( *)```python\n(.*?)^\1```", text, flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in matches]


def cells(seed: str) -> list[str]:
    """The code cells of a seed that was a notebook: what follows `In [None]:` up to a heading."""
    text = next(SEEDS.glob(f"{seed}_*.txt")).read_text(encoding="utf-8")
    return re.findall(r"^In \[None\]:\n(.*?)(?=^In \[None\]:|^#+ \d)", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker with the blocks' topics, and an address that asks for the hub's login."""
    port = free_port()
    users = {"$ConnectionString": HUB.format(port=port)}
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), users=users, login_port=port) as running:
        for topic in ("events-topic", "events", "user-events"):
            running.create_topic(topic)
        KAFKA[:] = [running.bootstrap_servers]
        yield running


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that the blocks read."""
    return build_world(tmp_path_factory.mktemp("world") / "warehouse")


@pytest.fixture
def member(
    world: Path, tmp_path: Path, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Member]:
    """A block with what it needs around it, and its outcome."""
    monkeypatch.setenv("HEADWATER_SECRET_EVENTHUB_CONNECTION_STRING", HUB.format(port=broker.login_port))
    filled = {
        "files": world / "files",
        "tables": world,
        "schemas": tmp_path / "schemas",
        "kafka": broker.bootstrap_servers,
    }

    def make(seed: str, number: int, *, runs: bool = False) -> Member:
        changes = [(old, new.format(**filled)) for old, new in REPLACEMENTS]
        one = (
            running(seed, number)
            if runs
            else Member(as_written(seed, number), OUTCOMES[seed, number], number)
        )
        return replace(one, block=replace(one.block, prelude=PRELUDES[seed], replacements=changes))

    return make


def as_written(seed: str, number: int) -> Block:
    """A block of a seed."""
    return Block(f"{seed} block {number}", blocks(seed)[number - 1])


def running(seed: str, number: int) -> Member:
    """A block that runs, as it is written or as it is mended."""
    block, key = as_written(seed, number), (seed, number)
    if key in MENDED:
        block = replace(block, text=block.text.replace(*TYPED))
    return Member(block, MENDED.get(key, OUTCOMES[key]), number)


def groups() -> list[list[tuple[str, int]]]:
    """The blocks that run, in as few pipelines as their names permit; no pipeline has many more than a dozen."""
    outcomes = (OUTCOMES | MENDED).items() if SEEDS.is_dir() else ()
    members = {key: running(*key) for key, outcome in outcomes if isinstance(outcome, Runs)}
    groups: list[list[tuple[str, int]]] = []
    # First those that bear the fewest.
    for key, member in sorted(members.items(), key=lambda item: sum(map(item[1].bears, members.values()))):
        for group in groups:
            if len(group) < 16 and all(member.bears(members[other]) for other in group):
                group.append(key)
                break
        else:
            groups.append([key])
    return groups


GROUPS = groups()
ALONE = [key for key, outcome in OUTCOMES.items() if not isinstance(outcome, Runs)]


@pytest.mark.parametrize("seed", ["000", "001", "003", "004"])
def test_none_is_left_out(seed: str):
    """The table has every block of the seed, and no other; each is run in a group or alone."""
    assert [number for key, number in OUTCOMES if key == seed] == list(range(1, len(blocks(seed)) + 1))
    run = [key for group in GROUPS for key in group]
    assert sorted([key for key in run if key not in MENDED] + ALONE) == sorted(OUTCOMES)
    assert MENDED.keys() <= set(run)


@pytest.mark.parametrize(("seed", "number"), ALONE, ids=[f"{s}-{n}" for s, n in ALONE])
def test_a_block_that_does_not_run(seed: str, number: int, member, world: Path, tmp_path: Path):
    """The block has its outcome, in a spelling of the face and a kind of file that change from block to block."""
    run_block(member(seed, number), world, tmp_path)


@pytest.mark.parametrize(
    "group", GROUPS, ids=[f"{len(group)} from {'-'.join(map(str, group[0]))}" for group in GROUPS]
)
def test_blocks_that_run(group: list[tuple[str, int]], member, world: Path, tmp_path: Path):
    """Each block gives its rows; a second update adds just what has arrived in its topics, and no row of any block again. Spelling and kind
    of file change from block to block.
    """
    run_together([member(*key, runs=True) for key in group], world, tmp_path)


def test_the_notebook_cells_load(tmp_path: Path, pipeline):
    """The cells of imports and set-up that come before the blocks run as cells of a notebook, and declare nothing."""
    notebook = cells("003")
    assert len(notebook) == 2
    case = pipeline("\n".join(notebook) + "\n@dp.table\ndef one():\n    return spark.range(1)\n")
    assert [entry.name for entry in case.manifest().datasets] == ["one"]
