"""The services of Compose files without a container engine: each in namespaces of its own, by its very command and variables.

A service has a root, processes and a host name of its own. It sees the volumes and secrets that the file gives it and no others, and
others under the file's names (decision 0200). What is not here: images (this checkout and its Python stand in for ours, read-only as
for the image's user; a server of this machine for Postgres' and Redis'), limits, another user than root, networks of their own. Needs root and a network namespace: ``make test-team``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headwater.runtime.cache import cache_root
from headwater.runtime.java import java_environment

CHECKOUT = Path(__file__).resolve().parents[2]
COMPOSE_FILE = CHECKOUT / "docker-compose.yaml"
CELERY_FILE = CHECKOUT / "docker-compose.celery.yaml"
REPLICATED = ("spark-worker", "airflow-scheduler", "airflow-worker")
# Made by the image or the engine, and not of this machine.
_DEVICES = ("dev", "sys")
_NOT_SHARED = ("opt", "run", "tmp", "proc", "data", "mnt", "media", "lost+found")


def compose_services(files: Sequence[Path], **variables: str) -> dict[str, Any]:
    """The services as the real Compose understands the files, with variables of the shell that it is started in."""
    spec = importlib.util.find_spec("compose")
    assert spec is not None
    assert spec.origin is not None
    binary = Path(spec.origin).with_name("docker-compose")
    named = [word for file in files for word in ("-f", file)]
    command = [binary, *named, "--env-file", "/dev/null", "config", "--format", "json"]
    answer = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    services: dict[str, Any] = json.loads(answer.stdout)["services"]
    return services


def image_environment() -> dict[str, str]:
    """The variables that the Dockerfile sets."""
    block = re.search(
        r"^ENV (.*?)\n\n", COMPOSE_FILE.with_name("Dockerfile").read_text(), re.DOTALL | re.MULTILINE
    )
    assert block is not None
    return dict(word.split("=", 1) for word in block[1].replace("\\\n", " ").split())


@dataclass
class Container:
    """A running service. ``process``: its first, whose end is the end of all the others."""

    name: str
    environment: Mapping[str, str]
    service: Mapping[str, Any]
    outer: subprocess.Popen[bytes]
    log: Path

    @property
    def process(self) -> psutil.Process:
        """The service's own process."""
        return psutil.Process(self.outer.pid).children()[0]

    def kill(self) -> None:
        """SIGKILL to the service's process: nothing of it is left, as of a container."""
        if self.outer.poll() is None:
            self.process.kill()
        self.outer.wait(30)

    def run(self, *command: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command inside, with the service's variables."""
        inside = ["nsenter", "--target", str(self.process.pid), "--mount", "--uts", "--pid", "--root", "--wd"]
        return subprocess.run(
            [*inside, *command],
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def check_health(self) -> subprocess.CompletedProcess[str]:
        """Run the service's own health check."""
        kind, *command = [word.replace("$$", "$") for word in self.service["healthcheck"]["test"]]
        return self.run("sh", "-c", *command) if kind == "CMD-SHELL" else self.run(*command)


class Stack:
    """The services of the files, over one folder. ``more``: variables of Airflow's services beside the files'."""

    def __init__(self, folder: Path, files: Sequence[Path] = (COMPOSE_FILE,), **more: str) -> None:
        self.folder, self.files, self.more = folder, files, more
        self.services = compose_services(files)
        self.containers: dict[str, Container] = {}
        names = [*self.services, *(f"{name}-{number}" for name in REPLICATED for number in (1, 2))]
        # On loopback, one for each: reverse look-ups give the right name.
        self.addresses = {name: f"127.0.1.{number}" for number, name in enumerate(names, start=1)}
        for name in ("hosts", "logs", "roots", "volumes", "pipelines", "dags"):
            (folder / name).mkdir()
        makefile = COMPOSE_FILE.with_name("Makefile")
        subprocess.run(["make", "-s", "-f", makefile, "compose-env"], cwd=folder, check=True)

    def secret(self, name: str) -> Path:
        """The file of a secret."""
        return self.folder / ".secrets" / name

    def volume(self, name: str) -> Path:
        """The folder of a volume."""
        path = self.folder / "volumes" / name
        path.mkdir(exist_ok=True)
        return path

    def run_to_end(self, service: str, seconds: float = 180) -> None:
        """Run a service that ends, and expect that it ends well."""
        container = self.start(service)
        assert container.outer.wait(seconds) == 0, container.log.read_text()[-4000:]

    def start(self, service: str, name: str | None = None, **variables: str) -> Container:
        """Start a container of a service. ``variables``: of the shell that Compose is started in."""
        services = compose_services(self.files, **variables) if variables else self.services
        name, definition = name or service, services[service]
        root = self.folder / "roots" / name
        root.mkdir(exist_ok=True)
        hosts = self.folder / "hosts" / name
        known = [f"{address} {name}" for name, address in self.addresses.items()]
        hosts.write_text("\n".join(["127.0.0.1 localhost", *known]) + "\n")
        script = "\n".join(["set -e", *self._mounts(root, hosts, definition), f"hostname {name}"])
        command = shlex.join([word.replace("$$", "$") for word in definition["command"]])
        script += f"\ncd /\nexec chroot {root} sh -c {shlex.quote(f'cd /opt/headwater && exec {command}')}"
        log = self.folder / "logs" / f"{name}.log"
        environment = self._environment(service, definition)
        flags = ["--mount", "--uts", "--pid", "--fork", "--kill-child=SIGKILL", "--propagation", "private"]
        with log.open("ab") as output:
            outer = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", *flags, "sh", "-c", script],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.containers[name] = Container(name, environment, definition, outer, log)
        return self.containers[name]

    def wait_healthy(self, *names: str, seconds: float = 150) -> None:
        """Wait until the health checks of containers say that they work."""
        deadline = time.monotonic() + seconds
        for name in names:
            container = self.containers[name]
            while True:
                assert container.outer.poll() is None, container.log.read_text()[-4000:]
                try:
                    answer = container.check_health()
                except (IndexError, psutil.Error, subprocess.TimeoutExpired):
                    answer = None
                if answer is not None and answer.returncode == 0:
                    break
                assert time.monotonic() < deadline, f"{name}: {answer}\n{container.log.read_text()[-3000:]}"
                time.sleep(0.5)

    def end(self) -> None:
        """Leave nothing behind."""
        for container in reversed(self.containers.values()):
            container.kill()

    def _environment(self, service: str, definition: Mapping[str, Any]) -> dict[str, str]:
        paths = [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        more = self.more if service.startswith("airflow-") else {}
        return {
            "PATH": ":".join(paths),
            "HOME": "/tmp",
            **java_environment(),
            **image_environment(),
            **(definition.get("environment") or {}),
            **_built_with(definition),
            **more,
        }

    def _mounts(self, root: Path, hosts: Path, definition: Mapping[str, Any]) -> Sequence[str]:
        lines = [f"mount -t tmpfs tmpfs {root}"]
        for entry in sorted(Path("/").iterdir()):
            target = root / entry.name
            if entry.name in _NOT_SHARED:
                continue
            if entry.is_symlink():
                lines.append(f"ln -s {entry.readlink()} {target}")
            elif entry.is_dir():
                lines.append(f"mkdir {target} && mount --rbind {entry} {target}")
                if entry.name not in _DEVICES:
                    lines.append(f"mount -o remount,bind,ro {target}")
        lines += [
            f"mkdir -p {root}/{name}"
            for name in ("opt/headwater", "opt/headwater-cache", "run/secrets", "proc", "data")
        ]
        lines += [
            f"mkdir -m 1777 {root}/tmp",
            f"mount -t proc proc {root}/proc",
            f"mount --bind {hosts} {root}/etc/hosts",
            *_read_only(CHECKOUT, f"{root}/opt/headwater"),
            *_read_only(self.folder / "pipelines", f"{root}/opt/headwater/jobs/pipelines"),
            *_read_only(cache_root(), f"{root}/opt/headwater-cache"),
        ]
        for folder in {Path(sys.prefix), Path(sys.base_prefix)}:
            if folder.parts[1] in _NOT_SHARED:
                lines += [f"mkdir -p {root}{folder}", *_read_only(folder, f"{root}{folder}")]
        for volume in definition.get("volumes", ()):
            target = f"{root}{volume['target']}"
            lines.append(f"mkdir -p {target} && mount --bind {self.volume(volume['source'])} {target}")
            if volume.get("read_only"):
                lines.append(f"mount -o remount,bind,ro {target}")
        for secret in definition.get("secrets", ()):
            target = f"{root}{secret['target']}"
            lines.append(f"touch {target} && mount --bind {self.secret(secret['source'])} {target}")
        return lines


def container_of(stack: Stack, process: psutil.Process) -> Container:
    """The container that a process of this machine runs in."""
    above = {parent.pid for parent in process.parents()}
    (found,) = [one for one in stack.containers.values() if one.outer.pid in above]
    return found


def _built_with(definition: Mapping[str, Any]) -> dict[str, str]:
    """What an image has that was built with Airflow's provider for Celery: here it lies beside `.venv`."""
    if not (definition.get("build") or {}).get("args", {}).get("CELERY"):
        return {}
    return {"PYTHONPATH": f"{image_environment()['PYTHONPATH']}:/opt/headwater/.venv-celery"}


def _read_only(source: Path, target: str) -> list[str]:
    return [f"mount --bind {source} {target}", f"mount -o remount,bind,ro {target}"]
