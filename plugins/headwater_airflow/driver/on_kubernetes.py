"""A driver in a pod of Kubernetes: code, pipeline and jars are in its image; it is known by the labels of its pod.

Decision 0205.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from headwater.definitions.cluster_spec import ClusterSpec
from headwater.definitions.trigger import Continuous
from headwater.event_log.redaction import quoted
from headwater.graph.pipeline_project import PipelineProject
from headwater.runtime.cache import cache_root
from headwater.runtime.conditions import UnsupportedDeployment
from headwater.runtime.masters import DRIVER_PYTHON, PYTHON
from headwater.runtime.own_classes import PACKAGED, own_jar
from headwater.runtime.submit import LOG_SETTINGS
from headwater.storage.place import is_url
from headwater_airflow.driver.elsewhere import Shipment, wait_for_running
from headwater_airflow.driver.pods import Pod, Pods, free_name

PROVIDER = "airflow.providers.cncf.kubernetes"
DRIVER_POD = "spark.kubernetes.driver.pod.name"
NAMESPACE = "spark.kubernetes.namespace"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_ROLES = ("driver", "executor")
_PIPELINE_LABEL, _REQUEST_LABEL = "headwater-pipeline", "headwater-request"
# Where a checkout has the module of the log's settings.
_GROUND = "include/headwater/runtime"
# What every pod that mounts it sees alike. Whether the folder of a node is the same on all nodes, whoever names it knows.
_SHARED_VOLUMES = ("persistentVolumeClaim", "nfs", "hostPath")


class Kubernetes:
    """One namespace of a cluster, for one request.

    Args:
        request: the id under which a driver is started.
        namespace: of its pods.
        pods: how the API is asked about them.

    """

    def __init__(self, request: str, namespace: str, pods: Pods) -> None:
        self.exit_code: int | None = None
        self.driver_pod = ""
        self._request = request
        self._namespace = namespace
        self._pods = pods

    def shipment(self, project: PipelineProject, conf: Mapping[str, str], application: str) -> Shipment:
        """As ``shipment`` makes it, under a name that no pod of this request has."""
        refuse(project, conf)  # before anybody is asked
        labels = driver_labels(project, self._request)
        taken = [pod.name for pod in self._pods.labelled(_selector(labels))]
        self.driver_pod = free_name(f"headwater-{labels[_REQUEST_LABEL]}", taken)
        return shipment(project, conf, application, labels, self.driver_pod, self._namespace)

    def follow(self, project: PipelineProject, request: str, log: Any) -> bool:
        """Wait for each driver's pod of this request that has not ended, also where nothing of it is in the event log yet."""
        labels = driver_labels(project, request)
        followed = False
        for pod in self._pods.labelled(_selector(labels)):
            ended: Pod | None = pod
            if not pod.ended:
                followed = True
                log.info("A driver of this run is in pod %s/%s: it is followed.", self._namespace, pod.name)
                ended = self._pods.wait_for_end(pod.name, log)
            if followed or pod.name == self.driver_pod:
                self.exit_code = None if ended is None else ended.exit_code
            if ended is not None and ended.phase == "Succeeded":
                self._pods.remove(ended.name)  # one that failed keeps its log
        return wait_for_running(project, request, log) is not None or followed


def kubernetes(project: PipelineProject, request: str, connection: Any) -> Kubernetes:
    """The namespace that a connection names, as the provider finds it.

    Raises:
        UnsupportedDeployment: the provider is not installed, or finds no way to the API server.
    """
    namespace = (
        project.spec.spark.get(NAMESPACE) or (connection.extra_dejson or {}).get("namespace") or "default"
    )
    return Kubernetes(request, str(namespace), Pods(_api(), str(namespace)))


def refuse_without_provider(where: object) -> None:
    """Raise UnsupportedDeployment where Airflow's provider for Kubernetes is missing: the one for Spark fails without a word then."""
    if find_spec("airflow.providers.cncf") is None or find_spec(PROVIDER) is None:
        raise UnsupportedDeployment(
            "Airflow's provider for Kubernetes is not installed here, and that for Spark needs it for k8s://.",
            where=where,
            remedy="Install apache-airflow-providers-cncf-kubernetes on the workers.",
        )


def driver_labels(project: PipelineProject, request: str) -> dict[str, str]:
    """The labels of a driver's pod. Names may be of any characters, and equal in two deployments: labels are made of hashes."""
    pipeline = f"{project.storage}\0{project.pipeline_id}"
    return {_PIPELINE_LABEL: _hash(pipeline), _REQUEST_LABEL: _hash(f"{pipeline}\0{request}")}


def pod_settings(project: PipelineProject) -> dict[str, str]:
    """What pods of either kind need, for a driver in one or beside the task.

    Raises:
        UnsupportedDeployment: no image is named, or a setting would be lost.
    """
    cluster, where = project.spec.cluster, project.spec_file
    if cluster.image is None:
        raise UnsupportedDeployment(
            "No image is named for the pods of Spark.",
            where=where,
            remedy="Set `cluster: {image: NAME}` to an image with Headwater (docs/clusters.md).",
        )
    settings = {"spark.kubernetes.container.image": cluster.image}
    for role in _ROLES:
        for variable, reference in cluster.secrets.items():
            settings[f"spark.kubernetes.{role}.secretKeyRef.{variable}"] = reference
    return settings


def shipment(
    project: PipelineProject,
    conf: Mapping[str, str],
    application: str,
    labels: Mapping[str, str],
    pod: str,
    namespace: str,
) -> Shipment:
    """The settings of a driver in a pod, where every path is one of its image.

    Args:
        project: as it lies beside the task.
        conf: the settings of a driver beside the task.
        application: the script on this machine.
        labels: of the driver's pod.
        pod: its name.
        namespace: of all pods.

    Raises:
        UnsupportedDeployment: no image is named, or a jar lies on this machine only.
    """
    cluster = project.spec.cluster
    ground = f"{cluster.code}/{_GROUND}"
    there = {**conf, **pod_settings(project)}
    there |= {f"spark.kubernetes.driver.label.{name}": value for name, value in labels.items()}
    there |= {
        NAMESPACE: namespace,
        # Else Spark hands the variable of the submitting process on to the pod, with the path of this machine's Python.
        DRIVER_PYTHON: conf[PYTHON],
        DRIVER_POD: pod,
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.kubernetes.executor.podNamePrefix": pod,
        "spark.kubernetes.driverEnv.PYTHONPATH": f"{cluster.code}/include:{cluster.code}/jobs",
        "spark.kubernetes.driverEnv.HEADWATER_CACHE": cluster.cache,
        _JAVA_OPTIONS: conf.get(_JAVA_OPTIONS, "").replace(
            LOG_SETTINGS.as_uri(), f"file:{ground}/{LOG_SETTINGS.name}"
        ),
    }
    if "spark.jars" in conf:
        there["spark.jars"] = ",".join(_jar(jar, cluster) for jar in conf["spark.jars"].split(","))
    folder = f"{cluster.pipeline_root}/{project.folder.name}"
    return Shipment(there, folder, f"local://{cluster.code}/jobs/{Path(application).name}")


def refuse(project: PipelineProject, conf: Mapping[str, str]) -> None:
    """Raise UnsupportedDeployment where a driver in a pod can't work as things are.

    ``conf``: the settings of a driver beside the task.
    """
    where = project.spec_file
    pod_settings(project)
    if isinstance(project.spec.trigger, Continuous):
        raise UnsupportedDeployment(
            "A continuous update in a pod of its own was not tried: nothing would end it where it hangs.",
            where=where,
            remedy="Set deploy-mode to client in the connection's extra: the driver then runs beside the task.",
        )
    lost = [name for name in project.spec.spark if name.startswith("spark.kubernetes.") and name not in conf]
    if lost:
        raise UnsupportedDeployment(
            f"{', '.join(sorted(lost))}: a setting with such a name is never put on a command line, so no pod would have it.",
            where=where,
            remedy="Name Kubernetes secrets under `secrets` of `cluster` (docs/clusters.md#a-driver-in-a-pod-of-kubernetes).",
        )
    mounts = list(_shared_mounts(conf))
    for what, place in (("storage", project.storage), ("warehouse", project.warehouse)):
        if not is_url(str(place)) and not any(
            PurePosixPath(str(place)).is_relative_to(mount) for mount in mounts
        ):
            raise UnsupportedDeployment(
                f"The {what} is a folder that pods do not see: no volume is mounted there.",
                where=place,
                remedy="Use s3://, or mount what all machines share at this path for both kinds of pods: "
                "spark.kubernetes.driver.volumes.persistentVolumeClaim.NAME.mount.path and the same of the executor, under `spark`.",
            )


def _shared_mounts(conf: Mapping[str, str]) -> Iterator[PurePosixPath]:
    """The paths at which the driver's pod and the executors' have the same volume, and may write."""
    prefix, end = "spark.kubernetes.driver.volumes.", ".mount.path"
    for name, path in conf.items():
        volume = name.removeprefix(prefix).removesuffix(end)
        if not (name.startswith(prefix) and name.endswith(end)) or not path.startswith("/"):
            continue
        kind = volume.partition(".")[0]
        alike = conf.get(f"spark.kubernetes.executor.volumes.{volume}{end}") == path
        closed = [
            conf.get(f"spark.kubernetes.{role}.volumes.{volume}.mount.readOnly") == "true" for role in _ROLES
        ]
        if kind in _SHARED_VOLUMES and alike and not any(closed):
            yield PurePosixPath(path)


def _jar(jar: str, cluster: ClusterSpec) -> str:
    """A jar as the pods find it; one that is written as an address is left as it is."""
    if "://" in jar:
        return jar
    if jar in (str(own_jar()), str(PACKAGED)):
        return f"local://{cluster.code}/{_GROUND}/{PACKAGED.name}"
    if Path(jar).is_relative_to(cache_root()):
        return f"local://{cluster.cache}/{Path(jar).relative_to(cache_root())}"
    raise UnsupportedDeployment(
        f"The jar {jar} is a file of this machine.",
        where="spark.jars",
        remedy="Put it into the image, and name it as local:///path/in/the/image.jar.",
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _selector(labels: Mapping[str, str]) -> str:
    return f"{_REQUEST_LABEL}={labels[_REQUEST_LABEL]},spark-role=driver"


def _api() -> Any:
    from airflow.providers.cncf.kubernetes import kube_client

    try:
        return kube_client.get_kube_client()
    except Exception as error:  # of the client, of Airflow's settings, of a file
        raise UnsupportedDeployment(
            f"Airflow finds no way to the API of Kubernetes: {quoted(error)}",
            where="[kubernetes_executor] of Airflow's settings",
            remedy="In a pod nothing is needed. Elsewhere set AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER=False and "
            "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE, and KUBECONFIG to the same file for spark-submit.",
        ) from error
