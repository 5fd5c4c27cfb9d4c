"""What a notebook finds ready on the closed platform: ``dbutils`` and ``display``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.errors import UsageError


@dataclass(frozen=True)
class FileInfo:
    """An entry of ``dbutils.fs.ls``; names of folders end in a slash."""

    path: str
    name: str
    size: int

    def isDir(self) -> bool:  # noqa: N802 - the platform's spelling
        """Whether it is a folder."""
        return self.name.endswith("/")


class Secrets:
    """Secrets from the environment: ``get("event-hub", "key")`` is ``HEADWATER_SECRET_EVENT_HUB_KEY``."""

    def get(self, scope: str, key: str) -> str:
        """The secret's text; raises UsageError naming the variable where it is not set."""
        name = "HEADWATER_SECRET_" + re.sub(r"\W", "_", f"{scope}_{key}").upper()
        value = os.environ.get(name)
        if value is None:
            raise UsageError(
                f"The secret {scope}/{key} is not set.", remedy=f"Set the environment variable {name}."
            )
        return value


class FileSystem:
    """The read side of ``dbutils.fs``, on local paths."""

    def ls(self, path: str) -> list[FileInfo]:
        """The entries of a folder; raises FileNotFoundError where there is none."""
        folder = Path(path.removeprefix("file:").removeprefix("dbfs:"))
        entries = sorted(folder.iterdir())
        return [FileInfo(str(e), e.name + ("/" if e.is_dir() else ""), e.stat().st_size) for e in entries]


class Widgets:
    """``dbutils.widgets``: values are the pipeline's configuration."""

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self._values = dict(configuration)

    def text(self, name: str, default: str, label: str = "") -> None:  # noqa: ARG002 - the platform's signature
        """Declare a value with its default."""
        self._values.setdefault(name, default)

    def get(self, name: str) -> str:
        """A value; raises KeyError where neither the configuration nor a default gives one."""
        return self._values[name]


class DbUtils:
    """The parts of ``dbutils`` that a pipeline's sources use."""

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self.secrets = Secrets()
        self.fs = FileSystem()
        self.widgets = Widgets(configuration)


def display(*_values: Any, **_options: Any) -> None:
    """Do nothing: there is no notebook to show it in, and showing a stream would start it."""
