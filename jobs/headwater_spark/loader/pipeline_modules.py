"""Modules beside the sources: imported with the same rewriting, and shipped to workers by value."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from pyspark import cloudpickle

from headwater.definitions.clock_at_load import note_clocked
from headwater_spark.loader.compilation import compile_source
from headwater_spark.loader.shipped_modules import FolderLoader, PipelineModule
from headwater_spark.loader.source_text import SourceText

# What the modules of sources are called; those that they import have their own names.
SOURCES = "headwater_sources."


class _PipelineLoader(importlib.abc.Loader):
    def __init__(self, path: Path, names: Mapping[str, Any]) -> None:
        self._path = path
        self.names = names

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return PipelineModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.names)
        # Workers can't import it: its functions travel with the query instead.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        unit = SourceText(self._path, str(self._path), self._path.read_text(encoding="utf-8"))
        exec(compile_source(unit), vars(module))  # noqa: S102 - running the user's sources is the loader's work
        note_clocked(vars(module), unit.text)


class PipelineModuleFinder(importlib.abc.MetaPathFinder):
    """Finds modules below the pipeline's folders: for the pipeline's own code before any other of the same name.

    A source that is called ``calendar.py`` must not be what Python's or a library's code gets that imports its ``calendar`` late.
    """

    def __init__(self, folders: Sequence[Path], names: Mapping[str, Any]) -> None:
        self._folders = folders
        self._names = names
        self._path_before = list(sys.path)
        self.loaded: list[str] = []

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> importlib.machinery.ModuleSpec | None:
        """Find ``fullname`` as a file or package of the pipeline."""
        roots = [*self._folders, *self._added_to_path()]
        folders = [Path(entry) for entry in path] if path is not None else roots
        if path is not None and not any(_below(folder, roots) for folder in folders):
            return None
        stem = fullname.rpartition(".")[2]
        for folder in folders:
            package, module = folder / stem / "__init__.py", folder / f"{stem}.py"
            file = package if package.is_file() else module if module.is_file() else None
            if file is None:
                continue
            if path is None and not _asked_by_pipeline() and self._is_elsewhere(fullname):
                return None
            self.loaded.append(fullname)
            locations = [str(file.parent)] if file == package else None
            loader = _PipelineLoader(file, self._names)
            return importlib.util.spec_from_file_location(
                fullname, file, loader=loader, submodule_search_locations=locations
            )
        return None

    def _is_elsewhere(self, name: str) -> bool:
        """Whether Python finds a module of this name without the pipeline."""
        path_finder = importlib.machinery.PathFinder
        for finder in sys.meta_path:
            if isinstance(finder, PipelineModuleFinder | _FolderFinder):
                continue
            places = self._path_before if finder is path_finder else None
            if finder.find_spec(name, places) is not None:
                return True
        return False

    def _added_to_path(self) -> list[Path]:
        # Sources reach their helper modules by extending sys.path; those are the pipeline's as well.
        return [Path(entry).resolve() for entry in sys.path if entry not in self._path_before]

    def forget(self) -> None:
        """Undo what the sources' imports left in the process."""
        sys.path[:] = self._path_before
        for name in self.loaded:
            sys.modules.pop(name, None)


def _asked_by_pipeline() -> bool:
    """Whether the import that is under way stands in code of a pipeline."""
    here = globals()
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - Python has no other way to tell who imports
    while frame is not None and (frame.f_globals is here or _is_importlibs(frame.f_globals)):
        frame = frame.f_back
    return frame is not None and _is_pipelines(frame.f_globals)


def _is_importlibs(names: Mapping[str, Any]) -> bool:
    return str(names.get("__name__")).partition(".")[0] == "importlib"


def _is_pipelines(names: Mapping[str, Any]) -> bool:
    loader = getattr(names.get("__spec__"), "loader", None)
    return isinstance(loader, _PipelineLoader) or str(names.get("__name__")).startswith(SOURCES)


class _FolderFinder(importlib.abc.MetaPathFinder):
    """Folders of modules without ``__init__.py``: searched last, so that a folder never hides an installed package."""

    def __init__(self, folders: Sequence[Path], modules: PipelineModuleFinder) -> None:
        self._folders = folders
        self._modules = modules

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> importlib.machinery.ModuleSpec | None:
        """Find ``fullname`` as a folder that holds modules."""
        folders = [Path(entry) for entry in path] if path is not None else self._folders
        if path is not None and not any(_below(folder, self._folders) for folder in folders):
            return None
        candidates = [folder / fullname.rpartition(".")[2] for folder in folders]
        places = [str(folder) for folder in candidates if folder.is_dir() and any(folder.rglob("*.py"))]
        if not places:
            return None
        self._modules.loaded.append(fullname)
        spec = importlib.machinery.ModuleSpec(fullname, FolderLoader(), is_package=True)
        spec.submodule_search_locations = places
        return spec


def _below(folder: Path, roots: Sequence[Path]) -> bool:
    return any(folder.is_relative_to(root) for root in roots)


@contextmanager
def pipeline_modules(folders: Sequence[Path], names: Mapping[str, Any]) -> Iterator[None]:
    """Let sources import modules of their own pipeline. Modules loaded so are forgotten when the block ends."""
    finder = PipelineModuleFinder(folders, names)
    last = _FolderFinder(folders, finder)
    sys.meta_path.insert(0, finder)
    sys.meta_path.append(last)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.meta_path.remove(last)
        finder.forget()
