"""SQL text in which names of the pipeline's datasets stand for the datasets.

Spark's own parser finds the names and says where in the text they are; each is replaced there by a temporary view
over the dataset's frame, and so are the calls that read a source. Nothing is registered in a catalog.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame

from headwater.definitions.names import is_plain_name
from headwater.errors import ActionInDefinition, MissingValue
from headwater.suggestions import nearest
from headwater_spark.facade.colon_paths import Replacement
from headwater_spark.facade.command_remedies import python_form
from headwater_spark.facade.event_log_text import EventLogText
from headwater_spark.facade.file_metadata import names_metadata, rows_with_metadata, stars_without_metadata
from headwater_spark.facade.pinned_tables import pinned_version
from headwater_spark.facade.session_parts import refuse_platform_setting
from headwater_spark.facade.sql_sources import SourceCall, frame_of, source_calls
from headwater_spark.java_classes import java_class
from headwater_spark.plans.plan_walk import TableReference, pair_of, simple_name, table_references

if TYPE_CHECKING:
    from headwater_spark.facade.pipeline_session import PipelineSession

_USE = re.compile(r"\s*use\s+(?:(?:catalog|schema|database|namespace)\s+)?[\w`.]+[\s;]*", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")


class SqlText:
    """Rewrites SQL for one facade."""

    def __init__(
        self,
        session: PipelineSession,
        configuration: Mapping[str, str],
        event_logs: EventLogText,
    ) -> None:
        self._session = session
        self._event_logs = event_logs
        self._configuration = configuration
        self._numbers = itertools.count(1)

    def rewrite(
        self, text: str, is_known: Callable[[list[str]], bool], qualified: Callable[[str], str] | None = None
    ) -> str:
        """Return ``text`` with ``${key}`` filled in and every known name replaced; what does not parse is left alone.

        ``qualified``: of a SQL source's text, which has its values already: the names in it with the parts that USE gives.
        """
        if qualified is None:
            text = _VARIABLE.sub(lambda match: self._value(match[1]), text)
            _refuse_use(text)
        text = self._event_logs.rewrite_calls(text)
        try:
            plan = self._parse(text)
        except ParseException:
            return text  # Spark's own call raises it again, with its context
        self._refuse_commands(plan, text)
        references = [
            reference
            for reference in _qualified(table_references(plan), qualified)
            if is_known(list(reference.parts)) or _path(reference, streaming=True) or _pinned_path(reference)
        ]
        calls = list(source_calls(plan))
        tables = {reference.start: self._table(reference) for reference in references}
        files = {call.start: frame_of(call, self._session) for call in calls}
        carrying = rows_with_metadata(files, tables) if names_metadata(text) else {}
        views = {start: self._view_of(frame) for start, frame in (tables | files | carrying).items()}
        stars = list(stars_without_metadata(plan, text, carrying)) if carrying else []
        substitutes = self._session.substitutes
        if substitutes is not None and substitutes.bounded:
            # The view is a batch: the word STREAM would ask for another.
            return _replaced(text, [*references, *calls, *stars], views, with_aliases=True, streams=False)
        named = _replaced(text, [*references, *calls, *stars], views, with_aliases=True)
        try:
            self._parse(named)
        except ParseException:  # a place where no alias is allowed, as before TABLESAMPLE
            return _replaced(text, [*references, *calls, *stars], views, with_aliases=False)
        return named

    def _value(self, key: str) -> str:
        """The value of ``${key}``: of the configuration, else of the session (Spark's own substitution)."""
        configured = self._configuration.get(key)
        if configured is not None:
            return configured
        try:
            return str(self._session.conf.get(key))
        except PySparkException:
            raise missing_value(key, self._configuration) from None

    def _parse(self, text: str) -> Any:
        return self._session._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001

    def _table(self, reference: TableReference) -> DataFrame:
        reader: Any = self._session.readStream if reference.streaming else self._session.read
        path = _path(reference, streaming=True) or _pinned_path(reference)
        if path is not None:
            pinned: DataFrame = reader.format("delta").options(**dict(reference.options)).load(path)
            return pinned
        frame: DataFrame = reader.options(**dict(reference.options)).table(".".join(reference.parts))
        return frame

    def _view_of(self, frame: DataFrame) -> str:
        view = f"headwater_read_{next(self._numbers)}"
        frame.createOrReplaceTempView(view)
        return view

    @cached_property
    def _commands(self) -> list[Any]:
        """The classes of which a parsed command is, whatever it does."""
        classes = java_class(self._session._jvm, "java.lang.Class")  # noqa: SLF001
        logical = "org.apache.spark.sql.catalyst.plans.logical"
        return [classes.forName(f"{logical}.{base}") for base in ("Command", "ParsedStatement")]

    def _refuse_commands(self, plan: Any, text: str) -> None:
        kind = simple_name(plan)
        if kind != "SetCommand" and any(one.isInstance(plan) for one in self._commands):
            raise ActionInDefinition(
                f"spark.sql runs a command here: {text.strip().splitlines()[0][:80]}",
                remedy=python_form(text),
            )
        if kind == "SetCommand" and plan.kv().isDefined():
            key, value = pair_of(plan.kv().get())
            if not value.startswith("None"):
                refuse_platform_setting(key, f"SET {key}")


def _refuse_use(text: str) -> None:
    if _USE.fullmatch(text):
        raise ActionInDefinition(
            f"A Python source has no current catalog and schema: {text.strip()}",
            remedy="Write names with all their parts, or `catalog` and `schema` in pipeline.yml; USE is taken in .sql files.",
        )


def _qualified(
    references: Iterable[TableReference], qualified: Callable[[str], str] | None
) -> Iterator[TableReference]:
    for reference in references:
        if qualified is None or not all(map(is_plain_name, reference.parts)):
            yield reference
        else:
            yield replace(
                reference,
                parts=tuple(qualified(".".join(reference.parts)).split(".")),
                written=reference.parts,
            )


def _pinned_path(reference: TableReference) -> str | None:
    """The folder of a table that the text names by it, where the table is to be read at a version that was noted."""
    path = _path(reference, streaming=False)
    options = {key.lower(): value for key, value in reference.options}
    return path if path is not None and pinned_version(path, options) is not None else None


def _path(reference: TableReference, *, streaming: bool) -> str | None:
    """The folder of a Delta table that the text names by it (``delta.`/folder```) and reads in this way."""
    by_path = len(reference.parts) == 2 and reference.parts[0].lower() == "delta"
    return reference.parts[1] if by_path and reference.streaming is streaming else None


def missing_value(key: str, keys: Collection[str]) -> MissingValue:
    """The error for a ``${key}`` without a value; ``keys``: the keys that have one."""
    near = nearest(key, keys)
    hint = f"Did you mean ${{{near}}}? Or give" if near else "Give"
    return MissingValue(
        f"The SQL text names ${{{key}}}, and {key} has no value.",
        remedy=f"{hint} it one: `{key}: ...` under `configuration` in pipeline.yml, or --param {key}=...",
    )


def _replaced(
    text: str,
    references: Sequence[TableReference | SourceCall | Replacement],
    views: Mapping[int, str],
    *,
    with_aliases: bool,
    streams: bool = True,
) -> str:
    # From the end, so that earlier positions stay right.
    for reference in sorted(references, key=lambda reference: -reference.start):
        if isinstance(reference, TableReference) and reference.clause is not None:
            first, last = reference.clause  # within the span, which keeps its length
            text = text[:first] + " " * (last + 1 - first) + text[last + 1 :]
        span = text[reference.start : reference.stop + 1]
        if isinstance(reference, Replacement):
            text = text[: reference.start] + reference.text + text[reference.stop + 1 :]
            continue
        if isinstance(reference, SourceCall):
            instead = reference.replaced_by(views[reference.start], text, streams=streams)
            text = text[: reference.start] + instead + text[reference.stop + 1 :]
            continue
        dotted = r"\s*\.\s*".join(f"`?{re.escape(part)}`?" for part in reference.written or reference.parts)
        # A stream's span begins with the word STREAM, and a table may be called so.
        word = r"(?<=stream\b)" if streams else r"stream\b"
        pattern = rf"{word}(\W*?){dotted}" if reference.streaming else f"(){dotted}"
        span = re.sub(pattern, rf"\g<1>{views[reference.start]}", span, count=1, flags=re.IGNORECASE)
        if with_aliases and not reference.aliased:
            # Columns may be referred to by the table's name: `orders.id`.
            span += f" AS `{reference.parts[-1]}`"
        text = text[: reference.start] + span + text[reference.stop + 1 :]
    return text
