"""``python -m headwater_demo``: the demo, or one part of it by itself."""

from __future__ import annotations

import argparse
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from headwater.errors import HeadwaterError
from headwater.runtime.ports import LOOPBACK
from headwater_demo.demo import FIRST_LOT, SEED, run_demo
from headwater_demo.kafka_broker import KafkaBroker
from headwater_demo.sample_data import SampleData
from headwater_demo.sample_delivery import TOPIC, ArrivingData, Destination


def main() -> int:
    """Run a verb; returns the exit code."""
    options = _parser().parse_args()
    try:
        if options.verb == "demo":
            run_demo(Path.cwd(), once=options.once)
        elif options.verb == "broker":
            _run_broker(options)
        else:
            _send_data(options)
    except HeadwaterError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Interrupted; everything that was started has been ended.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headwater_demo", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    demo = verbs.add_parser("demo", help="Kafka, Airflow and the orders pipeline on this machine")
    demo.add_argument("--once", action="store_true", help="end after the second update")
    broker = verbs.add_parser("broker", help="a Kafka broker in the foreground")
    broker.add_argument("--folder", type=Path, required=True, help="where its data is kept")
    broker.add_argument("--host", default=LOOPBACK, help="the address to listen on (default: %(default)s)")
    broker.add_argument("--port", type=int, default=9092, help="the port for clients (default: %(default)s)")
    broker.add_argument("--advertised", default="", help="host:port that clients are given")
    data = verbs.add_parser("data", help="sample data that keeps arriving")
    data.add_argument("--kafka", required=True, help="host:port of the broker")
    data.add_argument("--landing", type=Path, required=True, help="the folder in which files land")
    data.add_argument("--seconds", type=float, default=5.0, help="between two lots (default: %(default)s)")
    return parser


def _run_broker(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    broker = KafkaBroker(options.folder, options.port, options.host, options.advertised)
    try:
        with broker:
            broker.create_topic(TOPIC, partitions=2)
            print(f"Kafka answers at {broker.bootstrap_servers}", flush=True)
            broker.wait()
    except KeyboardInterrupt:
        print("Kafka has stopped.")


def _send_data(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sample = SampleData(SEED, f"{datetime.now(UTC):%y%m%d%H%M%S}")
    destination = Destination(options.kafka, options.landing)
    destination.deliver(sample.lot(FIRST_LOT, datetime.now(UTC)))
    with ArrivingData(
        sample, destination, seconds=options.seconds, on_lot=lambda lot: print(lot, flush=True)
    ):
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
