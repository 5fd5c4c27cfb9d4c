"""What a Python function does, as a digest: its bytecode and the values that it uses, not where it stands in its file."""

from __future__ import annotations

import dis
import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType

from headwater_spark.views.installed_code import is_importable, is_installed, is_installed_code, version_of

_VALUES = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))
_DEPTH = 20
# With these a function sees what its variables are called.
_BY_NAME = {"locals", "vars", "dir", "eval", "exec"}


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
    # A class that inherits from one of these may do more than it has.
    kind = type(value)
    if kind in _VALUES:
        yield f"{kind.__name__} {value!r}"
    elif isinstance(value, FunctionType | ModuleType):
        if id(value) in seen:
            yield "again"
            return
        seen.add(id(value))
        yield from (
            _function_parts(value, below) if isinstance(value, FunctionType) else _module_parts(value, below)
        )
    elif isinstance(value, CodeType):
        yield from _code_parts(value, below)
    elif isinstance(value, BuiltinFunctionType):
        yield from _builtin_parts(value, below)
    elif isinstance(value, tuple | list) and kind in (tuple, list):
        # How many there are says which of those that follow it has, and which what is around it.
        yield f"{kind.__name__} {len(value)}"
        for one in value:
            yield from below(one)
    elif isinstance(value, frozenset | set) and kind in (frozenset, set):
        yield f"{kind.__name__} {len(value)}"
        yield from sorted("\n".join(below(one)) for one in value)
    elif isinstance(value, dict) and kind is dict:
        yield f"dict {len(value)}"
        for key, one in value.items():
            yield from below(key)
            yield from below(one)
    elif isinstance(value, partial) and kind is partial:
        yield "partial"
        yield from below((value.func, value.args, value.keywords))
    elif isinstance(value, type) and is_installed(value.__module__):
        yield f"class {value.__module__}.{value.__qualname__} {version_of(value.__module__)}"
    else:
        raise NotDigestible(f"it uses a value of type {kind.__name__}")


def _function_parts(function: FunctionType, below: Callable[[object], Iterator[str]]) -> Iterator[str]:
    named = f"function {function.__module__}.{function.__qualname__} {version_of(function.__module__)}"
    if is_importable(function):
        yield named
        return
    if is_installed_code(function):  # what a library made of values that it was called with
        yield named
    else:
        yield from below(function.__code__)
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield name
                yield from below(function.__globals__[name])
    yield from below((function.__defaults__, dict(function.__kwdefaults__ or {})))
    if function.__dict__:
        yield from below(function.__dict__)
    for cell in function.__closure__ or ():
        yield from _cell_parts(cell, below)


def _builtin_parts(function: BuiltinFunctionType, below: Callable[[object], Iterator[str]]) -> Iterator[str]:
    yield f"builtin {function.__module__}.{function.__qualname__}"
    # The method of a value, as ``NAMES.get``; that of a module is what it is called.
    if function.__self__ is not None and not isinstance(function.__self__, ModuleType):
        yield from below(function.__self__)


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
    yield from below((code.co_names, _variables(code), code.co_freevars))
    docstring = bool(code.co_consts) and isinstance(code.co_consts[0], str)
    # What is imported when the function runs is not among the values of its module.
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME" and not is_installed(one.argval):
            raise NotDigestible(f"it imports the module {one.argval}")
        docstring = docstring and not (one.opcode in dis.hasconst and one.arg == 0)
    # The first constant of a function may be its docstring, which does nothing.
    constants = (None, *code.co_consts[1:]) if docstring else code.co_consts
    yield f"constants {len(constants)}"
    for constant in constants:
        yield from below(constant)


def _variables(code: CodeType) -> tuple[object, ...]:
    """What a function calls its variables, as far as that matters: arguments may be named by who calls it."""
    if _BY_NAME.intersection(code.co_names):
        return code.co_varnames
    arguments = code.co_argcount + code.co_kwonlyargcount
    return (*code.co_varnames[:arguments], code.co_nlocals)


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _module_parts(module: ModuleType, below: Callable[[object], Iterator[str]]) -> Iterator[str]:
    """A library by its name; a module of the pipeline, which workers get as it is, by what it has."""
    yield f"module {module.__name__}"
    if sys.modules.get(module.__name__) is module and is_installed(module.__name__):
        yield version_of(module.__name__)
        return
    if sys.modules.get(module.__name__) is module:
        raise NotDigestible(f"it uses the module {module.__name__}")
    values = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    yield from below(dict(sorted(values.items())))
