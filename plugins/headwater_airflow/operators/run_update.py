"""The task that runs an update: ``spark-submit`` of ``jobs/run_update.py``, unless there is nothing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from headwater.definitions.parameter import FORM_FIELDS
from headwater.errors import HeadwaterError
from headwater.event_log.details import UpdateState
from headwater.event_log.flow_result import FlowResult
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import refuse_unknown
from headwater.leases.stop_request import request_stop, withdraw_stop
from headwater_airflow.driver import submission
from headwater_airflow.driver.elsewhere import (
    Cluster,
    failure_in_log,
    refuse_login,
    refuse_secrets,
    report_in_log,
)
from headwater_airflow.driver.no_news import report_without_news
from headwater_airflow.driver.on_kubernetes import (
    Kubernetes,
    kubernetes,
    pod_settings,
    refuse_without_provider,
)
from headwater_airflow.driver.on_yarn import Yarn
from headwater_airflow.driver.process import Driver, end_with_supervisor
from headwater_airflow.driver.secret_parameters import DriverParameters, driver_parameters
from headwater_airflow.driver.target import CLIENT, Target, target_of
from headwater_airflow.driver.verdict import Failure, judge
from headwater_airflow.following.dataset_progress import results_before_newest
from headwater_airflow.following.request import request_id
from headwater_airflow.following.update_record import failed_flows, newest_update, record_silent_end
from headwater_airflow.following.update_watch import request_results
from headwater_airflow.forms.parameter_form import read_parameters, refuse_unknown_conf
from headwater_airflow.forms.selection import Selection, read_selection
from headwater_airflow.openlineage import task_lineage
from headwater_airflow.operators.announcement import announce_tables
from headwater_airflow.operators.unfollowed import announce_unfollowed, is_followed_by_none
from headwater_airflow.roots import home_folder, pipeline_project


class RunUpdateOperator(SparkSubmitOperator):  # type: ignore[misc]
    """Runs one update of a pipeline, or of some of its tables, and returns its report.

    Every attempt of a run has the same request id: a retry refreshes what is not done yet. Airflow retries only what
    a retry can help; a broken definition or a violated expectation fails at once. When no source has moved and nothing is
    selected, no JVM is started.

    Args:
        pipeline: the name of the pipeline's folder.
        tables: run these only; left out where the form asks for others.
        announces: the tables whose assets are the task's outlets, in their order, where no other tasks follow the update;
            those given as ``tables`` if not given.
        spark_submit: the program to submit with; that of the worker's Python environment if not given.

    """

    template_fields: Sequence[str] = ()
    ui_color: ClassVar[str] = "#fbe3d0"
    runs_updates: ClassVar[bool] = True
    _deploy_mode: str | None

    def __init__(
        self,
        *,
        pipeline: str,
        tables: Sequence[str] = (),
        announces: Sequence[str] = (),
        spark_submit: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=f"headwater-{pipeline}", durable=False, **kwargs)
        self.pipeline = pipeline
        self.tables = list(tables)
        self.announces = list(announces or tables)
        self.spark_submit = spark_submit
        self._driver: Driver | None = None
        self._variables: Mapping[str, str] = {}
        self._cluster: Cluster | None = None
        self._elsewhere: tuple[PipelineProject, str] | None = None
        self._killed = False

    def execute(self, context: Any) -> dict[str, Any]:
        """Run the update; the report says what each flow did."""
        instance = context["ti"]
        request = request_id(instance.dag_id, instance.run_id, ",".join(self.tables))
        attempts = (instance.max_tries or 0) + 1
        begun = getattr(context.get("dag_run"), "start_date", None)
        unfollowed = is_followed_by_none(self, instance)
        try:
            parameters = self._parameters(context)
            project = pipeline_project(self.pipeline, parameters.environment, parameters=parameters.values)
            project.check_parameters()
            selection = self._selection(project, context["params"])
            report = report_without_news(project, read_selection(context["params"]), request, begun)
            if report is not None:
                self.log.info(
                    "No source of %s has moved: nothing to do, and no JVM was started.", project.pipeline_id
                )
                announce_unfollowed(self, context, project, request)
                if self.announces:
                    # An attempt before may have written, and was ended before Airflow had its event.
                    before = results_before_newest(project, request, begun)
                    self._announce(context, project, request, before)
                return {**report, "spec_hash": project.source_hash()}
            # Under `airflow tasks test` there was no try before, and this one is not counted.
            tries = max(instance.try_number, 1)
            first = self._first_attempt(project, request, tries)
            attempt = tries - first + 1
            self._prepare(
                project,
                selection,
                request,
                attempt,
                attempts - first + 1,
                begun,
                parameters.variables,
                announced_together=unfollowed or (bool(self.announces) and not self.tables),
            )
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        report = self._submit(context, project, request, last=instance.try_number >= attempts)
        announce_unfollowed(self, context, project, request)
        if self.announces:
            self._announce(context, project, request, request_results(project.state_folder, request))
        for flow in report["flows"]:
            self.log.info("%(flow)s: %(state)s, %(input_rows)s rows in, %(output_rows)s out", flow)
        return {**report, "spec_hash": project.source_hash()}

    def on_kill(self) -> None:
        """Stop after the batch in flight; what is not done then can be killed without harm to the tables."""
        self._killed = True
        if self._elsewhere is not None:
            project, request = self._elsewhere
            request_stop(project.state_folder, request)
            if self._driver is not None:
                self._driver.stop()
        elif self._driver is not None:
            self._driver.stop()
            super().on_kill()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """What the update's tables are made of, for Airflow's OpenLineage provider."""
        request = request_id(task_instance.dag_id, task_instance.run_id, ",".join(self.tables))
        return task_lineage(self.pipeline, self.tables or None, request)

    def _first_attempt(self, project: PipelineProject, request: str, attempt: int) -> int:
        """Return which attempt of the task counts as the first: after a success, somebody cleared it to run again."""
        update = newest_update(project, request) if attempt > 1 else None
        return attempt if update is not None and update.state == UpdateState.COMPLETED else 1

    def _selection(self, project: PipelineProject, params: Mapping[str, Any]) -> Selection:
        selection, whole = read_selection(params, self.tables), read_selection(params)
        if self.tables and (manifest := read_manifest(project.folder / FILE_NAME)) is not None:
            # The driver of another table would never hear of a misspelled one.
            for name in (*whole.tables, *whole.full_refresh):
                refuse_unknown(name, [entry.name for entry in manifest.outputs], "dataset")
        if self.tables and whole.tables and not set(whole.tables) & set(self.tables):
            raise AirflowSkipException("Not among the tables that this run was asked for.")
        return selection

    def _parameters(self, context: Any) -> DriverParameters:
        """The values in the run's form, or in the conf of whoever triggered it, checked once more."""
        declared = pipeline_project(self.pipeline).spec.parameters
        refuse_unknown_conf(self, context, {*FORM_FIELDS, *declared})
        return driver_parameters(declared, read_parameters(context["params"], declared))

    def _announce(
        self, context: Any, project: PipelineProject, request: str, results: Sequence[FlowResult]
    ) -> None:
        tables = zip(self.announces, self.outlets, strict=False)
        announce_tables(self, context, project, request, tables, results)

    def _prepare(
        self,
        project: PipelineProject,
        selection: Selection,
        request: str,
        attempt: int,
        attempts: int,
        begun: datetime | None,
        secrets: Mapping[str, str],
        *,
        announced_together: bool,
    ) -> None:
        target = self._target()
        self.application = submission.application()
        self.application_args = [
            *submission.driver_arguments(
                project,
                request,
                attempt,
                attempts,
                begun,
                announced_together=announced_together,
            ),
            *selection.arguments(),
        ]
        if target.in_cluster:
            refuse_secrets(secrets)
            refuse_login(project)
            at = BaseHook.get_connection(self._conn_id)
            self._cluster = kubernetes(project, request, at) if target.kubernetes else Yarn()
        self._configure(project, target, secrets)

    def _configure(
        self, project: PipelineProject, target: Target, secrets: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.conf = submission.driver_conf(project, target)
        # The driver's own process has them all. What the hook is given, it writes on the command line for YARN and Kubernetes.
        self._variables = submission.driver_environment(project, target, secrets)
        self.env_vars = {} if target.managed else self._variables
        self._spark_binary = self.spark_submit or submission.spark_submit()
        # The process that submits is released once there is a pod: that is followed by its labels.
        self._track_driver_via_k8s_api = target.in_cluster and target.kubernetes
        if self._cluster is not None:
            there = self._cluster.shipment(project, self.conf, self.application)
            self.conf, self.application = there.conf, there.application
            self._archives, self.files = there.archives, there.files
            self.application_args = [there.folder, *self.application_args[1:]]
        elif target.kubernetes:
            self.conf |= pod_settings(project)

    def _target(self) -> Target:
        """The connection's target; the provider would quietly take YARN for a connection that does not exist.

        Raises:
            UnsupportedDeployment: no driver can run there.
        """
        try:
            connection = BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException as error:
            variable = f"AIRFLOW_CONN_{self._conn_id.upper()}"
            raise AirflowFailException(
                f"There is no connection {self._conn_id!r}. Make one of type spark, for instance "
                f"""{variable}='{{"conn_type": "spark", "host": "local[*]"}}'."""
            ) from error
        target = target_of(connection, self._deploy_mode)
        target.refuse_unsupported(f"connection {self._conn_id}")
        if target.kubernetes:
            refuse_without_provider(f"connection {self._conn_id}")
        if target.in_cluster and not self.runs_updates:
            # What the event log does not tell of, its driver's report does: that one runs beside the task.
            self._deploy_mode = CLIENT
            return replace(target, deploy_mode=CLIENT)
        return target

    def _submit(self, context: Any, project: PipelineProject, request: str, *, last: bool) -> dict[str, Any]:
        self._hook = self._get_hook()
        self._driver = driver = Driver(self._hook, home_folder(), self._variables)
        if self._killed:
            driver.stop()
        if self._cluster is not None:
            try:
                return self._submit_elsewhere(context, project, request, driver, self._cluster, last=last)
            except HeadwaterError as error:
                raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        end_with_supervisor()
        try:
            super().execute(context)
        except AirflowException as error:
            driver.wait_for_last_words()
            self._raise_failure(self._failure(project, request, driver), project, request, last, error)
        finally:
            # The task ended by an error of its own (a timeout): a driver left alone would hold the pipeline.
            driver.stop()
        if driver.exit_code is None:
            raise AirflowException("The task was stopped before its driver was started.")
        return self._report(driver, project, request, last=last)

    def _report(
        self, driver: Driver, project: PipelineProject, request: str, *, last: bool
    ) -> dict[str, Any]:
        """What a driver that ended well has reported; where its line was broken by another, what the event log says."""
        report = driver.report.content
        if report is None and self.runs_updates:
            report = report_in_log(project, request, None)
            report = report if report and report["state"] == UpdateState.COMPLETED else None
        if report is None:
            failure = judge(driver.exit_code, None, [])
            self._raise_failure(failure, project, request, last, AirflowException(failure.message))
        return report

    def _submit_elsewhere(
        self,
        context: Any,
        project: PipelineProject,
        request: str,
        driver: Driver,
        cluster: Cluster,
        *,
        last: bool,
    ) -> dict[str, Any]:
        """Have a cluster run the driver, and learn how it ended from the event log. A driver of this request that still runs is followed."""
        self._elsewhere = (project, request)
        cause: Exception | None = None
        before = None
        if not cluster.follow(project, request, self.log):
            withdraw_stop(project.state_folder, request)
            before = getattr(newest_update(project, request), "update_id", None)
            if isinstance(cluster, Kubernetes):
                self._hook._kubernetes_driver_pod = cluster.driver_pod  # noqa: SLF001 - the provider's own look-out knows other names
            try:
                super().execute(context)
            except AirflowException as error:
                cause = error
            finally:
                driver.stop()
            if not self._killed:
                # spark-submit may lose sight of a driver that runs on.
                cluster.follow(project, request, self.log)
        if self._killed:
            raise AirflowException(
                "The task was stopped; its driver ends after the batch in flight."
            ) from cause
        report = report_in_log(project, request, before)
        failure = failure_in_log(project, request, report, cluster.exit_code)
        if failure is not None:
            self._raise_failure(failure, project, request, last, cause or AirflowException(failure.message))
        assert report is not None, "no failure means that the update is in the log"
        return report

    def poll_until_complete(self, external_id: Any, context: Any) -> None:
        """Nothing: whoever has submitted a driver elsewhere follows it, as whoever finds one that runs."""

    def _failure(self, project: PipelineProject, request: str, driver: Driver) -> Failure:
        flows = failed_flows(project, newest_update(project, request))
        return judge(driver.exit_code, driver.report.content, flows)

    def _raise_failure(
        self, failure: Failure, project: PipelineProject, request: str, last: bool, cause: Exception
    ) -> NoReturn:
        if failure.silent and self.runs_updates:
            update = newest_update(project, request)
            record_silent_end(
                project, request, update, failure.message, will_retry=failure.transient and not last
            )
        if failure.transient:
            raise AirflowException(failure.message) from cause
        raise AirflowFailException(failure.message) from cause
