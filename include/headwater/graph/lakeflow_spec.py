"""What the settings of a Lakeflow pipeline become here: keys of ``pipeline.yml``, each with a sentence, or a sentence alone.

Decision 0161.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from headwater.definitions.cron_text import from_quartz_text
from headwater.definitions.flow_settings import STREAM_INTERVAL, TRIGGER_INTERVAL, VIEW_INTERVAL
from headwater.definitions.lakeflow_settings import Cluster, LakeflowSettings
from headwater.definitions.names import is_folder_name

_MAIL = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
# When mail is sent: the occasions of the platform, and those of `airflow.notifiers`.
_OCCASIONS = {
    "on-update-success": "success",
    "on-update-failure": "failure",
    "on-update-fatal-failure": "failure",
    "on-flow-failure": "failure",
}
_AS_THEY_ARE = (
    "name",
    "id",
    "catalog",
    "database",
    "target",
    "parameters",
    "lint",
    "brokers",
    "maintenance",
    "lease",
    "object_store",
    "cluster",
    "metastore",
    "readers",
)
_IDLE = {
    "edition": "every feature is there",
    "channel": "the version that runs is the one that is installed",
    "photon": "it is an engine of the platform; Spark's own runs here",
    "serverless": "Spark runs where the Spark connection of Airflow leads",
    "event_log": "the event log lies in the pipeline's storage; `event_log: {retention_days: ...}` says how long it stays",
    "run_as": "the pipeline runs as the user of the worker",
    "restart_window": "an update that ends is begun again by Airflow's schedule",
    "budget_policy_id": "there is no billing",
    "usage_policy_id": "there is no billing",
    "deployment": "there is no deployment to record",
    "allow_duplicate_names": "an id belongs to one folder, and names may repeat",
    "expected_last_modified": "the file itself is the newest version",
    "dry_run": "`headwater validate` is what it asks for",
    "permissions": "access is Airflow's matter",
    "lifecycle": "there is no deployment to guard",
    "pipeline_type": "there is one type of pipeline",
    "data_sampling": "every row is processed",
    "rewind_generation_interval": "no points to rewind to are made; Delta keeps earlier versions of tables, and `headwater checkpoints "
    "snapshot` a flow's position",
    "serverless_compute_id": "Spark runs where the Spark connection of Airflow leads",
}
# Libraries that are no sources.
_PACKAGES = {
    "whl": "install it into the Python environment of the workers",
    "jar": "name it under `spark`, as spark.jars",
    "maven": "name it under `spark`, as spark.jars.packages",
}
_IDLE_OF_CLUSTERS = {
    "node_type_id": "machines are chosen where Spark runs",
    "driver_node_type_id": "machines are chosen where Spark runs",
    "instance_pool_id": "machines are chosen where Spark runs",
    "driver_instance_pool_id": "machines are chosen where Spark runs",
    "policy_id": "there are no policies of clusters",
    "apply_policy_default_values": "there are no policies of clusters",
    "custom_tags": "there are no machines to mark; `airflow: {tags: [...]}` marks DAGs",
    "init_scripts": "prepare the machines, or the image, where Spark runs",
    "cluster_log_conf": "the driver's log is that of Airflow's task",
    "aws_attributes": "machines are chosen where Spark runs",
    "azure_attributes": "machines are chosen where Spark runs",
    "gcp_attributes": "machines are chosen where Spark runs",
    "ssh_public_keys": "machines are chosen where Spark runs",
    "enable_local_disk_encryption": "machines are chosen where Spark runs",
}


@dataclass(frozen=True)
class SettingNote:
    """What became of a setting. ``becomes``: the key of ``pipeline.yml``, None where it has no effect here."""

    setting: str
    sentence: str
    becomes: str | None = None

    def __str__(self) -> str:
        what = f"is `{self.becomes}` here" if self.becomes else "has no effect here"
        return f"`{self.setting}` {what}: {self.sentence}."


@dataclass
class Translation:
    """A spec as ``pipeline.yml`` would have it, and what became of the settings that it was made of."""

    data: dict[str, Any] = field(default_factory=dict)
    notes: list[SettingNote] = field(default_factory=list)

    def idle(self, setting: str, why: str) -> None:
        """Note a setting without effect."""
        self.notes.append(SettingNote(setting, why))

    def mapped(self, setting: str, key: str, how: str) -> None:
        """Note what a setting has become."""
        self.notes.append(SettingNote(setting, how, key))


def translated(settings: LakeflowSettings, resource: str | None = None) -> Translation:
    """The settings as a spec; ``resource``: the pipeline's key in its bundle. Raises ValueError where two say different things."""
    made = Translation()
    given = settings.model_fields_set
    for key in _AS_THEY_ARE:
        if key in given:
            made.data[key] = getattr(settings, key)
    if "schema_name" in given:
        made.data["schema"] = settings.schema_name
    if settings.event_log is not None and "retention_days" in settings.event_log:
        made.data["event_log"] = settings.event_log
    for step in _STEPS:
        step(settings, made)
    _id(settings, resource, made)
    for key, why in _IDLE.items():
        if key in given and key not in made.data:
            made.idle(key, why)
    return made


def _id(settings: LakeflowSettings, resource: str | None, made: Translation) -> None:
    if settings.id is not None or is_folder_name(settings.name):
        return
    source = "key in the bundle" if resource else "name"
    chosen = re.sub(r"[^A-Za-z0-9_-]+", "_", resource or str(settings.name or "")).strip("_-")[:128]
    if chosen:
        made.data["id"] = chosen
        made.mapped(
            "name",
            "id",
            f"the id is made from the {source}, since the name has other characters than an id may have",
        )


def _storage(settings: LakeflowSettings, made: Translation) -> None:
    place = settings.storage
    if place is None:
        return
    if re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:", place):
        made.idle(
            "storage", "it is an address of the platform; give a folder with --storage or HEADWATER_STORAGE"
        )
        return
    made.data["storage"] = place
    made.mapped("storage", "storage", "checkpoints and the event log lie there; tables lie in the warehouse")


def _libraries(settings: LakeflowSettings, made: Translation) -> None:
    root = (settings.root_path or "").rstrip("/")
    if settings.root_path is not None:
        made.idle("root_path", "paths count from the folder of this file; those below it are read so")
    sources = []
    for number, entry in enumerate(settings.libraries or ()):
        package = next((kind for kind in _PACKAGES if set(entry) == {kind}), None)
        if package is None:
            sources.append(_relative(entry, root))
        else:
            what = entry[package].get("coordinates") if isinstance(entry[package], dict) else entry[package]
            made.idle(f"libraries.{number}.{package}", f"{_PACKAGES[package]} ({what})")
    if sources:
        made.data["libraries"] = sources


def _relative(entry: dict[str, Any], root: str) -> dict[str, Any]:
    """A library with its path from the pipeline's folder, where it lies below ``root``."""
    changed = dict(entry)
    for kind, key in (("glob", "include"), ("file", "path"), ("notebook", "path")):
        inner = entry.get(kind)
        path = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and isinstance(path, str):
            cut = path.removeprefix(f"{root}/") if root else path
            changed[kind] = {**inner, key: cut.removeprefix("./")}
    return changed


def _configuration(settings: LakeflowSettings, made: Translation) -> None:
    if settings.configuration:
        made.data["configuration"] = dict(settings.configuration)


def _continuous(settings: LakeflowSettings, made: Translation) -> None:
    if "trigger" in settings.model_fields_set:
        kinds = settings.trigger if isinstance(settings.trigger, dict) else {}
        if "cron" not in kinds and "manual" not in kinds:
            made.data["trigger"] = settings.trigger  # that of pipeline.yml
            if settings.continuous:
                raise ValueError(
                    "`continuous` and `trigger` both say when the pipeline runs; take one of them out"
                )
            return
        _cron(settings, kinds.get("cron"), made)
    if settings.continuous:
        usual = f"{STREAM_INTERVAL.seconds} seconds, views every {VIEW_INTERVAL.seconds // 60} minute"
        interval = settings.configuration.get(TRIGGER_INTERVAL, usual)
        made.data["trigger"] = "continuous"
        made.mapped(
            "continuous",
            "trigger",
            f"streams are looked at every {interval}, until the update is stopped",
        )
    elif "continuous" in settings.model_fields_set:
        made.mapped(
            "continuous", "trigger", "an update processes what is there and ends, as `available_now` says"
        )


def _cron(settings: LakeflowSettings, cron: Any, made: Translation) -> None:
    """The times of a pipeline that the platform itself begins."""
    said = cron if isinstance(cron, dict) else {}
    schedule = from_quartz_text(str(said.get("quartz_cron_schedule")), str(said.get("timezone_id", "UTC")))
    if schedule is None or "schedule" in settings.airflow or settings.continuous:
        made.idle(
            "trigger", "write the schedule as `airflow: {schedule: ...}`: a cron text in UTC, without seconds"
        )
        return
    made.data["airflow"] = {"schedule": schedule}
    made.mapped("trigger", "airflow", f"`schedule: {schedule!r}`")


def _airflow(settings: LakeflowSettings, made: Translation) -> None:
    airflow = {**made.data.get("airflow", {}), **settings.airflow}
    if settings.development and "retries" not in airflow:
        airflow["retries"] = 0
        made.mapped("development", "airflow", "`retries: 0`: an update that fails is not tried again")
    elif settings.development is not None:
        made.idle("development", "retries are those under `airflow`, and Spark ends with the update")
    if settings.tags:
        _add(airflow, "tags", [f"{name}:{text}" if text else name for name, text in settings.tags.items()])
        made.mapped("tags", "airflow", "`tags`: they mark the DAGs")
    notifiers = list(_notifiers(settings, made))
    if notifiers:
        _add(airflow, "notifiers", notifiers)
    if airflow:
        made.data["airflow"] = airflow


def _add(airflow: dict[str, Any], key: str, more: list[Any]) -> None:
    """Put more into a list of the section; what is no list stays, and is refused where the spec is checked."""
    there = airflow.get(key, [])
    if isinstance(there, list):
        airflow[key] = [*there, *more]


def _notifiers(settings: LakeflowSettings, made: Translation) -> Iterator[dict[str, Any]]:
    for number, notification in enumerate(settings.notifications):
        where = f"notifications.{number}"
        unknown = next((alert for alert in notification.alerts if alert not in _OCCASIONS), None)
        if unknown is not None:
            raise ValueError(f"`{where}.alerts` has {unknown!r}; there are {', '.join(_OCCASIONS)}")
        whom = list(notification.email_recipients)
        when = list(dict.fromkeys(_OCCASIONS[alert] for alert in notification.alerts))
        if not whom or not when:
            made.idle(where, "it names nobody, or no occasion")
            continue
        yield {
            "notifier": _MAIL,
            "when": when,
            "arguments": {"to": whom, "subject": "{{ alert.title }}", "html_content": "{{ alert.text }}"},
        }
        made.mapped(
            where, "airflow",
            f"`notifiers`: mail to {', '.join(whom)} at the {' and '.join(when)} of a run, through Airflow's connection `smtp_default`; a flow "
            "that fails, and a failure that is final, are failures of the run",
        )  # fmt: skip


def _spark(settings: LakeflowSettings, made: Translation) -> None:
    spark: dict[str, str] = {}
    for number, cluster in enumerate(settings.clusters):
        where = f"clusters.{number}"
        if cluster.label == "maintenance":
            made.idle(where, "maintenance needs no cluster of its own")
            continue
        for key, text in _cluster_settings(cluster, where, made):
            if spark.setdefault(key, text) != text:
                raise ValueError(
                    f"two entries of `clusters` say different things about {key}; one application runs the update"
                )
    spark |= settings.spark
    if spark:
        made.data["spark"] = spark


def _cluster_settings(cluster: Cluster, where: str, made: Translation) -> Iterator[tuple[str, str]]:
    if cluster.autoscale is not None:
        scale = cluster.autoscale
        yield "spark.dynamicAllocation.enabled", "true"
        yield "spark.dynamicAllocation.shuffleTracking.enabled", "true"
        yield "spark.dynamicAllocation.minExecutors", str(scale.min_workers)
        yield "spark.dynamicAllocation.maxExecutors", str(scale.max_workers)
        made.mapped(
            f"{where}.autoscale", "spark",
            f"{scale.min_workers} to {scale.max_workers} executors by Spark's dynamic allocation; a local master has none",
        )  # fmt: skip
        if scale.mode is not None:
            made.idle(f"{where}.autoscale.mode", "Spark's dynamic allocation has one mode")
    if cluster.num_workers is not None:
        yield "spark.executor.instances", str(cluster.num_workers)
        made.mapped(
            f"{where}.num_workers", "spark", f"{cluster.num_workers} executors; a local master has none"
        )
    if cluster.spark_conf:
        yield from cluster.spark_conf.items()
        made.mapped(f"{where}.spark_conf", "spark", "settings of the Spark session")
    if cluster.spark_env_vars:
        names = ", ".join(cluster.spark_env_vars)
        made.idle(f"{where}.spark_env_vars", f"set the variables ({names}) where Spark runs")
    for key, why in _IDLE_OF_CLUSTERS.items():
        if getattr(cluster, key) is not None:
            made.idle(f"{where}.{key}", why)


def _environment(settings: LakeflowSettings, made: Translation) -> None:
    if settings.environment is not None:
        packages = settings.environment.get("dependencies") or ()
        listed = ", ".join(map(str, packages)) if isinstance(packages, list) else str(packages)
        made.idle(
            "environment",
            f"install what it names ({listed or 'nothing'}) into the Python environment of the workers",
        )


_STEPS: tuple[Callable[[LakeflowSettings, Translation], None], ...] = (
    _storage, _libraries, _configuration, _continuous, _airflow, _spark, _environment,
)  # fmt: skip
