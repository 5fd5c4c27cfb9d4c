"""What spark-submit runs to ingest a topic without a pipeline: ``ingest_kafka_events.py SERVERS TOPIC CHECKPOINT TABLE``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts this folder on the path, but not the ground floor beside it.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include"), str(Path(__file__).resolve().parent)]

from headwater.contract.failure_report import run_and_report
from headwater_spark.session import start_session
from headwater_spark.streaming import ingest_kafka_events


def main(argv: Sequence[str]) -> int:
    """Ingest until the stream ends; returns the exit code."""
    parser = argparse.ArgumentParser(prog="ingest_kafka_events.py", description=__doc__)
    parser.add_argument("kafka_servers", help="host:port of the broker")
    parser.add_argument("topic")
    parser.add_argument("checkpoint_location", help="folder of the query's checkpoint")
    parser.add_argument("target_table", help="name of the Delta table, or delta.`/path`")
    parser.add_argument("--starting-offsets", default="latest", help="of the first start (default: latest)")
    parser.add_argument("--dlq-table", help="table for messages that are no event")
    parser.add_argument("--available-now", action="store_true", help="take what is there, then end")

    def action() -> int:
        parsed = parser.parse_args(argv)
        ingest_kafka_events(
            start_session("ingest_kafka_events", {}),
            parsed.kafka_servers,
            parsed.topic,
            parsed.checkpoint_location,
            parsed.target_table,
            starting_offsets=parsed.starting_offsets,
            dlq_table=parsed.dlq_table,
            trigger={"availableNow": True} if parsed.available_now else None,
        )
        return 0

    return run_and_report(action, as_json=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
