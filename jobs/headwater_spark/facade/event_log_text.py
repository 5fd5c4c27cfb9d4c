"""SQL text that asks for ``event_log('<pipeline-id>')`` or ``event_log(TABLE(t))``, made into text that Spark runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from headwater.definitions.names import is_folder_name
from headwater.delta_log.table_history import table_exists
from headwater.errors import UnknownDataset
from headwater.event_log.event import event_table
from headwater_spark.facade.colon_paths import Replacement, colon_paths, replaced
from headwater_spark.plans.plan_walk import class_name, items, plan_nodes, simple_name

_FUNCTION = "event_log"
_CALL = re.compile(
    r"event_log\s*\(\s*(?:'[^']*'|\"[^\"]*\"|TABLE\s*\([^()]*\)|TABLE\s+[^()]+)\s*\)", re.IGNORECASE
)
_FORM = "Write event_log('<pipeline-id>'), or event_log(TABLE(<table>)) with a table of this pipeline."


class EventLogText:
    """Rewrites queries for one session.

    Args:
        state_folder: of the pipeline; other pipelines' folders, by id, are beside it.
        own_table: the pipeline's table of a name, None where it has none.
    """

    def __init__(self, session: SparkSession, state_folder: Path, own_table: Callable[[str], object]) -> None:
        self._session = session
        self._state_folder = state_folder
        self._own_table = own_table
        self._views: dict[Path, str] = {}
        self._numbers = itertools.count(1)

    def rewrite(self, text: str) -> str:
        """``text`` with calls of ``event_log`` and paths with colons replaced; what does not parse is left alone.

        Raises UnknownDataset where there is no such pipeline or table.
        """
        try:
            plan = self._session._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001
        except ParseException:
            return text  # Spark's own call raises it again, with its context
        return replaced(text, [*self._calls(plan, text), *colon_paths(plan, text)])

    def rewrite_calls(self, text: str) -> str:
        """The same for a text that calls ``event_log``; in any other, colons are paths into VARIANT."""
        return self.rewrite(text) if _FUNCTION in text.lower() else text

    def _calls(self, plan: Any, text: str) -> Iterator[Replacement]:
        starts: set[int] = set()
        for node in plan_nodes(plan):
            if not _is_call(node):
                continue
            start = int(node.origin().startIndex().get())
            if start in starts:
                continue
            starts.add(start)
            call = _CALL.match(text, start)
            path = self._log(node) if call is not None else None
            if call is None or path is None:
                raise UnknownDataset("event_log is called in a form that is not known here.", remedy=_FORM)
            yield Replacement(start, call.end() - 1, self._view(path))

    def _log(self, call: Any) -> Path | None:
        arguments = items(call.functionArgs())
        if len(arguments) != 1:
            return None
        kind = simple_name(arguments[0])
        if kind == "Literal":
            return self._log_of(str(arguments[0].value()))
        if kind != "FunctionTableSubqueryArgumentExpression":
            return None
        tables = [n for n in plan_nodes(arguments[0].plan()) if class_name(n).endswith(".UnresolvedRelation")]
        if len(tables) != 1:
            return None
        name = ".".join(str(part) for part in items(tables[0].multipartIdentifier()))
        if self._own_table(name) is None:
            raise UnknownDataset(f"{name!r} is no table of this pipeline.", remedy=_FORM)
        return self._log_of(self._state_folder.name)

    def _log_of(self, pipeline: str) -> Path:
        usable = is_folder_name(pipeline)
        path = event_table(self._state_folder.with_name(pipeline) if usable else self._state_folder)
        if not usable or not table_exists(path):
            raise UnknownDataset(
                f"There is no event log of a pipeline {pipeline!r}.",
                where=self._state_folder.parent,
                remedy=f"A pipeline has one from its first update on. {_FORM}",
            )
        return path

    def _view(self, path: Path) -> str:
        if path not in self._views:
            self._views[path] = f"headwater_event_log_{next(self._numbers)}"
            self._session.read.format("delta").load(str(path)).createOrReplaceTempView(self._views[path])
        return self._views[path]


def _is_call(node: Any) -> bool:
    if not class_name(node).endswith(".UnresolvedTableValuedFunction"):
        return False
    name = [str(part).lower() for part in items(node.name())]
    return name == [_FUNCTION]
