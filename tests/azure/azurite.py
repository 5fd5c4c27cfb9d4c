"""Azurite, Microsoft's emulator of Azure's blobs, on loopback: needs npm, and 365 MB of its packages once."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote, urlsplit

from tests.azure.certificates import Certificates

from headwater.runtime.cache import cache_root
from headwater.storage.access import object_store
from headwater.storage.object_path import Bucket, ObjectPath

ACCOUNT = "headwater"
KEY = base64.b64encode(b"of-the-test" * 4).decode()
_PACKAGES = Path(__file__).parent
_START_SECONDS = 60


def program() -> Path:
    """The emulator, installed on the first call and kept in the cache; its packages are pinned by their checksums."""
    pinned = (_PACKAGES / "package-lock.json").read_bytes()
    home = cache_root() / "azurite" / hashlib.sha256(pinned).hexdigest()[:16]
    if not home.exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is needed to install Azurite: install Node, and run this again."
        fresh = home.with_name(f"{home.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_PACKAGES / name, fresh / name)
        options = ["--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(["nice", "-n", "19", npm, "ci", *options], cwd=fresh, check=True)
        fresh.replace(home)
    return home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


@dataclass(frozen=True)
class Azurite:
    """A running one, with one account."""

    endpoint: str
    trusted: Certificates | None = None

    def environment(self) -> dict[str, str]:
        """Variables that lead obstore, delta-rs and us to the server."""
        of_tls = {"SSL_CERT_FILE": str(self.trusted.authority)} if self.trusted is not None else {}
        return {
            "AZURE_STORAGE_ENDPOINT": f"{self.endpoint}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            **of_tls,
        }

    def place(self, container: str, key: str = "") -> ObjectPath:
        """A place on the server."""
        store = object_store("abfss", {}, self.environment())
        return ObjectPath(Bucket(store, address(container)), key)

    def make_container(self, name: str) -> None:
        """Make a container."""
        self._put(name, "restype=container", {})

    def put_mark(self, folder: ObjectPath) -> None:
        """Put what Hadoop leaves where it has made a folder: an empty object of its name that says so."""
        container = folder.bucket.name.partition("@")[0]
        headers = {"x-ms-blob-type": "BlockBlob", "x-ms-meta-hdi_isfolder": "true"}
        self._put(f"{container}/{folder.key}", "", headers)

    def _put(self, path: str, query: str, headers: Mapping[str, str]) -> None:
        """A put without content, signed with the account's key."""
        sent = {**headers, "x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        target = f"/{ACCOUNT}/{quote(path)}"
        named = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
        parameters = "".join(f"\n{part.replace('=', ':')}" for part in query.split("&") if part)
        signed = f"PUT{chr(10) * 12}{named}/{ACCOUNT}{target}{parameters}"
        digest = hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")
        sent["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        connection = self._connection()
        with contextlib.closing(connection):
            connection.request("PUT", f"{target}?{query}" if query else target, b"", sent)
            answer = connection.getresponse()
            assert answer.status == 201, answer.read()

    def _connection(self) -> http.client.HTTPConnection:
        host = urlsplit(self.endpoint).netloc
        if self.trusted is None:
            return http.client.HTTPConnection(host, timeout=30)
        context = ssl.create_default_context(cafile=str(self.trusted.authority))
        return http.client.HTTPSConnection(host, timeout=30, context=context)


def address(container: str) -> str:
    """What stands between ``abfss://`` and the folder."""
    return f"{container}@{ACCOUNT}.dfs.core.windows.net"


@contextmanager
def azurite(folder: Path, trusted: Certificates | None = None) -> Iterator[Azurite]:
    """Run one that keeps its objects in memory and its log in ``folder``; the environment leads to it inside the block.

    ``trusted``: certificates, for one that speaks TLS.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = ["node", str(program()), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--loose", "--disableTelemetry"]
    if trusted is not None:
        command += ["--cert", str(trusted.folder / "server.pem"), "--key", str(trusted.folder / "server.key")]
    log = folder / "azurite.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=out,
            stderr=out,
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
        )
    scheme = "http" if trusted is None else "https"
    server = Azurite(f"{scheme}://127.0.0.1:{port}", trusted)
    known = {name: os.environ.get(name) for name in server.environment()}
    try:
        _wait(port, process, log)
        os.environ.update(server.environment())
        yield server
    finally:
        process.kill()
        process.wait()
        for name, value in known.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            time.sleep(0.05)
        else:
            return
