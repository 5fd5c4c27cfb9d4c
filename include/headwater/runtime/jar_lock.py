"""The pinned jars: which files each group has, and the SHA-256 of each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from headwater.errors import UsageError
from headwater.runtime.conditions import JarChecksumMismatch

LOCK_FILE = Path(__file__).with_name("jars.lock.json")


@dataclass(frozen=True)
class PinnedJar:
    """One jar: its coordinates, and what the file must be. ``size`` is in bytes."""

    organisation: str
    name: str
    revision: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """The name it has in the folder of its group."""
        return f"{self.name}-{self.revision}.jar"


def pinned_jars(group: str, lock_file: Path = LOCK_FILE) -> tuple[PinnedJar, ...]:
    """Return the jars of one group, as the lock file has them.

    Raises:
        UsageError: if the lock file has no such group.

    """
    groups = json.loads(lock_file.read_text())
    if group not in groups:
        raise UsageError(
            f"there is no group of jars named {group!r}",
            where=lock_file,
            remedy=f"one of: {', '.join(groups)}",
        )
    return tuple(PinnedJar(**entry) for entry in groups[group])


def write_lock(groups: dict[str, list[PinnedJar]], lock_file: Path = LOCK_FILE) -> None:
    """Write the lock file."""
    plain = {group: [asdict(jar) for jar in jars] for group, jars in groups.items()}
    lock_file.write_text(json.dumps(plain, indent=1) + "\n")


def fingerprint(jars: tuple[PinnedJar, ...]) -> str:
    """Return a short name for exactly this set of files, so that a changed lock gets a new folder."""
    return hashlib.sha256("".join(jar.sha256 for jar in jars).encode()).hexdigest()[:12]


def pin(organisation: str, name: str, revision: str, jar: Path) -> PinnedJar:
    """Describe a fetched jar for the lock file."""
    return PinnedJar(organisation, name, revision, jar.stat().st_size, sha256(jar))


def verify(folder: Path, jars: tuple[PinnedJar, ...]) -> None:
    """Compare every file with its checksum.

    Raises:
        JarChecksumMismatch: naming the first jar that is absent or is not the pinned one.

    """
    for jar in jars:
        file = folder / jar.file_name
        checksum = sha256(file) if file.is_file() else "no such file"
        if checksum != jar.sha256:
            raise JarChecksumMismatch(
                f"{jar.file_name} is not the pinned jar: SHA-256 is {checksum}, expected {jar.sha256}",
                where=f"{jar.organisation}:{jar.name}:{jar.revision}",
                remedy="find out what the repository or mirror in use serves; nothing of it was kept",
            )


def sha256(file: Path) -> str:
    """Return the checksum of a file, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
