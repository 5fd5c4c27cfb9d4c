"""A real API server of Kubernetes on loopback, built from its Go modules: needs Go, and five minutes of a core once."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from headwater.runtime.cache import cache_root

SOURCES = Path(__file__).parent / "apiserver"
_START_SECONDS = 120
# Users by name, each with its token and groups. Those of `airflow` have what the pages ask for, and nothing else.
TOKENS = {"admin": "token-of-the-admin", "airflow": "token-of-airflow"}


def program() -> Path:
    """The program, built on the first call and kept in the cache."""
    sources = b"".join((SOURCES / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    built = cache_root() / "k8s" / f"apiserver-{hashlib.sha256(sources).hexdigest()[:16]}"
    if not built.exists():
        go = shutil.which("go")
        assert go is not None, "Go is needed to build the API server: install it, and run this again."
        built.parent.mkdir(parents=True, exist_ok=True)
        fresh = built.with_suffix(f".{os.getpid()}")
        command = [
            "nice",
            "-n",
            "19",
            go,
            "build",
            "-p",
            "1",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            str(fresh),
            ".",
        ]
        subprocess.run(command, cwd=SOURCES, check=True, env={**os.environ, "CGO_ENABLED": "0"})
        fresh.replace(built)
    return built


@dataclass(frozen=True)
class ApiServer:
    """A running one. ``folder``: of its files; ``certificate``: of whoever signed its own."""

    url: str
    folder: Path
    certificate: Path

    def kubeconfig(self, user: str) -> Path:
        """The file with which a user's programs find it."""
        file = self.folder / f"kubeconfig-{user}"
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": TOKENS[user]}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": user}}],
            "current-context": "c",
        }
        file.write_text(yaml.safe_dump(content))
        return file

    def client(self, user: str = "admin") -> Any:
        """The client of Kubernetes, as a user."""
        from kubernetes import client, config

        settings = client.Configuration()
        config.load_kube_config(str(self.kubeconfig(user)), client_configuration=settings)
        return client.ApiClient(settings)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create objects."""
        from kubernetes import utils

        for each in objects:
            utils.create_from_dict(self.client(), each)


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Run one inside the block, with its store in the folder."""
    folder.mkdir(parents=True)
    key = folder / "service-accounts.pem"
    form = serialization.PrivateFormat.TraditionalOpenSSL
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key.write_bytes(made.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKENS["admin"]},admin,1,"system:masters"\n{TOKENS["airflow"]},airflow,2\n')
    port, clients, peers = _free_ports(3)
    options = {
        "secure-port": port,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "cert-dir": folder / "certificates",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "authorization-mode": "RBAC",
        "token-auth-file": tokens,
        "service-cluster-ip-range": "10.0.0.0/24",
        "endpoint-reconciler-type": "none",
    }
    command = [str(program()), str(folder / "etcd"), str(clients), str(peers)]
    with (folder / "api-server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *(f"--{name}={value}" for name, value in options.items())],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = ApiServer(f"https://127.0.0.1:{port}", folder, folder / "certificates" / "apiserver.crt")
    try:
        _wait_until_ready(server, process)
        yield server
    finally:
        process.kill()
        process.wait(30)


def _wait_until_ready(server: ApiServer, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _START_SECONDS
    request = urllib.request.Request(
        f"{server.url}/readyz", headers={"Authorization": f"Bearer {TOKENS['admin']}"}
    )
    while True:
        said = (server.folder / "api-server.log").read_text(errors="replace")[-4000:]
        assert process.poll() is None, said
        assert time.monotonic() < ends, said
        try:
            trusted = ssl.create_default_context(cafile=str(server.certificate))
            with urllib.request.urlopen(request, context=trusted, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
