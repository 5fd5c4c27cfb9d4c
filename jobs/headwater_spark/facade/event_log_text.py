"""SQL text that asks for ``event_log('<pipeline-id>')``, ``event_log(TABLE(t))`` or ``cloud_files_state(...)``, made into text that
Spark runs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from headwater.definitions.names import is_folder_name
from headwater.delta_log.table_history import table_exists
from headwater.errors import UnknownDataset, UnsupportedSource
from headwater.event_log.event import event_table
from headwater.metrics.file_states import COLUMNS, Row
from headwater.storage.place import Place
from headwater_spark.facade.colon_paths import Replacement, colon_paths, replaced
from headwater_spark.plans.plan_walk import class_name, items, plan_nodes, simple_name

_FUNCTION, _FILES = "event_log", "cloud_files_state"
_CALL = re.compile(
    r"(?:event_log|cloud_files_state)\s*\(\s*(?:'[^']*'|\"[^\"]*\"|TABLE\s*\([^()]*\)|TABLE\s+[^()]+)\s*\)",
    re.IGNORECASE,
)
_FORM = "Write event_log('<pipeline-id>'), or event_log(TABLE(<table>)) with a table of this pipeline."


class EventLogText:
    """Rewrites queries for one session.

    Args:
        state_folder: of the pipeline; other pipelines' folders, by id, are beside it.
        own_table: the pipeline's table of a name, None where it has none.
        files: the files that a table's or flow's streams know, as rows of ``file_states``; None where nobody may ask.
    """

    def __init__(
        self,
        session: SparkSession,
        state_folder: Place,
        own_table: Callable[[str], object],
        files: Callable[[str], list[Row]] | None = None,
    ) -> None:
        self._session = session
        self._files = files
        self._state_folder = state_folder
        self._own_table = own_table
        self._views: dict[Place, str] = {}
        self._numbers = itertools.count(1)

    def rewrite(self, text: str) -> str:
        """``text`` with calls of both functions and paths with colons replaced; what does not parse is left alone.

        Raises UnknownDataset where there is no such pipeline or table.
        """
        try:
            plan = self._session._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001
        except ParseException:
            return text  # Spark's own call raises it again, with its context
        return replaced(text, [*self._calls(plan, text), *colon_paths(plan, text)])

    def rewrite_calls(self, text: str) -> str:
        """The same for a text that calls one of them; in any other, colons are paths into VARIANT."""
        return self.rewrite(text) if any(name in text.lower() for name in (_FUNCTION, _FILES)) else text

    def _calls(self, plan: Any, text: str) -> Iterator[Replacement]:
        starts: set[int] = set()
        for node in plan_nodes(plan):
            name = _called(node)
            if name is None:
                continue
            start = int(node.origin().startIndex().get())
            if start in starts:
                continue
            starts.add(start)
            call = _CALL.match(text, start)
            literal, table = _argument(node)
            if call is None or (literal is None and table is None):
                raise UnknownDataset(
                    f"{name} is called in a form that is not known here.",
                    remedy=_FORM.replace(_FUNCTION, name),
                )
            if table is not None and self._own_table(table) is None:
                raise UnknownDataset(
                    f"{table!r} is no table of this pipeline.", remedy=_FORM.replace(_FUNCTION, name)
                )
            if name == _FILES:
                view = self._view_of_files(str(table or literal))
            else:
                view = self._view(self._log_of(self._state_folder.name if literal is None else literal))
            yield Replacement(start, call.end() - 1, view)

    def _view_of_files(self, reference: str) -> str:
        if self._files is None:
            raise UnsupportedSource(
                "cloud_files_state can't be read by a dataset: it changes with each update, and no table would say so.",
                remedy='Ask with `headwater events PIPELINE_DIR --sql "SELECT * FROM cloud_files_state(TABLE(t))"`, or `headwater files`. '
                "The file of each row is in _metadata.file_path.",
            )
        view = f"headwater_files_{next(self._numbers)}"
        self._session.createDataFrame(self._files(reference), COLUMNS).createOrReplaceTempView(view)
        return view

    def _log_of(self, pipeline: str) -> Place:
        usable = is_folder_name(pipeline)
        path = event_table(self._state_folder.with_name(pipeline) if usable else self._state_folder)
        if not usable or not table_exists(path):
            raise UnknownDataset(
                f"There is no event log of a pipeline {pipeline!r}.",
                where=self._state_folder.parent,
                remedy=f"A pipeline has one from its first update on. {_FORM}",
            )
        return path

    def _view(self, path: Place) -> str:
        if path not in self._views:
            self._views[path] = f"headwater_event_log_{next(self._numbers)}"
            self._session.read.format("delta").load(str(path)).createOrReplaceTempView(self._views[path])
        return self._views[path]


def _called(node: Any) -> str | None:
    """The name of the function that a node calls, None where it is none of ours."""
    if not class_name(node).endswith(".UnresolvedTableValuedFunction"):
        return None
    parts = [str(part).lower() for part in items(node.name())]
    return parts[0] if parts in ([_FUNCTION], [_FILES]) else None


def _argument(call: Any) -> tuple[str | None, str | None]:
    """The literal that is its one argument, or the table's name; neither where it is something else."""
    arguments = items(call.functionArgs())
    if len(arguments) != 1:
        return None, None
    kind = simple_name(arguments[0])
    if kind == "Literal":
        return str(arguments[0].value()), None
    if kind != "FunctionTableSubqueryArgumentExpression":
        return None, None
    tables = [n for n in plan_nodes(arguments[0].plan()) if class_name(n).endswith(".UnresolvedRelation")]
    if len(tables) != 1:
        return None, None
    return None, ".".join(str(part) for part in items(tables[0].multipartIdentifier()))
