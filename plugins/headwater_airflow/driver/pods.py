"""Driver pods as the API of Kubernetes shows them: found by their labels, and followed to their end.

Decision 0205.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from headwater.event_log.redaction import quoted, redact_text
from headwater.runtime.conditions import ClusterUnreachable, DriverPodNotStarted

LOOK_SECONDS = 10.0
# A registry, a node or the API server may be away for a while; what is wrong stays so.
PATIENCE_SECONDS = 300.0
_ENDED = ("Succeeded", "Failed")
# Why a container waits that has everything it needs but time.
_ON_ITS_WAY = ("", "ContainerCreating", "PodInitializing")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Pod:
    """One pod. ``waiting``: why its container does not start, where that is told; ``ending``: how it ended, for people."""

    name: str
    phase: str
    exit_code: int | None = None
    waiting: str = ""
    ending: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.phase in _ENDED

    @classmethod
    def of(cls, pod: Any) -> Pod:
        """A pod as the client of Kubernetes gives it; the driver is its first container."""
        states = [status.state for status in pod.status.container_statuses or [] if status.state]
        state = states[0] if states else None
        waits = getattr(state, "waiting", None)
        over = getattr(state, "terminated", None)
        waiting = f"{waits.reason}: {waits.message or ''}".rstrip(": ") if waits and waits.reason else ""
        ending = f"{over.reason or 'ended'}, exit code {over.exit_code}" if over else ""
        phase = pod.status.phase or "Pending"
        return cls(pod.metadata.name, phase, over.exit_code if over else None, waiting, ending)

    @property
    def stuck(self) -> bool:
        """Whether its container can't start as things are: no such image, a secret that is not there."""
        return self.phase == "Pending" and self.waiting.partition(":")[0] not in _ON_ITS_WAY


class Pods:
    """The pods of a namespace.

    Args:
        api: ``CoreV1Api`` of the client of Kubernetes.
        namespace: theirs.
        sleep: how to wait between two looks.

    """

    def __init__(self, api: Any, namespace: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._api = api
        self._namespace = namespace
        self._sleep = sleep

    def labelled(self, selector: str) -> list[Pod]:
        """The pods with these labels, by their age.

        Raises:
            ClusterUnreachable: no answer for five minutes, or a refusal.
        """
        listed = self._patiently(
            lambda: self._api.list_namespaced_pod(self._namespace, label_selector=selector)
        )
        items = [] if listed is None else listed.items
        return [Pod.of(pod) for pod in sorted(items, key=_created)]

    def wait_for_end(self, name: str, log: Any) -> Pod | None:
        """Follow a pod to its end; None where it was removed.

        Raises:
            ClusterUnreachable: no answer for five minutes. The pod may run on.
            DriverPodNotStarted: its container could not be started for five minutes. The pod was removed.
        """
        shown, stuck_for = "", 0.0
        while (pod := self._look(name)) is not None and not pod.ended:
            state = f"{pod.phase} {pod.waiting}".strip()
            if state != shown:
                log.info("Driver pod %s: %s", name, state)
                shown = state
            stuck_for = stuck_for + LOOK_SECONDS if pod.stuck else 0.0
            if stuck_for > PATIENCE_SECONDS:
                self.remove(name)
                raise DriverPodNotStarted(
                    f"The driver's pod does not start: {pod.waiting}.",
                    where=f"pod {self._namespace}/{name}, which was removed",
                    remedy="Check `cluster` in pipeline.yml: the image, and the Kubernetes secrets that it names.",
                )
            self._sleep(LOOK_SECONDS)
        log.info("Driver pod %s: %s", name, pod.ending or pod.phase if pod is not None else "removed")
        return pod

    def remove(self, name: str) -> None:
        """Remove a pod, if it is still there; Kubernetes removes with it what Spark made for it."""
        self._patiently(lambda: self._api.delete_namespaced_pod(name, self._namespace))

    def _look(self, name: str) -> Pod | None:
        pod = self._patiently(lambda: self._api.read_namespaced_pod(name, self._namespace))
        return None if pod is None else Pod.of(pod)

    def _patiently(self, look: Callable[[], _T]) -> _T | None:
        """What a look gives; None where there is no such thing."""
        waited = 0.0
        while True:
            try:
                return look()
            except Exception as error:  # the client's own, urllib3's, and those of whoever signs its requests
                status = getattr(error, "status", None)
                if status == 404:
                    return None
                if status in (401, 403) or waited >= PATIENCE_SECONDS:
                    raise ClusterUnreachable(
                        f"The API of Kubernetes does not say which drivers run: {_reason(error)}.",
                        where=f"namespace {self._namespace}",
                        remedy="The worker needs the rights of docs/clusters.md there, and a way to the API server. A driver that "
                        "runs is followed by the next attempt.",
                    ) from error
            waited += LOOK_SECONDS
            self._sleep(LOOK_SECONDS)


def _reason(error: Exception) -> str:
    """What the API server says in its answer, which the client buries in headers; else the error itself."""
    try:
        return redact_text(str(json.loads(getattr(error, "body", "") or "")["message"]))
    except (ValueError, TypeError, KeyError):
        return quoted(error)


def _created(pod: Any) -> Any:
    return pod.metadata.creation_timestamp


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of ``name-2``, ``name-3`` ... that no pod has: two who start a driver at once choose the same one."""
    others = set(taken)
    candidate, number = name, 1
    while candidate in others:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
