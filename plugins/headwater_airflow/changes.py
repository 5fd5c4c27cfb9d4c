"""The change feed in Airflow: what wakes a DAG when a table's rows change, and what a task then reads.

@dag(schedule=[DeltaTableAsset("shop.orders")])
def report():
@changes("shop.orders", form="arrow")
def add_up(changes): ...

add_up()
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import Asset, AssetWatcher
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.consumer import LATEST, SNAPSHOT, ChangeConsumer, Start
from headwater.change_feed.reading import arrow_table, spark_read
from headwater.definitions.names import is_file_name
from headwater.errors import HeadwaterError, UsageError
from headwater.storage.place import Place
from headwater_airflow.roots import storage_folder, table_name, warehouse_table
from headwater_airflow.triggers.change_feed import ChangeFeedTrigger

Form = Literal["range", "arrow", "spark"]
_FORMS = ("range", "arrow", "spark")
_WAIT = timedelta(seconds=60)


class DeltaTableAsset(Asset):  # type: ignore[misc]  # Airflow's types are not followed
    """The rows of a Delta table: ``DAG(schedule=[DeltaTableAsset("shop.orders")])`` runs when they have changed.

    Any writer's commits count, also those that Headwater does not make; optimize, vacuum and changes of the schema or of
    properties do not. Commits between two looks make one event. Its ``extra["payload"]`` has the range of versions and
    the counts by type of change; the task should read with ``@changes``, which keeps a position of its own.

    Args:
        table: ``[catalog.]schema.table`` below the warehouse.
        types: of change that count: insert, update, delete; all where none is given.
        columns: an update counts only if it changes one of these. Needs the table's change feed: without it, every
            update counts.
        min_rows: how many rows have to change; they add up over commits.
        quiet_seconds: wait until the table has had no commit for so long.

    Raises:
        UsageError, InvalidName: if one of these has no meaning.

    """

    def __init__(
        self,
        table: str,
        *,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        min_rows: int = 1,
        quiet_seconds: float = 0.0,
    ) -> None:
        parsed = table_name(table)
        change_filter = ChangeFilter.checked(types, columns, min_rows, quiet_seconds)
        query = urlencode(_filter_extra(change_filter))
        # However it was spelled: to Airflow, two names with one address are a conflict, and one of them wakes nobody.
        plain = ".".join(parsed.location.split("/"))
        trigger = ChangeFeedTrigger(
            plain,
            change_filter.types,
            change_filter.columns,
            change_filter.min_rows,
            change_filter.quiet_seconds,
        )
        super().__init__(
            name=f"{plain}@changes" + (f"?{query}" if query else ""),
            uri=f"x-delta-changes://{parsed.location}" + (f"?{query}" if query else ""),
            group="headwater",
            watchers=[AssetWatcher(name="change_feed", trigger=trigger)],
        )


class ChangesOperator(DecoratedOperator, PythonOperator):  # type: ignore[misc]
    """Calls a function with what has changed in a table since it last ended well; skipped where nothing has.

    The position is a file in storage, moved after the function has returned and Airflow has stored what it returned. A range that was begun and not finished
    (a failure, a killed worker) is repeated with the same bounds, followed by the rest.
    """

    custom_operator_name = "@changes"
    template_fields: Sequence[str] = ("op_args", "op_kwargs")

    def __init__(
        self,
        *,
        table: str,
        python_callable: Callable[..., Any],
        form: Form = "range",
        start: Start = SNAPSHOT,
        reader: str | None = None,
        op_args: Sequence[Any] = (),
        op_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        accepted = [name for name in ("changes", "change_range") if name in _parameters(python_callable)]
        if "changes" not in accepted:
            raise UsageError(f"{python_callable.__name__} needs a parameter named `changes`.")
        if form not in _FORMS:
            raise UsageError(f"There is no form {form!r}.", remedy=f"Forms: {', '.join(_FORMS)}.")
        if start not in (SNAPSHOT, LATEST) and (isinstance(start, str | bool) or start < 0):
            raise UsageError(
                f"A reader can't start at {start!r}.",
                remedy=f"Give {SNAPSHOT!r}, {LATEST!r} or a version of the table.",
            )
        if reader is not None and not is_file_name(reader):
            raise UsageError(f"{reader!r} can't name a reader.")
        table_name(table)
        own_kwargs = {**(op_kwargs or {}), **dict.fromkeys(accepted)}
        kwargs.setdefault("max_active_tis_per_dag", 1)
        super().__init__(
            python_callable=python_callable,
            op_args=list(op_args),
            op_kwargs=own_kwargs,
            kwargs_to_upstream={
                "python_callable": python_callable,
                "op_args": list(op_args),
                "op_kwargs": own_kwargs,
            },
            **kwargs,
        )
        self.op_kwargs: dict[str, Any] = own_kwargs
        self.table = table
        self.form = form
        self.start = start
        self.reader = reader

    def execute(self, context: Any) -> Any:
        """Read on from the position, and move it."""
        consumer = self._consumer(context["ti"])
        own_kwargs: dict[str, Any] = dict(self.op_kwargs)
        result, worked = None, 0
        try:
            with consumer.alone(_WAIT):
                unfinished = consumer.has_begun()
                while change_range := consumer.next_range():
                    self.log.info("%s", _described(change_range))
                    self.op_kwargs = {**own_kwargs, **self._call_arguments(change_range, own_kwargs)}
                    result = super().execute(context)
                    self._store(result, context)
                    consumer.done(change_range)
                    worked += 1
                    if not unfinished:
                        break
                    unfinished = False
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        if not worked:
            raise AirflowSkipException(f"No row of {self.table} has changed since this task last ended well.")
        return result

    def _store(self, result: Any, context: Any) -> None:
        """Store the result before the position moves: one that Airflow can't store would leave those behind without the range.

        What Airflow refuses by its type it would refuse after this.
        """
        stored = result if self.do_xcom_push else None
        mapped_over = context["ti"].map_index < 0 and next(self.iter_mapped_dependants(), None) is not None
        if mapped_over and not _can_be_mapped_over(stored):
            raise _refused(stored, "Other tasks are mapped over the result: it has to be a list or a dict.")
        if self.multiple_outputs and stored is not None and not _has_names(stored):
            raise _refused(
                stored, "With multiple_outputs, which a return type of dict sets, keys have to be texts."
            )
        if self.do_xcom_push and result is not None:
            context["ti"].xcom_push(key=BaseXCom.XCOM_RETURN_KEY, value=result)

    def _call_arguments(self, change_range: ChangeRange, names: dict[str, Any]) -> dict[str, Any]:
        path = warehouse_table(self.table)
        value: Any = change_range
        if self.form == "arrow":
            value = arrow_table(path, change_range)
        elif self.form == "spark":
            value = spark_read(path, change_range)
        return {
            name: value if name == "changes" else change_range
            for name in ("changes", "change_range")
            if name in names
        }

    def _consumer(self, instance: Any) -> ChangeConsumer:
        return ChangeConsumer(
            position_file(self.table, instance.dag_id, instance.task_id, instance.map_index, self.reader),
            self.table,
            warehouse_table(self.table),
            self.start,
        )


def changes(
    table: str,
    *,
    form: Form = "range",
    start: Start = SNAPSHOT,
    reader: str | None = None,
    **task: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Make a task of a function with a parameter ``changes``: what has changed since it last ended well.

    Args:
        table: ``[catalog.]schema.table`` below the warehouse.
        form: of ``changes``: ``range``, the bounds and counts (ChangeRange); ``arrow``, a pyarrow.Table with Delta's
            columns of the change feed, read without a JVM; ``spark``, the options of a read in Spark (SparkRead:
            ``changes.load(spark)``). A second parameter ``change_range`` always gets the ChangeRange.
        start: where the task begins the first time: ``snapshot``, with all that the table holds then, as inserts;
            ``latest``, with what comes after its first run; or a version.
        reader: whose position it is; the task of the DAG if not given.
        task: arguments of the task, as ``@task`` takes them.

    Returns:
        A decorator; what it returns is called inside a DAG, like a ``@task``.

    """
    decorator: Callable[[Callable[..., Any]], Any] = task_decorator_factory(
        decorated_operator_class=ChangesOperator, table=table, form=form, start=start, reader=reader, **task
    )
    return decorator


def position_file(
    table: str, dag_id: str, task_id: str, map_index: int = -1, reader: str | None = None
) -> Place:
    """Where a task keeps its position in a table's changes."""
    folder = storage_folder() / "change_feeds" / "readers"
    mapped = f"[{map_index}]" if map_index >= 0 else ""
    if reader is not None:
        return folder / "named" / f"{reader}{mapped}.{table}.json"
    for part in (dag_id, task_id):
        if not is_file_name(part):
            raise UsageError(f"{part!r} can't name a file.", remedy="Give the task a `reader`.")
    return folder / "tasks" / dag_id / f"{task_id}{mapped}.{table}.json"


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    return list(inspect.signature(function).parameters)


def _can_be_mapped_over(result: Any) -> bool:
    return isinstance(result, Sequence | dict) and not isinstance(result, str | bytes | bytearray)


def _has_names(result: Any) -> bool:
    return isinstance(result, Mapping) and all(isinstance(key, str) for key in result)


def _refused(result: Any, why: str) -> AirflowFailException:
    kind = type(result).__name__
    return AirflowFailException(f"{why} The function has returned {kind}. Its range comes again.")


def _filter_extra(change_filter: ChangeFilter) -> dict[str, str]:
    extra: dict[str, str] = {}
    if change_filter.types:
        extra["types"] = "+".join(change_filter.types)
    if change_filter.columns:
        extra["columns"] = "+".join(change_filter.columns)
    if change_filter.min_rows > 1:
        extra["min_rows"] = str(change_filter.min_rows)
    if change_filter.quiet_seconds:
        extra["quiet_seconds"] = f"{change_filter.quiet_seconds:.15g}"
    return extra


def _described(changes: ChangeRange) -> str:
    counts = ", ".join(
        f"{'some' if rows is None else rows} {name}s"
        for name, rows in changes.counts.as_dict().items()
        if rows != 0
    )
    what = "All rows" if changes.snapshot else f"Versions {changes.start_version} to {changes.end_version}"
    return f"{what} of {changes.table} at version {changes.end_version}: {counts}."
