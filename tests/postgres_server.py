"""A real Postgres for tests: on loopback, with its data in a folder that goes with it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.runtime.ports import free_port

USER = "shop"


def _programs() -> Path | None:
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else paths[-1].parent if paths else None


# The folder of the server's programs; None where none is installed.
PROGRAMS = _programs()


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    port: int

    @property
    def airflow(self) -> str:
        """Where an Airflow keeps what it knows."""
        return f"postgresql+psycopg2://{USER}@127.0.0.1:{self.port}/postgres"

    def run(self, sql: str) -> None:
        """Run SQL in it."""
        with self._cursor() as cursor:
            cursor.execute(sql)

    def dump(self) -> str:
        """Every row of every table as text; bytes are in hexadecimal."""
        buffer = io.StringIO()
        with self._cursor() as cursor:
            cursor.execute("select format('%I', tablename) from pg_tables where schemaname = 'public'")
            for (table,) in cursor.fetchall():
                cursor.copy_expert(f"copy {table} to stdout", buffer)
        return buffer.getvalue()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        import psycopg2

        connection = psycopg2.connect(
            host="127.0.0.1", port=self.port, user=USER, password="", dbname="postgres"
        )
        connection.autocommit = True
        with closing(connection), connection.cursor() as cursor:
            yield cursor


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Start a server and end it. It refuses root, so root becomes its own user."""
    assert PROGRAMS is not None
    with tempfile.TemporaryDirectory() as name:
        folder, user, port = Path(name), dict[str, str](), free_port()
        if os.geteuid() == 0:
            user = {"user": "postgres", "group": "postgres"}
            shutil.chown(folder, "postgres", "postgres")

        def call(program: str, *arguments: str) -> None:
            command = [str(PROGRAMS / program), "-D", str(folder / "data"), *arguments]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60, **user)

        call("initdb", "--no-sync", "-A", "trust", "-U", USER)
        settings = f"-F -p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        call("pg_ctl", "-o", settings, "-w", "-l", str(folder / "log"), "start")
        try:
            yield Postgres(port)
        finally:
            call("pg_ctl", "-m", "immediate", "stop")
