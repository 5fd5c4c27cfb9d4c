"""An S3 server on loopback that can be killed, and goes on where it stood: its port and all that it has acknowledged stay.

versitygw, where ``HEADWATER_VERSITYGW`` or the path of commands names one: its objects are files. Otherwise moto, which keeps
everything in memory: it writes each request that changes something into a file before it carries it out, and carries all of them
out again when it starts.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.object_stores import CREDENTIALS, StoreServer

_CHANGES = ("PUT", "POST", "DELETE")
_START_SECONDS = 30


def versitygw() -> str | None:
    """The program, where there is one."""
    return os.environ.get("HEADWATER_VERSITYGW") or shutil.which("versitygw")


class LastingStore(StoreServer):
    """A server with a folder of its own. ``process`` is the one that runs now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        log = folder / "requests"
        log.touch()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        super().__init__(f"http://127.0.0.1:{self.port}", log, self._started(log))
        self._wait()

    def make_bucket(self, name: str) -> None:
        """Make a bucket; versitygw checks who asks for it."""
        import boto3

        keys = {name.lower(): CREDENTIALS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        session = boto3.session.Session(region_name=CREDENTIALS["AWS_DEFAULT_REGION"], **keys)
        session.client("s3", endpoint_url=self.endpoint).create_bucket(Bucket=name)

    def kill(self) -> None:
        """End it as a machine that loses its power."""
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Start it again where it was; it answers when this returns."""
        self.process = self._started(self.log)
        self._wait()

    def _started(self, log: Path) -> subprocess.Popen[str]:
        checkout = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["include", "."])}
        program = versitygw()
        if program is None:
            code = "from tests.object_stores import serve; serve()"
            command = [sys.executable, "-c", code, str(log), str(self.port), str(self.folder / "changes")]
        else:
            (self.folder / "data").mkdir(exist_ok=True)
            environment |= {"ROOT_ACCESS_KEY": CREDENTIALS["AWS_ACCESS_KEY_ID"]}
            environment |= {"ROOT_SECRET_KEY": CREDENTIALS["AWS_SECRET_ACCESS_KEY"]}
            command = [
                program,
                "--quiet",
                "--port",
                f"127.0.0.1:{self.port}",
                "posix",
                str(self.folder / "data"),
            ]
        with (self.folder / "log").open("a") as out:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                text=True,
                cwd=checkout,
                env=environment,
            )

    def _wait(self) -> None:
        ends = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < ends, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return


@contextmanager
def lasting_store(folder: Path) -> Iterator[LastingStore]:
    """Run one that keeps its objects in ``folder``; the environment leads to it inside the block."""
    server = LastingStore(folder)
    known = {name: os.environ.get(name) for name in server.environment()}
    os.environ.update(server.environment())
    try:
        yield server
    finally:
        for name, value in known.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        server.kill()


class Changes:
    """The requests that changed something in moto, in a file."""

    def __init__(self, file: Path, application: Any) -> None:
        self._file, self._application = file, application

    def __call__(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Carry out a request; one that changes something is in the file by then. One at a time."""
        if environment["REQUEST_METHOD"] in _CHANGES:
            # A number of its own is what moto gives a multipart upload: it would be another one the next time.
            assert "uploadId" not in environment.get("QUERY_STRING", ""), "multipart uploads are not kept"
            body = _body(environment)
            environment |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
            parts = {name: value for name, value in environment.items() if isinstance(value, str)}
            line = {"at": time.time(), "parts": parts, "body": base64.b64encode(body).decode()}
            with self._file.open("a") as file:
                file.write(f"{json.dumps(line)}\n")
        answer: Iterable[bytes] = self._application(environment, start_response)
        return answer

    def again(self, written_at: Callable[[str, datetime], None]) -> None:
        """Carry out all that is in the file; ``written_at`` is given the path and the time of each."""
        if not self._file.exists():
            return
        with self._file.open() as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return  # it was killed before it carried this one out
                one = json.loads(line)
                body = base64.b64decode(one["body"])
                environment = {**one["parts"], "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr}
                for _ in self._application(environment, _ignored):
                    pass
                written_at(one["parts"]["PATH_INFO"], datetime.fromtimestamp(one["at"], UTC))


def _body(environment: dict[str, Any]) -> bytes:
    """The body of a request, however it was sent."""
    stream = environment["wsgi.input"]
    whole = environment.pop("HTTP_TRANSFER_ENCODING", "") == "chunked"
    content: bytes = stream.read() if whole else stream.read(int(environment.get("CONTENT_LENGTH") or 0))
    return content


def _ignored(*_: object) -> None:
    """What a server does with the status and the headers of an answer that nobody waits for."""
