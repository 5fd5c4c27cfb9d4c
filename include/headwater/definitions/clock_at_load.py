"""Which variables of a source got their value from the clock, or from chance, when it was loaded: ``TODAY = date.today()``.

A dataset's function that reads one has a plain value, and its own code does not say where that came from.

Decision 0219.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, MutableMapping
from importlib.util import resolve_name
from typing import Any

# Names under which Python gives the time, or chance.
CLOCK_NAMES = frozenset(
    {"today", "now", "utcnow", "time", "time_ns", "localtime", "gmtime", "random", "randint", "choice", "uuid1", "uuid4", "urandom"}
)  # fmt: skip
# Among those of a module: its top calls something with a value from the clock, and functions made there may have it.
GIVEN_TO_CALLS = "()"
# Under this name a module keeps those of its variables.
_KEPT = "__headwater_from_the_clock__"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def note_clocked(module: MutableMapping[str, Any], text: str) -> None:
    """Keep in a module which of its variables the clock decides about. It was run: what it imports is there."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # whoever runs it says so
        return
    names = set(clocked(module))
    for statement in tree.body:
        _collect(statement, module, names)
    module[_KEPT] = frozenset(names)


def clocked(module: MutableMapping[str, Any]) -> frozenset[str]:
    """The variables of a module that the clock decides about; none of a module that is no pipeline's."""
    return frozenset(module.get(_KEPT, ()))


def _collect(statement: ast.stmt, module: MutableMapping[str, Any], names: set[str]) -> None:
    if isinstance(statement, ast.ImportFrom):
        names |= _imported(statement, module)
    elif isinstance(statement, _DEFINITIONS):
        if _asks([statement], module, names):
            names.add(statement.name)
    elif not (bodies := list(_bodies(statement))):
        if _asks([statement], module, names):
            names |= _assigned(statement)
            if isinstance(statement, ast.Expr):
                names.add(GIVEN_TO_CALLS)
    else:
        if _asks(_heads(statement), module, names):
            # It decides which of the statements inside are run.
            names |= _assigned(statement)
        for inner in bodies:
            _collect(inner, module, names)


def _imported(statement: ast.ImportFrom, module: MutableMapping[str, Any]) -> set[str]:
    name = "." * statement.level + (statement.module or "")
    try:
        name = resolve_name(name, module.get("__package__"))
    except ImportError:
        return set()
    there = clocked(vars(sys.modules[name])) if name in sys.modules else frozenset()
    return {alias.asname or alias.name for alias in statement.names if alias.name in there}


def _bodies(statement: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _heads(statement: ast.stmt) -> list[ast.AST]:
    return [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr | ast.withitem)]


def _asks(nodes: Iterable[ast.AST], module: MutableMapping[str, Any], names: set[str]) -> bool:
    """Whether something names the clock, or a variable that got its value from it."""
    for part in (part for node in nodes for part in ast.walk(node)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            if part.id in CLOCK_NAMES or part.id in names:
                return True
        elif isinstance(part, ast.Attribute):
            owner = module.get(part.value.id) if isinstance(part.value, ast.Name) else None
            there = clocked(vars(owner)) if isinstance(owner, type(sys)) else frozenset()
            if part.attr in CLOCK_NAMES or part.attr in there:
                return True
    return False


def _assigned(statement: ast.stmt) -> set[str]:
    """The variables that a statement gives a value, or a part of one: ``CONF["day"] = ...``."""
    names = set()
    for part in ast.walk(statement):
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            base: ast.expr = part
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                names.add(base.id)
    return names
