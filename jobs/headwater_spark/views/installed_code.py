"""What comes with Python or was installed: it changes with its version, not by an edit of the pipeline."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import FunctionType

_LIBRARIES = ("purelib", "platlib")
_PYTHON = ("stdlib", "platstdlib")


def is_installed(name: str | None) -> bool:
    """Whether a module comes with Python or was installed. A pipeline's may have the name of one of Python's."""
    top = str(name).partition(".")[0]
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    if file is not None:
        return top != "__main__" and _lies_in(file, (*_LIBRARIES, *_PYTHON))
    if _is_pythons(top):
        return top != "__main__"
    return (
        module is None and PathFinder.find_spec(top, [str(path) for path in _folders(_LIBRARIES)]) is not None
    )


def is_importable(function: FunctionType) -> bool:
    """Whether a function is the one that has its name in an installed module, and no other that was named after it."""
    here: object = sys.modules.get(str(function.__module__))
    for part in function.__qualname__.split("."):
        here = getattr(here, part, None)
    return here is function and is_installed(function.__module__)


def is_installed_code(function: FunctionType) -> bool:
    """Whether the text of a function stands in an installed module, whatever it is called."""
    file = function.__code__.co_filename
    if file.startswith("<"):  # made from no file
        return is_installed(function.__globals__.get("__name__"))
    return _lies_in(file, (*_LIBRARIES, *_PYTHON))


@cache
def version_of(name: str) -> str:
    """The version of the library that a module is of; empty for Python's own and where it has none."""
    top = str(name).partition(".")[0]
    if _is_pythons(top):
        return ""
    own = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(own, str):
        return own
    try:
        return " ".join(version(library) for library in sorted(set(packages_distributions().get(top, ()))))
    except PackageNotFoundError:
        return ""


def _is_pythons(top: str) -> bool:
    return top in sys.stdlib_module_names or top in sys.builtin_module_names


def _lies_in(file: str, kinds: tuple[str, ...]) -> bool:
    path = Path(file).resolve()
    return any(path.is_relative_to(folder) for folder in _folders(kinds))


@cache
def _folders(kinds: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_path(kind)).resolve() for kind in kinds)
