"""What the flows of a continuous update share: their intervals, and which of them has looked at its sources once.

Decision 0172.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headwater.definitions.flow_settings import continuous_interval, is_real_time, real_time_interval
from headwater.definitions.source import SourceKind
from headwater.graph.update_plan import UpdatePlan
from headwater_spark.resolution.graph_resolution import ResolvedPipeline

_TABLES = (SourceKind.DATASET, SourceKind.DELTA)


@dataclass
class ContinuousRun:
    """A continuous update. ``intervals``: the seconds between two looks of each flow."""

    intervals: Mapping[str, float]
    started: float = field(default_factory=time.monotonic)
    restarting: dict[str, int] = field(default_factory=dict)
    _tables: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _failed: set[str] = field(default_factory=set)
    _running: set[str] = field(default_factory=set)
    _readable: set[str] = field(default_factory=set)
    _looked: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def table_lock(self, dataset: str) -> threading.Lock:
        """Flows of one table prepare it one after another."""
        with self._changed:
            return self._tables[dataset]

    def restarts(self, flow: str, attempt: int) -> None:
        """A flow has failed, and will start again."""
        self._running.discard(flow)
        self.restarting[flow] = attempt

    def is_running(self, flow: str) -> None:
        """A flow has written what there was, or a batch of it."""
        self.restarting.pop(flow, None)
        self._running.add(flow)
        self.looked(flow)

    def runs(self, flow: str) -> bool:
        """Whether a flow has come so far since its last start."""
        return flow in self._running

    def looked(self, flow: str) -> None:
        """A flow has read what it found first, or had nothing to read: those that read its table may start."""
        if flow not in self._looked:
            with self._changed:
                self._looked.add(flow)
                self._changed.notify_all()
        self.readable(flow)

    def readable(self, flow: str) -> None:
        """Those that read a flow's table need not wait for it: an earlier update wrote to it, or it has ended."""
        if flow not in self._readable:
            with self._changed:
                self._readable.add(flow)
                self._changed.notify_all()

    def is_readable(self, flow: str) -> bool:
        """Whether a flow's readers may start."""
        return flow in self._readable

    def gave_up(self, flow: str) -> None:
        """A flow has failed for good: those that read its table, and have not started, never will."""
        with self._changed:
            self._failed.add(flow)
            self._changed.notify_all()

    def wait_for(
        self, flows: Collection[str], stop: threading.Event, *, in_this_update: bool = False
    ) -> frozenset[str]:
        """Wait until all of these flows may be read, or a stop; returns those that will not, having failed.

        ``in_this_update``: until they have looked once since it began, whatever earlier ones wrote.
        """
        met = self._looked if in_this_update else self._readable
        with self._changed:
            while not stop.is_set() and not met.issuperset(flows):
                failed = self._failed.intersection(flows) - met
                if failed:
                    return frozenset(failed)
                self._changed.wait(0.5)
        return frozenset()


def flow_intervals(pipeline: ResolvedPipeline, plan: UpdatePlan) -> dict[str, float]:
    """The seconds between two looks of each flow of a continuous update."""
    project, intervals = pipeline.project, {}
    for stage in plan.refreshes:
        properties = pipeline.dataset(stage.dataset).table_properties
        for name in stage.flows:
            entry, flow = pipeline.manifest.flow(name), pipeline.flow(name)
            if is_real_time(flow.spark_conf):
                intervals[name] = real_time_interval(flow.spark_conf).total_seconds()
                continue
            intervals[name] = continuous_interval(
                flow.spark_conf, properties, project.configuration, project.spec.spark,
                streaming=entry.streaming and flow.snapshots is None,
                over_delta=all(source.kind in _TABLES for source in entry.sources),
            ).total_seconds()  # fmt: skip
    return intervals
