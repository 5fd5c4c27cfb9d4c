"""Modules of a pipeline as workers get them: with all that can leave the driver, and without the rest.

Workers can't import these modules, so cloudpickle ships one whole where a Python function uses it (``import rates``, then
``rates.VAT``). The session that each of them finds, frames, and what is made with those stay on the driver.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

# Of the import system.
_OF_THE_DRIVER = ("__builtins__", "__loader__", "__spec__", "__cached__")
# Inside of a look at what a module has: others that it uses are looked at by themselves.
_looking = ContextVar("looking", default=False)


class PipelineModule(ModuleType):
    """A module that is pickled by what it has, as far as that can be pickled and is not what the loader put there."""

    def __reduce__(self) -> tuple[Any, ...]:
        made = (ModuleType, (self.__name__,))
        if _looking.get():
            return made
        token = _looking.set(True)
        try:
            return (
                *made,
                {name: value for name, value in vars(self).items() if self._is_shipped(name, value)},
            )
        finally:
            _looking.reset(token)

    def _is_shipped(self, name: str, value: Any) -> bool:
        injected = getattr(getattr(self.__spec__, "loader", None), "names", {})
        if name in _OF_THE_DRIVER or (name in injected and injected[name] is value):
            return False
        try:
            cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
        except Exception:  # whatever an object of the user's or of Spark's raises
            return False
        return True


class FolderLoader(Loader):
    """Loads a folder without ``__init__.py``, in which there is nothing to run."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module that workers get with what was imported below it."""
        return PipelineModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing."""
