"""What the closed platform predefines for notebooks: ``dbutils`` and ``display``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from headwater.errors import UsageError
from headwater.runtime.secret_values import declared_secret
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import S3_SPELLINGS, Place, place_of, without_login
from headwater_spark.facade.noted_reads import note_rows


@dataclass(frozen=True)
class FileInfo:
    """An entry of ``dbutils.fs.ls``; names and paths of folders end in a slash.

    ``size``: in bytes, 0 of a folder. ``modificationTime``: in milliseconds since 1970.
    """

    path: str
    name: str
    size: int
    modificationTime: int = 0  # noqa: N815 - the platform's spelling

    def isFile(self) -> bool:  # noqa: N802 - the platform's spelling
        """Whether it is a file."""
        return not self.isDir()

    def isDir(self) -> bool:  # noqa: N802 - the platform's spelling
        """Whether it is a folder."""
        return self.name.endswith("/")


class _OnlyNamed:
    """Raises a clear error for members that it lacks."""

    _call = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UsageError(
            f"{self._call}.{name} is not there outside the closed platform.",
            remedy="A source describes tables; do this outside the pipeline, or with Python's own modules.",
        )


class Secrets(_OnlyNamed):
    """Secrets from the environment: ``get("event-hub", "key")`` is ``HEADWATER_SECRET_EVENT_HUB_KEY``."""

    _call = "dbutils.secrets"

    def get(self, scope: str, key: str) -> str:
        """The secret's text; raises UsageError naming the variable where it is not set."""
        return declared_secret(scope, key)

    def getBytes(self, scope: str, key: str) -> bytes:  # noqa: N802 - the platform's spelling
        """The secret's text in UTF-8."""
        return self.get(scope, key).encode()


class FileSystem(_OnlyNamed):
    """The read side of ``dbutils.fs``, on local paths and ``s3://``."""

    _call = "dbutils.fs"

    def ls(self, path: str) -> list[FileInfo]:
        """The entries of a folder, or a file itself; raises FileNotFoundError where there is neither."""
        place = _place(path)
        if isinstance(place, ObjectPath):
            return _stored(place)
        entries = [place] if place.is_file() else sorted(place.iterdir())
        return [info for entry in entries if (info := _info(entry)) is not None]

    def head(self, path: str, max_bytes: int = 65536) -> str:
        """The first bytes of a file as text."""
        place = _place(path)
        if isinstance(place, ObjectPath):
            return place.read_bytes()[:max_bytes].decode("utf-8", "replace")
        with place.open("rb") as content:
            return content.read(max_bytes).decode("utf-8", "replace")


def _place(path: str) -> Place:
    scheme, separator, _ = path.partition("://")
    if separator and scheme.lower() in S3_SPELLINGS:
        if scheme != "s3":
            raise UsageError(
                f"{without_login(path)} is another spelling.", remedy="Write s3://bucket/folder."
            )
        note_rows()  # whether it would be the same now can't be told from the manifest
        return place_of(path)
    plain = path.removeprefix("file:").removeprefix("dbfs:")
    return Path("/" + plain.lstrip("/")) if plain.startswith("//") else Path(plain)


def _stored(place: ObjectPath) -> list[FileInfo]:
    """As ``ls``, on a store: one listing for a folder."""
    files, folders = place.listed(), place.children()[1]
    if not files and not folders:
        state = place.stat()  # an object, or nothing
        return [FileInfo(str(place), place.name, state.st_size, state.st_mtime_ns // 1_000_000)]
    there = [FileInfo(f"{place / name}/", f"{name}/", 0) for name in folders]
    there += [FileInfo(str(place / n), n, file.size, int(file.modified * 1000)) for n, file in files.items()]
    return sorted(there, key=lambda info: info.name)


def _info(path: Path) -> FileInfo | None:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None  # removed or renamed since the folder was listed, or a link to nothing
    changed = state.st_mtime_ns // 1_000_000
    if S_ISDIR(state.st_mode):
        return FileInfo(f"{path}/", f"{path.name}/", 0, changed)
    return FileInfo(str(path), path.name, state.st_size, changed)


class Widgets(_OnlyNamed):
    """``dbutils.widgets``: values are the pipeline's configuration."""

    _call = "dbutils.widgets"

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self._values = dict(configuration)

    def text(self, name: str, defaultValue: str, label: str = "") -> None:  # noqa: ARG002, N803 - the platform's signature
        """Declare a value with its default."""
        self._values.setdefault(name, defaultValue)

    def dropdown(self, name: str, defaultValue: str, choices: Any, label: str = "") -> None:  # noqa: ARG002, N803
        """Declare a value with its default; what the choices are does not matter here."""
        self._values.setdefault(name, defaultValue)

    combobox = multiselect = dropdown

    def get(self, name: str) -> str:
        """A value; raises UsageError where neither the configuration nor a default gives one."""
        if name not in self._values:
            raise UsageError(
                f"The widget {name!r} has no value.",
                remedy=f"Put `{name}: ...` under `configuration` in pipeline.yml, or pass --param {name}=...",
            )
        return self._values[name]

    def getAll(self) -> dict[str, str]:  # noqa: N802 - the platform's spelling
        """All values."""
        return dict(self._values)

    def removeAll(self) -> None:  # noqa: N802 - the platform's spelling
        """Do nothing: values are the configuration's."""


class Library(_OnlyNamed):
    """``dbutils.library``."""

    _call = "dbutils.library"

    def restartPython(self) -> None:  # noqa: N802 - the platform's spelling
        """Do nothing: packages are those of the environment that runs the update."""


class DbUtils(_OnlyNamed):
    """The parts of ``dbutils`` that a pipeline's sources use."""

    _call = "dbutils"

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self.secrets = Secrets()
        self.fs = FileSystem()
        self.widgets = Widgets(configuration)
        self.library = Library()


def runtime_names(spark: Any, configuration: Mapping[str, str]) -> dict[str, Any]:
    """The predefined globals of the closed platform's notebooks."""
    return {
        "spark": spark,
        "sc": spark.sparkContext if spark is not None else None,
        "dbutils": DbUtils(configuration),
        "display": display,
        "displayHTML": display,
    }


def display(*_values: Any, **_options: Any) -> None:
    """Do nothing: there is no notebook to show it in, and showing a stream would start it."""
