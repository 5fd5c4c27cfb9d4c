"""One public module under all of its import names.

``from pyspark import pipelines as dp``, ``import dlt`` and ``from headwater import pipelines as dp`` all mean
Headwater's public module: the import statements of a source are rewritten before it is compiled. Line numbers stay, and
nothing outside the source is changed. What only the closed platform has (``databricks.sdk.runtime``,
``pyspark.dbutils``) is bound to the names that the loader injects.

Decision 0002.
"""

from __future__ import annotations

import ast

FACE = "headwater.pipelines"
_ALIASES = ("dlt", "pyspark.pipelines", "databricks.pipelines")
# ``import pyspark.pipelines`` without ``as`` binds ``pyspark``; uses of its attribute go to this name.
_BOUND_FACE = "__headwater_pipelines__"
# A dict in the source's globals: what the platform's own modules offer, by name.
RUNTIME_NAMES = "__headwater_runtime__"
# Names that `from pyspark.sql.functions import *` brought for years, and Spark 4.2 no longer exports.
_FUNCTIONS = "pyspark.sql.functions"
_UNEXPORTED = (
    "approxCountDistinct", "bitwiseNOT", "countDistinct", "shiftLeft", "shiftRight", "shiftRightUnsigned", "sumDistinct",
    "toDegrees", "toRadians",
)  # fmt: skip
_PLATFORM = ("databricks.sdk.runtime", "pyspark.dbutils")


def rewrite_imports(tree: ast.Module) -> ast.Module:
    """Return ``tree`` with every import of the public module under another name rewritten to its own."""
    rewriter = _Rewriter()
    tree = rewriter.visit(tree)
    return ast.fix_missing_locations(tree)


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self._attribute_of_pyspark = False

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        others = [name for name in node.names if name.name not in _ALIASES]
        statements: list[ast.stmt] = [ast.copy_location(ast.Import([name]), node) for name in others]
        for name in node.names:
            if name.name not in _ALIASES:
                continue
            if name.asname or "." not in name.name:
                statements.append(_face(node, name.asname or name.name))
            else:
                root = name.name.split(".")[0]
                self._attribute_of_pyspark = True
                statements.append(_face(node, _BOUND_FACE))
                if root == "pyspark":
                    statements.append(ast.copy_location(ast.Import([ast.alias("pyspark")]), node))
        return statements

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        if node.level == 0 and node.module in _PLATFORM:
            return [_from_platform(node, name) for name in node.names]
        if node.module == _FUNCTIONS and node.names[0].name == "*":
            more = ast.ImportFrom(_FUNCTIONS, [ast.alias(name) for name in _UNEXPORTED], 0)
            return [node, ast.copy_location(more, node)]
        if node.level == 0 and node.module in _ALIASES:
            return ast.copy_location(ast.ImportFrom(FACE, node.names, 0), node)
        if node.level == 0 and node.module in ("pyspark", "databricks"):
            faces = [name for name in node.names if name.name == "pipelines"]
            others = [name for name in node.names if name.name != "pipelines"]
            statements: list[ast.stmt] = [_face(node, name.asname or "pipelines") for name in faces]
            if others:
                statements.append(ast.copy_location(ast.ImportFrom(node.module, others, 0), node))
            return statements
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if (
            self._attribute_of_pyspark
            and node.attr == "pipelines"
            and isinstance(node.value, ast.Name)
            and node.value.id in ("pyspark", "databricks")
        ):
            return ast.copy_location(ast.Name(_BOUND_FACE, node.ctx), node)
        return node


def _face(node: ast.stmt, name: str) -> ast.stmt:
    package, _, module = FACE.rpartition(".")
    return ast.copy_location(ast.ImportFrom(package, [ast.alias(module, name)], 0), node)


def _from_platform(node: ast.ImportFrom, name: ast.alias) -> ast.stmt:
    if name.name == "*":  # the names are there already
        return ast.copy_location(ast.Pass(), node)
    value = ast.Subscript(ast.Name(RUNTIME_NAMES, ast.Load()), ast.Constant(name.name), ast.Load())
    target = ast.Name(name.asname or name.name, ast.Store())
    return ast.copy_location(ast.Assign([target], value), node)
