"""The file that a driver's JVM maps instead of loading classes one by one, and whether it is whole.

Decision 0158.
"""

from __future__ import annotations

import json
import logging
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headwater.runtime.jar_lock import sha256

_log = logging.getLogger("headwater.runtime")


@dataclass(frozen=True)
class ClassArchive:
    """An archive, there or not. ``major``: the version of the Java that it is for."""

    file: Path
    major: int

    @property
    def notes(self) -> Path:
        """What was recorded when it was made."""
        return self.file.with_suffix(".json")

    @property
    def refusal(self) -> Path:
        """Why the last try to make it failed, where it did."""
        return self.file.with_suffix(".failed")

    def options(self) -> str:
        """The JVM's options that use it. What the JVM says about itself goes to standard error, about the archive nowhere."""
        quiet = "all=warning,cds*=off" + (",aot*=off" if self.major >= 25 else "")
        file = f'"{self.file}"' if re.search(r"\s", str(self.file)) else str(self.file)
        return f"-XX:SharedArchiveFile={file} -Xshare:auto -Xlog:disable -Xlog:{quiet}:stderr"

    def is_whole(self) -> bool:
        """Whether it is there, as it was made. It is read only where the file was touched since it was compared last."""
        try:
            now, notes = self._stamp(), json.loads(self.notes.read_text())
            if notes["stamp"] == now:
                return True
            whole = bool(notes["sha256"] == sha256(self.file))
        except FileNotFoundError:
            return False
        except (OSError, ValueError, TypeError, KeyError) as error:
            _log.warning("The archive of classes %s can't be used, and is left out: %s.", self.file, error)
            return False
        if whole:
            self._note(notes["sha256"], now)
        else:
            _log.warning(
                "The archive of classes %s is damaged, and is left out. The next one replaces it.", self.file
            )
            self.remove()
        return whole

    def note(self) -> None:
        """Record what it is, right after it was put in place."""
        self._note(sha256(self.file), self._stamp())

    def mark_used(self) -> None:
        """Record that it is in use, for those who make room."""
        with suppress(OSError):
            os.utime(self.notes)

    def remove(self) -> None:
        """Remove it, where that is allowed. JVMs that have mapped it keep it."""
        with suppress(OSError):
            self.notes.unlink(missing_ok=True)
            self.file.unlink(missing_ok=True)

    def _stamp(self) -> list[int]:
        state = self.file.stat()
        return [state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]

    def _note(self, checksum: str, stamp: list[int]) -> None:
        with suppress(OSError):  # a cache in an image may be read-only
            fresh = self.notes.with_name(f"{self.notes.name}.{os.getpid()}.part")
            fresh.write_text(json.dumps({"sha256": checksum, "stamp": stamp}) + "\n")
            fresh.replace(self.notes)
