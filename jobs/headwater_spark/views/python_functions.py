"""What a Python function does, as a digest: its bytecode and the values that it uses, not where it stands in its file."""

from __future__ import annotations

import dis
import hashlib
import pickle
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

_VALUES = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))
_DEPTH = 20


class NotDigestible(Exception):
    """A function uses something whose content can't be told."""


def pickled_digest(pickled: bytes) -> str:
    """The digest of a function as Spark pickles it.

    Raises:
        NotDigestible: what it does can't be told from it.
    """
    try:
        loaded = pickle.loads(pickled)  # noqa: S301 - this process pickled it itself
    except Exception as error:  # whatever a pickle raises, its function is not known
        raise NotDigestible(str(error)) from error
    function = loaded[0] if isinstance(loaded, tuple) else loaded
    return function_digest(function)


def function_digest(function: object) -> str:
    """The digest of a function, and of all that it refers to."""
    digest = hashlib.sha256()
    for part in _parts(function, set(), 0):
        digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def _parts(value: object, seen: set[int], depth: int) -> Iterator[str]:  # noqa: C901, PLR0912 - one line a kind of value
    if depth > _DEPTH:
        raise NotDigestible("it goes too deep")
    below = partial(_parts, seen=seen, depth=depth + 1)
    if isinstance(value, _VALUES):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, FunctionType):
        if id(value) in seen:
            yield "again"
            return
        seen.add(id(value))
        yield from _function_parts(value, below)
    elif isinstance(value, CodeType):
        yield from _code_parts(value, below)
    elif isinstance(value, ModuleType):
        yield _module_name(value)
    elif isinstance(value, BuiltinFunctionType):
        yield f"builtin {value.__module__}.{value.__qualname__}"
    elif isinstance(value, tuple | list):
        yield type(value).__name__
        for one in value:
            yield from below(one)
    elif isinstance(value, frozenset | set):
        yield type(value).__name__
        yield from sorted("\n".join(below(one)) for one in value)
    elif isinstance(value, dict):
        yield "dict"
        for key, one in value.items():
            yield from below(key)
            yield from below(one)
    elif isinstance(value, partial):
        yield "partial"
        yield from below((value.func, value.args, value.keywords))
    elif isinstance(value, type) and _is_installed(value.__module__):
        yield f"class {value.__module__}.{value.__qualname__}"
    else:
        raise NotDigestible(f"it uses a value of type {type(value).__name__}")


def _function_parts(function: FunctionType, below: Callable[[object], Iterator[str]]) -> Iterator[str]:
    if _is_installed(function.__module__):
        yield f"function {function.__module__}.{function.__qualname__}"
        return
    yield from below(function.__code__)
    yield from below((function.__defaults__, dict(function.__kwdefaults__ or {})))
    if function.__dict__:
        yield from below(function.__dict__)
    for cell in function.__closure__ or ():
        yield from _cell_parts(cell, below)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from below(function.__globals__[name])


def _cell_parts(cell: CellType, below: Callable[[object], Iterator[str]]) -> Iterator[str]:
    try:
        content = cell.cell_contents
    except ValueError:  # a variable that was not set before the function was made
        yield "empty"
    else:
        yield from below(content)


def _code_parts(code: CodeType, below: Callable[[object], Iterator[str]]) -> Iterator[str]:
    # The table says which lines a `try` covers, which the code alone does not.
    yield f"code {code.co_argcount} {code.co_flags} {code.co_code.hex()} {code.co_exceptiontable.hex()}"
    yield from below((code.co_names, code.co_varnames, code.co_freevars))
    # What is imported when the function runs is not among the values of its module.
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME" and not _is_installed(one.argval):
            raise NotDigestible(f"it imports the module {one.argval}")
    # The first constant of a function may be its docstring, which does nothing.
    for constant in code.co_consts:
        yield from below(constant)


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _module_name(module: ModuleType) -> str:
    if not _is_installed(module.__name__):
        raise NotDigestible(f"it uses the module {module.__name__}")
    return f"module {module.__name__} {getattr(module, '__version__', '')}"


def _is_installed(name: Any) -> bool:
    """Whether a module comes with Python or was installed: it does not change between two updates by an edit."""
    import sys

    top = str(name).partition(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return top != "__main__"
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    installed = [Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")]
    if module is None:
        return PathFinder.find_spec(top, [str(path) for path in installed]) is not None
    return file is not None and any(Path(file).resolve().is_relative_to(path) for path in installed)
