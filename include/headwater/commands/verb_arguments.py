"""Arguments of the verbs that show something; larger ones have a module of their own."""

from __future__ import annotations

from datetime import timedelta

from headwater.contract.arguments import Parser, add_project_arguments, names
from headwater.contract.moments import count, moment, span

_MOMENTS = "a time in ISO form (UTC), or how long ago: 90 minutes, 7d"


def add_init_arguments(parser: Parser) -> None:
    """The new pipeline's place and name."""
    parser.add_argument("folder", metavar="DIR", help="a new or empty folder")
    parser.add_argument("--name", help="the pipeline's name (else the folder's)")
    parser.add_argument(
        "--json", dest="as_json", action="store_true", help="one JSON object as the last line"
    )


def add_convert_arguments(parser: Parser) -> None:
    """The settings, and the folder for the spec."""
    parser.add_argument("file", metavar="FILE", help="settings of a pipeline: JSON, YAML, or an asset bundle")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="the folder to write pipeline.yml into, and a bundle's sources (else the file's)",
    )
    parser.add_argument("--pipeline", metavar="KEY", help="which pipeline of a bundle that has several")
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="whose variables of a bundle are filled in (else the default target's)",
    )
    parser.add_argument(
        "--json", dest="as_json", action="store_true", help="one JSON object as the last line"
    )


def add_validate_arguments(parser: Parser) -> None:
    """How strict the linter is."""
    add_project_arguments(parser)
    parser.add_argument("--strict", action="store_true", help="warnings of the linter count as errors")
    parser.set_defaults(validate=True)


def add_graph_arguments(parser: Parser) -> None:
    """The form of the graph."""
    add_project_arguments(parser)
    parser.add_argument("--format", choices=("mermaid", "json"), default="mermaid")


def add_explain_arguments(parser: Parser) -> None:
    """Which view."""
    add_project_arguments(parser)
    parser.add_argument("view", metavar="VIEW", help="a materialized view of the pipeline")


def add_status_arguments(parser: Parser) -> None:
    """How much is shown of each stream."""
    add_project_arguments(parser)
    measures = "also rates, state and watermark lag of each stream's newest batch"
    parser.add_argument("--metrics", action="store_true", help=measures)


def add_stop_arguments(parser: Parser) -> None:
    """How long to wait."""
    add_project_arguments(parser)
    parser.add_argument(
        "--wait", type=span, default=timedelta(minutes=2), metavar="TIME",
        help="how long to wait for the batches in flight: 30 seconds, 5 minutes (2 minutes)",
    )  # fmt: skip


def add_events_arguments(parser: Parser) -> None:
    """Filters of events, or a query over them."""
    add_project_arguments(parser)
    parser.add_argument("--update-id", metavar="ID")
    parser.add_argument("--request-id", metavar="ID")
    parser.add_argument("--flow")
    parser.add_argument("--dataset")
    kinds = "only these types: flow_progress, update_progress, ..."
    parser.add_argument("--type", dest="event_type", type=names, action="extend", metavar="A,B", help=kinds)
    parser.add_argument("--level", choices=("INFO", "WARN", "ERROR", "METRICS"))
    parser.add_argument("--since", type=moment, metavar="WHEN", help=_MOMENTS)
    parser.add_argument("--until", type=moment, metavar="WHEN", help=_MOMENTS)
    parser.add_argument("--limit", type=count, default=50, metavar="N")
    parser.add_argument("--follow", action="store_true", help="print new events as they come, until Ctrl-C")
    query = "SQL over event_log('<pipeline-id>') and details:path.to.value; starts Spark"
    parser.add_argument("--sql", metavar="TEXT", help=query)


def add_quality_arguments(parser: Parser) -> None:
    """Which rules, over how many updates."""
    add_project_arguments(parser)
    parser.add_argument("--dataset", help="only the rules on this one")
    parser.add_argument("--updates", type=count, default=20, metavar="N", help="the newest N updates")
    parser.add_argument("--since", type=moment, metavar="WHEN", help=_MOMENTS)


def add_files_arguments(parser: Parser) -> None:
    """Which files."""
    add_project_arguments(parser)
    parser.add_argument("--flow", help="only this flow")
    parser.add_argument("--limit", type=count, default=0, metavar="N", help="only the newest N (else all)")


def add_lateness_arguments(parser: Parser) -> None:
    """The table, and its columns of time."""
    add_project_arguments(parser)
    parser.add_argument("table", metavar="TABLE", help="a table of the pipeline")
    parser.add_argument("--event-time", metavar="COLUMN", default="event_time", help="when it happened")
    parser.add_argument("--arrival", metavar="COLUMN", default="arrival_timestamp", help="when it came")
