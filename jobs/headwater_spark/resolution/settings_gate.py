"""Who may use a pipeline's session while a flow has settings of its own in it.

All flows of an update plan their queries in one session, and Spark reads its settings wherever it makes an expression: of a
rule, of a window, of a view's new rows. A flow that changes settings of the session is therefore alone in it; those that
change none use it side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pyspark.sql import SparkSession

from headwater_spark.plans.session_settings import session_settings

# How queries run and how files are laid out, which changes nobody's rows: such settings keep no other flow waiting.
_OF_THE_RUN = (
    "pipelines.",
    "spark.databricks.delta.autoCompact.",
    "spark.databricks.delta.optimizeWrite.",
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.codegen.",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxRecordsPerFile",
    "spark.sql.files.openCostInBytes",
    "spark.sql.parquet.compression.codec",
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.",
)


class SettingsGate:
    """Lets in either any number of threads that leave the settings as they are, or one that changes them.

    ``evaluating``: the lock that is held while a flow's function is called.
    """

    def __init__(self, session: SparkSession, evaluating: AbstractContextManager[bool]) -> None:
        self._session = session
        self._evaluating = evaluating
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._alone: int | None = None
        self._waiting: set[int] = set()

    @contextmanager
    def in_force(self, own: Mapping[str, str], overrides: Mapping[str, str] | None) -> Iterator[None]:
        """Apply a flow's ``own`` settings inside the block, and ``overrides`` over them.

        Those that change no other flow's rows keep nobody out but who evaluates a query; so do overrides alone, which are a
        stream's and say how its state is laid out.
        """
        if not own and overrides is None:
            with self.together():
                yield
            return
        alone = any(not setting.startswith(_OF_THE_RUN) for setting in own)
        with (
            self.alone() if alone else nullcontext(),
            self._evaluating,
            session_settings(self._session, {**own, **(overrides or {})}),
        ):
            yield

    @contextmanager
    def together(self) -> Iterator[None]:
        """Inside the block no other thread changes settings. Whoever waits to do so goes before those that come later."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._may_enter(me))
            self._inside[me] = self._inside.get(me, 0) + 1
        try:
            yield
        finally:
            self._leave(me)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside the block no other thread is in one. A thread that is in a block of ``together`` then stays alone until its end.

        Raises:
            RuntimeError: another thread that is in a block of ``together`` waits to be alone, and so would wait for this one.
        """
        me = threading.get_ident()
        with self._changed:
            if me in self._inside and self._inside.keys() & self._waiting:
                raise RuntimeError(
                    "Two threads that use the session's settings can't both change them midway."
                )
            self._waiting.add(me)
            try:
                self._changed.wait_for(lambda: not self._inside.keys() - {me})
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()
            self._alone = me
            self._inside[me] = self._inside.get(me, 0) + 1
        try:
            yield
        finally:
            self._leave(me)

    def _may_enter(self, thread: int) -> bool:
        return thread in self._inside or (self._alone is None and not self._waiting)

    def _leave(self, thread: int) -> None:
        with self._changed:
            self._inside[thread] -= 1
            if not self._inside[thread]:
                del self._inside[thread]
                self._alone = None if self._alone == thread else self._alone
            self._changed.notify_all()
