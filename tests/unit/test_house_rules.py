"""What a reader may count on in every file of the three packages: short files and functions, names that say what a thing is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE_LINES, FUNCTION_LINES = 400, 50
# They say how a value came about, and not what it is: findings, match, declared, rows, requested.
VAGUE = {"told", "found", "held", "anew", "asked"}
ALLOWED = {
    (
        "include/headwater/quarantine/columns.py",
        "HELD",
    ): "a value of the column _status, stored in quarantines",
    (
        "jobs/headwater_spark/replays/replay.py",
        "held",
    ): "a key of the report that `quarantine replay --json` prints",
}
LONG = {
    (
        "jobs/headwater_spark/facade/kept_values.py",
        "with_kept_values",
    ): "Workers get it pickled, and nothing else of its module is there",
}


def sources() -> Iterator[tuple[str, str]]:
    """Every file of the packages, with its text."""
    for root in ("include", "jobs", "plugins"):
        for path in sorted((ROOT / root).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each name that the code gives to something, with its line: variable, field, parameter, function, class, import."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def vague_names(tree: ast.AST) -> list[tuple[str, int]]:
    """The names that say nothing of their values."""
    return [(name, line) for name, line in bound_names(tree) if name.strip("_").lower() in VAGUE]


def long_functions(tree: ast.AST, limit: int) -> list[tuple[str, int]]:
    """The functions with more lines than ``limit`` without their docstring, each with its number of lines."""
    functions = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first, lines = node.body[0], (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (first.end_lineno or 0) - first.lineno + 1
            functions += [(node.name, lines)] * (lines > limit)
    return functions


@cache
def in_all_sources() -> tuple[set[tuple[str, str, int]], set[tuple[str, str]]]:
    """Path, name and line of all that is vague, path and name of each function that is too long; read once."""
    vague, too_long = set(), set()
    for path, text in sources():
        tree = ast.parse(text)
        vague |= {(path, name, line) for name, line in vague_names(tree)}
        too_long |= {(path, name) for name, _ in long_functions(tree, FUNCTION_LINES)}
    return vague, too_long


def test_names_say_what_a_thing_is():
    """A new one is renamed to what it is, or argued in the table."""
    assert sorted(entry for entry in in_all_sources()[0] if entry[:2] not in ALLOWED) == []


def test_the_table_is_not_older_than_the_code():
    """An entry whose name is no longer there goes, too."""
    names = {(path, name) for path, name, _ in in_all_sources()[0]}
    assert sorted(ALLOWED.keys() - names) == []


def test_no_file_is_too_long():
    """A longer one is two thoughts in one file."""
    lengths = {path: text.count("\n") for path, text in sources()}
    assert len(lengths) > 400
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_too_long():
    """A longer one does several things; parameters count, the docstring does not."""
    assert in_all_sources()[1] == LONG.keys()


def test_what_counts():
    """Every way to bind a name, with underscores and in capitals; attributes that are read and keyword arguments are not ours."""
    for text in (
        "told = 1", "a, (told, b) = c", "[0 for told in a]", "def told(): pass", "class Told: pass", "def f(*, told): pass",
        "lambda told: 0", "self._told = 1", "_TOLD: int = 1", "import a as told", "with a as told: pass", "(told := 1)",
        "try: pass\nexcept A as told: pass", "match a:\n    case [*told]: pass", "match a:\n    case told: pass",
        "async def f():\n    async for told in a: pass",
    ):  # fmt: skip
        assert len(vague_names(ast.parse(text))) == 1, text
    for text in ("print(told)", "a = b.told", "f(told=1)", "is_told = 1", "holds_rows = 1", "'told'"):
        assert vague_names(ast.parse(text)) == [], text
    long = ast.parse('def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    b\n')
    assert long_functions(long, 3) == [("f", 4)]
    assert long_functions(ast.parse("def f():\n    b\n\n\ndef g():\n    b\n    c\n"), 2) == [("g", 3)]
