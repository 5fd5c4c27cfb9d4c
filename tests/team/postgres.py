"""In the place of the image of Postgres: a server of this machine, with the file's user, database and password."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres_server import PROGRAMS


@contextmanager
def postgres(definition: Mapping[str, Any], password: Path, address: str) -> Iterator[None]:
    """Run the server on its usual port, and its health check once; it refuses root, so root becomes its own user."""
    assert PROGRAMS is not None, "Postgres is not installed: apt install postgresql"
    variables = definition["environment"]
    user, database = variables["POSTGRES_USER"], variables["POSTGRES_DB"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        secret = folder / "password"
        shutil.copy(password, secret)
        for path in (folder, secret):
            shutil.chown(path, "postgres", "postgres")
        as_postgres: dict[str, Any] = {"user": "postgres", "group": "postgres", "cwd": folder}

        def call(program: str, *arguments: str) -> None:
            command = [str(PROGRAMS / program), "-D", str(folder / "data"), *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, **as_postgres)

        call("initdb", "--no-sync", "-U", user, f"--pwfile={secret}", "-A", "scram-sha-256")
        settings = f"-F -c listen_addresses={address} -c unix_socket_directories={folder}"
        call("pg_ctl", "-o", settings, "-w", "-l", str(folder / "log"), "start")
        try:
            environment = {**os.environ, "PGHOST": str(folder), "PGPASSWORD": password.read_text()}
            kind, *check = definition["healthcheck"]["test"]
            assert kind == "CMD"
            for command in (["createdb", "--username", user, database], check):
                # The file on PATH may be a link beside which the others are not.
                program = (PROGRAMS / "initdb").resolve().with_name(command[0])
                subprocess.run([program, *command[1:]], check=True, env=environment, timeout=30)
            yield
        finally:
            call("pg_ctl", "-m", "immediate", "stop")
