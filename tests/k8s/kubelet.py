"""What runs the pods of a namespace: scheduler, node, registry of images and name service in one, with processes for containers.

Each container is a process in a mount namespace of its own (which needs root). It sees the image's folders and the pod's volumes at their
paths, and not the checkout; its environment is that of the image and of the pod alone.
"""

from __future__ import annotations

import base64
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.k8s.api_server import ApiServer

# Folders that a container has for itself: mount points are made in them.
_OWN = ("/opt", "/run")
NODE = "node"


@dataclass(frozen=True)
class Image:
    """An image. ``folders``: what it has where; ``hidden``: what of this machine it does not have."""

    folders: Mapping[str, Path]
    entry_point: Sequence[str]
    environment: Mapping[str, str]
    hidden: Sequence[Path] = ()


@dataclass
class Running:
    """A pod that was started, and its container's process."""

    name: str
    address: str
    process: subprocess.Popen[bytes]
    reported: bool = False


class Missing(Exception):
    """A container can't be started yet; the reason is a word of Kubernetes."""


@dataclass
class Kubelet:
    """Runs the pods of one namespace until it is stopped. ``folder``: for their files and logs."""

    server: ApiServer
    namespace: str
    images: Mapping[str, Image]
    folder: Path
    running: dict[str, Running] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _addresses: int = 1
    _names: dict[str, str] = field(default_factory=dict)
    _services: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from kubernetes import client

        self.api = client.CoreV1Api(self.server.client())
        self._hosts = self.folder / "hosts"
        self.folder.mkdir(parents=True)
        self._hosts.write_text("127.0.0.1 localhost\n")

    def look(self) -> None:
        """Look for pods until it is stopped."""
        from kubernetes.client.exceptions import ApiException

        while not self._over.wait(0.2):
            try:
                self._look_once()
            except ApiException as error:
                if error.status not in (404, 409):  # somebody else was quicker
                    raise

    def stop(self) -> None:
        """End all that runs."""
        self._over.set()
        for each in self.running.values():
            _kill(each.process, signal.SIGKILL)

    def kill(self, name: str) -> None:
        """End a pod's container at once, as a machine that runs out of memory does."""
        _kill(self.running[name].process, signal.SIGKILL)

    def _look_once(self) -> None:
        pods = {pod.metadata.name: pod for pod in self.api.list_namespaced_pod(self.namespace).items}
        self._write_hosts(pods)
        for name in self.running.keys() - pods.keys():
            _kill(self.running.pop(name).process, signal.SIGKILL)
        for name, pod in pods.items():
            run = self.running.get(name)
            if pod.metadata.deletion_timestamp is not None:
                if run is not None:
                    _kill(run.process, signal.SIGKILL)
                self.api.delete_namespaced_pod(name, self.namespace, grace_period_seconds=0)
            elif run is None and pod.status.phase == "Pending":
                self._try_to_start(pod)
            elif run is not None and not run.reported and run.process.poll() is not None:
                self._report_end(run)

    def _try_to_start(self, pod: Any) -> None:
        name = pod.metadata.name
        if pod.spec.node_name is None:
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"metadata": {"name": name}, "target": target}
            self.api.create_namespaced_pod_binding(name, self.namespace, binding, _preload_content=False)
        container = pod.spec.containers[0]
        try:
            run = self._start(pod, container)
        except Missing as missing:
            waiting = {"waiting": {"reason": str(missing), "message": "as the test wants it"}}
            self._patch(name, "Pending", container.name, waiting)
            return
        self.running[name] = run
        self.started.append(name)
        self._patch(name, "Running", container.name, {"running": {}}, run.address)

    def _start(self, pod: Any, container: Any) -> Running:
        image = self.images.get(container.image)
        if image is None:
            raise Missing("ErrImagePull")
        folder = self.folder / pod.metadata.name
        address = f"127.0.7.{self._addresses}"
        environment = {**image.environment, **self._environment(pod, container, address)}
        self._names[pod.metadata.name] = address
        self._write_hosts({})
        mounts = [*((str(there), str(here)) for here, there in image.folders.items())]
        mounts += [(str(self._hosts), "/etc/hosts"), *self._volumes(pod, container, folder)]
        self._addresses += 1
        script = "\n".join(
            [
                "set -e",
                *(f"mkdir -p {shlex.quote(f'{folder}/own{own}')}" for own in _OWN),
                *(f"mount --bind {shlex.quote(f'{folder}/own{own}')} {own}" for own in _OWN),
                *(_mount(source, target) for source, target in mounts),
                *(f"mount -t tmpfs none {shlex.quote(str(hidden))}" for hidden in image.hidden),
                f"hostname {pod.metadata.name}",
                'cd "$0" && exec "$@"',
            ]
        )
        work = folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        command = [*(container.command or image.entry_point), *(container.args or [])]
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                ["unshare", "--mount", "--uts", "sh", "-c", script, str(work), *command],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return Running(pod.metadata.name, address, process)

    def _environment(self, pod: Any, container: Any, address: str) -> dict[str, str]:
        made = {}
        for variable in container.env or []:
            source = variable.value_from
            if source is None:
                made[variable.name] = variable.value or ""
            elif source.secret_key_ref is not None:
                made[variable.name] = self._secret(source.secret_key_ref)
            else:
                fields = {"status.podIP": address, "metadata.name": pod.metadata.name}
                made[variable.name] = fields[source.field_ref.field_path]
        return made

    def _secret(self, reference: Any) -> str:
        from kubernetes.client.exceptions import ApiException

        try:
            data = self.api.read_namespaced_secret(reference.name, self.namespace).data
        except ApiException as error:
            raise Missing("CreateContainerConfigError") from error
        return base64.b64decode(data[reference.key]).decode()

    def _volumes(self, pod: Any, container: Any, folder: Path) -> Iterator[tuple[str, str]]:
        from kubernetes.client.exceptions import ApiException

        volumes = {volume.name: volume for volume in pod.spec.volumes or []}
        for mount in container.volume_mounts or []:
            volume, made = volumes[mount.name], folder / "volumes" / mount.name
            try:
                if volume.host_path is not None:
                    made = Path(volume.host_path.path)
                elif volume.config_map is not None:
                    _write(
                        made, self.api.read_namespaced_config_map(volume.config_map.name, self.namespace).data
                    )
                elif volume.projected is not None:
                    _write(made, self._projected(pod, volume.projected))
                else:
                    assert volume.empty_dir is not None, volume
                    made.mkdir(parents=True, exist_ok=True)
            except ApiException as error:  # Spark makes its settings after the pod
                raise Missing("ContainerCreating") from error
            yield str(made), mount.mount_path

    def _projected(self, pod: Any, projected: Any) -> dict[str, str]:
        """The files with which a pod is its service account: a token that the API server signs now."""
        files = {}
        for source in projected.sources:
            if source.service_account_token is not None:
                body = {"spec": {"expirationSeconds": source.service_account_token.expiration_seconds}}
                answer = self.api.create_namespaced_service_account_token(
                    pod.spec.service_account_name, self.namespace, body
                )
                files[source.service_account_token.path] = answer.status.token
            elif source.config_map is not None:
                files |= self.api.read_namespaced_config_map(source.config_map.name, self.namespace).data
            else:
                files["namespace"] = self.namespace
        return files

    def _write_hosts(self, pods: Mapping[str, Any]) -> None:
        """Names of pods and services, in the file that all containers have: it is written in place, and only where it changes."""
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self._names.items())]
        for service in self.api.list_namespaced_service(self.namespace).items:
            wanted = (service.spec.selector or {}).items()
            for name, address in self._names.items():
                if wanted and name in pods and wanted <= (pods[name].metadata.labels or {}).items():
                    self._services[f"{service.metadata.name}.{self.namespace}.svc"] = address
        lines += [f"{address} {name}" for name, address in self._services.items()]
        text = "\n".join(lines) + "\n"
        if text != self._hosts.read_text():
            self._hosts.write_text(text)

    def _report_end(self, run: Running) -> None:
        code = run.process.wait()
        code = 128 - code if code < 0 else code
        state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        pod = self.api.read_namespaced_pod(run.name, self.namespace)
        self._patch(
            run.name, "Failed" if code else "Succeeded", pod.spec.containers[0].name, state, run.address
        )
        run.reported = True

    def _patch(
        self, name: str, phase: str, container: str, state: dict[str, Any], address: str | None = None
    ) -> None:
        status = {
            "name": container,
            "state": {"waiting": None, "running": None, "terminated": None, **state},
            "ready": phase == "Running",
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
        body: dict[str, Any] = {"phase": phase, "containerStatuses": [status]}
        if address is not None:
            body |= {"podIP": address, "podIPs": [{"ip": address}], "hostIP": "127.0.0.1"}
        if phase == "Running":
            body["conditions"] = [{"type": "Ready", "status": "True"}]
        self.api.patch_namespaced_pod_status(name, self.namespace, {"status": body})


def _mount(source: str, target: str) -> str:
    here, there = shlex.quote(source), shlex.quote(target)
    own = target.startswith(tuple(f"{own}/" for own in (*_OWN, "/var/run")))
    return f"{f'mkdir -p {there} && ' if own else ''}mount --bind {here} {there}"


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def _kill(process: subprocess.Popen[bytes], how: int) -> None:
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        return


@contextmanager
def kubelet(
    server: ApiServer, namespace: str, images: Mapping[str, Image], folder: Path
) -> Iterator[Kubelet]:
    """Run the pods of a namespace inside the block."""
    node = Kubelet(server, namespace, images, folder)
    watcher = threading.Thread(target=node.look, name="kubelet", daemon=True)
    watcher.start()
    try:
        yield node
    finally:
        node.stop()
        watcher.join(10)
