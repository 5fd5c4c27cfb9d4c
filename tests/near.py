"""The unit tests near a change: ``python -m tests.near [COMMIT]`` prints their files, one a line. `make test-near` runs them.

Near a module are the tests that import it, and those that mirror a module that imports it. What lies further away, `make test-unit`
has.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import grimp

ROOTS = ("include", "jobs", "plugins")
TESTS = Path("tests/unit")


def near_tests(changed: Iterable[str], graph: grimp.ImportGraph, folder: Path = Path()) -> list[str]:
    """The files of unit tests near files that have changed.

    Args:
        changed: files, as paths below the folder; those of no module and no test have none near them.
        graph: which module imports which.
        folder: the checkout.
    """
    paths = [Path(file) for file in changed]
    modules = {name for path in paths if (name := _module(path)) is not None}
    known = modules & graph.modules
    importers = {name for module in known for name in graph.find_modules_that_directly_import(module)}
    mirrored = {_mirror(module) for module in modules | importers}
    return sorted(
        str(test)
        for path in (folder / TESTS).rglob("test_*.py")
        if (test := path.relative_to(folder)) in {*paths, *mirrored} or _imports(path) & modules
    )


def _module(path: Path) -> str | None:
    """The name of a module by its file, None of another file."""
    is_test = path.is_relative_to(TESTS) and path.name.startswith("test_")
    if path.suffix != ".py" or path.parts[0] not in (*ROOTS, "tests") or is_test:
        return None
    parts = path.with_suffix("").parts[0 if path.parts[0] == "tests" else 1 :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _mirror(module: str) -> Path:
    *packages, name = module.split(".")
    return TESTS.joinpath(*packages, f"test_{name}.py")


def _imports(test: Path) -> set[str]:
    """The modules that a test may import; a name in one looks like a module, which does no harm."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def changed_files(since: str) -> list[str]:
    """The files that differ from a commit, or that git does not know yet."""

    def lines_of(*arguments: str) -> list[str]:
        return subprocess.run(
            ["git", *arguments], check=True, capture_output=True, text=True
        ).stdout.splitlines()

    return [
        *lines_of("diff", "--name-only", "--relative", since, "--"),
        *lines_of("ls-files", "--others", "--exclude-standard"),
    ]


if __name__ == "__main__":
    packages = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    tests = near_tests(changed_files(*sys.argv[1:2] or ["HEAD"]), grimp.build_graph(*packages))
    print("\n".join(tests), end="\n" if tests else "")
