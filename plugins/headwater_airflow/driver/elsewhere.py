"""A driver that a cluster starts on a machine of its own: what it has to be given, and how its end is known.

Decision 0187.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from headwater.contract.report import FlowReport
from headwater.event_log.details import UpdateState
from headwater.event_log.reader import flow_results
from headwater.graph.conditions import InvalidParameter
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import is_held
from headwater.runtime.conditions import UnsupportedDeployment
from headwater_airflow.driver.verdict import Failure, judge
from headwater_airflow.following.update_record import failed_flows, newest_update

FOLLOW_SECONDS = 10.0


@dataclass(frozen=True)
class Shipment:
    """What goes along with a driver.

    ``folder``: where it finds the pipeline; ``application``: the script, as spark-submit is given it; ``archives`` and ``files`` as
    spark-submit spells them.
    """

    conf: dict[str, str]
    folder: str
    application: str
    archives: str | None = None
    files: str | None = None


class Cluster(Protocol):
    """What a task needs of a place that starts drivers elsewhere."""

    def shipment(self, project: PipelineProject, conf: Mapping[str, str], application: str) -> Shipment:
        """The settings of a driver there, made of those of one beside the task."""

    def follow(self, project: PipelineProject, request: str, log: Any) -> bool:
        """Wait for the end of a driver of this request that runs, or is about to; whether there was one."""

    @property
    def exit_code(self) -> int | None:
        """What the driver that was followed ended with, where the cluster tells."""


def refuse_secrets(secrets: Mapping[str, str]) -> None:
    """Raise InvalidParameter where a driver elsewhere would need secrets of this worker: only a command line leads there."""
    if secrets:
        raise InvalidParameter(
            "Secret parameters from Airflow would stand on the command line of spark-submit for a driver on a cluster.",
            remedy="Set the variable where the driver runs (on Kubernetes under `secrets` of `cluster`), and refer to it: env:NAME.",
        )


def refuse_login(project: PipelineProject) -> None:
    """Raise UnsupportedDeployment where a driver elsewhere would need the login of a connection, for the same reason."""
    if project.login is not None:
        raise UnsupportedDeployment(
            "The keys of a store's connection would stand on the command line of spark-submit for a driver on a cluster.",
            where=project.spec_file,
            remedy="Give the machines of the cluster a role or variables of their own, and take `store_connection` and "
            "HEADWATER_STORE_CONNECTION away; or set deploy-mode to client in the connection's extra.",
        )


def wait_for_running(project: PipelineProject, request: str, log: Any) -> str | None:
    """Wait for the end of a driver of this request that an earlier attempt left running; gives its update, None where there was none.

    ``log``: is told once that somebody waits.
    """
    followed = None
    while (update := newest_update(project, request)) is not None and update.ended is None:
        if not is_held(project.state_folder):
            return None  # it died; the next update says so
        if followed is None:
            followed = update.update_id
            log.info("The driver of update %s still runs: it is followed.", followed)
        time.sleep(FOLLOW_SECONDS)
    return followed


def report_in_log(project: PipelineProject, request: str, before: str | None) -> dict[str, Any] | None:
    """The report of the newest update of a request, as the event log has it; None where none has ended.

    Args:
        project: the pipeline.
        request: the id under which the driver was started.
        before: the newest update of that request when it was started, which is none of this driver's.
    """
    update = newest_update(project, request)
    if update is None or update.update_id == before or update.ended is None:
        return None
    flows = flow_results(project.state_folder, update_id=update.update_id)
    return {
        "update_id": update.update_id,
        "state": str(update.state),
        "flows": [FlowReport.of(flow).as_dict() for flow in flows],
    }


def failure_in_log(
    project: PipelineProject, request: str, report: Mapping[str, Any] | None, code: int | None = None
) -> Failure | None:
    """What the event log says of a driver that has ended; None where its update was completed.

    ``report``: as ``report_in_log`` gives it. ``code``: what the driver ended with, where that is known.
    """
    if report is None:
        return judge(code, None, [])
    if report["state"] == UpdateState.COMPLETED:
        return None
    without_errors = {"state": report["state"], "flows": []}
    return judge(1, without_errors, failed_flows(project, newest_update(project, request)))
