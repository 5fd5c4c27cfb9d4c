"""What ``rename``, ``move`` and ``relocate`` take."""

from __future__ import annotations

import argparse

from headwater.contract.arguments import Parser, add_project_arguments
from headwater.graph.pipeline_project import PipelineProject, open_project


def add_rename_verb(parser: Parser) -> None:
    """``rename PIPELINE_DIR TABLE NEW``."""
    add_project_arguments(parser)
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("new", metavar="NEW", help="table, schema.table or catalog.schema.table")
    parser.add_argument("--yes", action="store_true", help="carry it out; without it nothing is changed")
    parser.set_defaults(answer=_rename)


def add_move_verb(parser: Parser) -> None:
    """``move PIPELINE_DIR TABLE --to OTHER_DIR``."""
    add_project_arguments(parser)
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("--to", required=True, metavar="OTHER_DIR", help="the folder of the other pipeline")
    parser.add_argument("--yes", action="store_true", help="carry it out; without it nothing is changed")
    parser.set_defaults(answer=_move)


def add_relocate_verb(parser: Parser) -> None:
    """``relocate PIPELINE_DIR --to-storage PLACE [--to-warehouse PLACE]``."""
    add_project_arguments(parser)
    parser.add_argument(
        "--to-storage", required=True, metavar="PLACE", help="a folder, or s3://bucket/folder"
    )
    parser.add_argument("--to-warehouse", metavar="PLACE", help="where the tables go; without it they stay")
    parser.add_argument("--yes", action="store_true", help="carry it out; without it nothing is changed")
    parser.set_defaults(answer=_relocate)


def _rename(parsed: argparse.Namespace) -> int:
    from headwater.commands.move import rename

    project = _project(parsed, parsed.pipeline)
    return rename(project, parsed.table, parsed.new, yes=parsed.yes, as_json=parsed.as_json)


def _move(parsed: argparse.Namespace) -> int:
    from headwater.commands.move import move

    project, to = _project(parsed, parsed.pipeline), _project(parsed, parsed.to)
    return move(project, parsed.table, to, yes=parsed.yes, as_json=parsed.as_json)


def _relocate(parsed: argparse.Namespace) -> int:
    from headwater.commands.relocate import relocate_pipeline

    source = _project(parsed, parsed.pipeline)
    target = open_project(
        parsed.pipeline,
        storage=parsed.to_storage,
        warehouse=parsed.to_warehouse or source.warehouse,
        parameters=dict(parsed.parameters),
    )
    return relocate_pipeline(source, target, yes=parsed.yes, as_json=parsed.as_json)


def _project(parsed: argparse.Namespace, folder: str) -> PipelineProject:
    return open_project(
        folder, storage=parsed.storage, warehouse=parsed.warehouse, parameters=dict(parsed.parameters)
    )
