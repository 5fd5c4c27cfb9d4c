"""What a machine has to have for ``make test-team`` and ``make test-celery``; says all that is missing at once, before anything is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from tests.postgres_server import PROGRAMS

_PROGRAMS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "chroot": "coreutils",
    "hostname": "hostname",
    "ip": "iproute2",
}
CELERY = "test-celery"


def missing(
    *, root: bool, namespaces: bool, postgres: bool, which: Callable[[str], object], redis: bool = False
) -> list[str]:
    """A line for each thing that is not there, with what to do. ``redis``: whether that is needed."""
    needed = {**_PROGRAMS, **({"redis-server": "redis-server"} if redis else {})}
    lines = [
        f"the program {program}: apt install {package}"
        for program, package in needed.items()
        if not which(program)
    ]
    if not root:
        lines.append("root: run it by sudo (it mounts, and starts Postgres as a user of its own)")
    elif not namespaces and not lines:
        lines.append("namespaces of its own: a container has to be started with --privileged")
    if not postgres:
        lines.append("Postgres: apt install postgresql")
    return lines


def main(target: str) -> int:
    """Say what is missing for a target of make; 2 where anything is."""
    root = os.geteuid() == 0
    command = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "mount", "-t", "tmpfs", "x", "/mnt"]
    namespaces = (
        root
        and shutil.which("unshare") is not None
        and subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    )
    lines = missing(
        root=root,
        namespaces=namespaces,
        postgres=PROGRAMS is not None,
        which=shutil.which,
        redis=target == CELERY,
    )
    for line in lines:
        print(f"make {target} needs {line}", file=sys.stderr)
    return 2 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
