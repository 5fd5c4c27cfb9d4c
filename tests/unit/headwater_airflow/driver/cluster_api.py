"""The few calls of the client of Kubernetes that a task makes, over pods in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater_airflow.driver.pods import Pods


class Answer(Exception):
    """As the client raises them."""

    def __init__(self, status: int, body: str = "") -> None:
        super().__init__(f"({status})")
        self.status, self.body = status, body


def pod(name: str, phase: str = "Running", waiting: str = "", code: int | None = None, at: int = 0) -> Any:
    """A pod as the client gives it."""
    waits = SimpleNamespace(reason=waiting, message="because") if waiting else None
    over = None if code is None else SimpleNamespace(reason="Error" if code else "Completed", exit_code=code)
    state = SimpleNamespace(waiting=waits, terminated=over)
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name, creation_timestamp=at),
        status=SimpleNamespace(phase=phase, container_statuses=[SimpleNamespace(state=state)]),
    )


class Api:
    """Pods, each with the states that it goes through, one a look; an exception among them is raised."""

    def __init__(self, **pods: list[Any]) -> None:
        self.pods = pods
        self.selectors: list[str] = []
        self.removed: list[str] = []
        self.slept = 0.0

    def list_namespaced_pod(self, namespace: str, label_selector: str) -> Any:
        self.selectors.append(label_selector)
        return SimpleNamespace(items=[states[0] for states in self.pods.values()])

    def read_namespaced_pod(self, name: str, namespace: str) -> Any:
        states = self.pods.get(name)
        if states is None:
            raise Answer(404)
        state = states.pop(0) if len(states) > 1 else states[0]
        if isinstance(state, Exception):
            raise state
        return state

    def delete_namespaced_pod(self, name: str, namespace: str) -> None:
        self.removed.append(name)
        if self.pods.pop(name, None) is None:
            raise Answer(404)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    @property
    def of_shop(self) -> Pods:
        """These, as a task sees them."""
        return Pods(self, "shop", self.sleep)
