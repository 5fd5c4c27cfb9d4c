"""Blocks under ``if __name__ == "__main__":`` at the top of a source.

What a notebook does for itself (a look at its tables, a test) is passed over. A block that declares datasets is run: the closed
platform runs sources as ``__main__``, and without it tables would be missing in silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FACES = ("dlt", "pipelines")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def run_declaring_blocks(tree: ast.Module) -> ast.Module:
    """Have the blocks run that declare something; the others stay as they are."""
    blocks = [node for node in tree.body if isinstance(node, ast.If) and _asks_for_main(node.test)]
    if not blocks:
        return tree
    declaring = _declaring_names(tree)
    for block in blocks:
        if any(_mentions(node, declaring) for node in block.body):
            block.test = ast.copy_location(ast.Constant(value=True), block.test)
    return tree


def _asks_for_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    named = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return named and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def _declaring_names(tree: ast.Module) -> set[str]:
    """The face under its names here, and the functions and classes that come to it when they are called."""
    names = set(_face_names(tree))
    definitions = [node for node in ast.walk(tree) if isinstance(node, _Definition)]
    growing = True
    while growing:
        # The decorators of a definition run where it stands, not where it is called.
        new = {
            one.name
            for one in definitions
            if one.name not in names and any(_mentions(node, names) for node in one.body)
        }
        names |= new
        growing = bool(new)
    return names


def _face_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.rpartition(".")[2] in _FACES:
                    yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            inside = (node.module or "").rpartition(".")[2] in _FACES
            yield from (alias.asname or alias.name for alias in node.names if inside or alias.name in _FACES)


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node))
