"""JSON lines are cut in one place: nothing else in the product cuts text that a machine wrote at what Python takes for lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Where text is cut that is for people, or that people wrote; each with what it is.
FOR_PEOPLE = {
    "include/headwater_demo/processes.py": "the last lines of a service's log, shown",
    "include/headwater_demo/task_log.py": "the last lines of a task's log, shown",
    "include/headwater/maintenance/maintain.py": "the first line of an error, shown",
    "include/headwater/runtime/ivy.py": "what Ivy printed, shown",
    "jobs/headwater_spark/commands/query.py": "the first line of a statement, shown",
    "jobs/headwater_spark/facade/sql_text.py": "the first line of a statement, shown",
    "jobs/headwater_spark/linting/definition_text.py": "source text, for Python's own tokenizer",
    "jobs/headwater_spark/loader/compilation.py": "source text for tracebacks, as Python's own cache has it",
    "jobs/headwater_spark/messages/source_errors.py": "the first line of an error, shown",
    "jobs/headwater_spark/loader/source_text.py": "source text",
    "plugins/headwater_airflow/conditions/lag_reading.py": "a table that is printed",
}
# Where bytes are cut at line feeds alone, and no file is read; each with what they are.
OF_A_CONNECTION = {"jobs/headwater_spark/java_references.py": "Py4J's answers, one line each"}
# The one place that goes through a file line by line, in binary.
CUTTER = "include/headwater/files/json_lines.py"


def offences(source: str) -> Iterator[str]:
    """Calls that cut lines as Python does, and loops over files that were opened."""
    tree = ast.parse(source)
    opened = {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name) and _opens(item.context_expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("splitlines", "readlines", "readline"):
            yield f"line {node.lineno}: {node.attr}"
        walked = (
            [node.iter] if isinstance(node, ast.For | ast.comprehension) else
            [node.value] if isinstance(node, ast.YieldFrom) else
            node.args if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "iter", "map", "enumerate") else
            []
        )  # fmt: skip
        for walk in walked:
            if _opens(walk) or (isinstance(walk, ast.Name) and walk.id in opened):
                yield f"line {walk.lineno}: a loop over the lines of a file"


def _opens(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("open", "fdopen", "TextIOWrapper", "StringIO")


def test_lines_are_cut_in_one_place():
    """No reader of a log, a checkpoint or a report cuts lines by itself; the exceptions are there, and needed."""
    cuts = {
        str(file.relative_to(ROOT)): list(offences(file.read_text(encoding="utf-8")))
        for floor in ("include", "jobs", "plugins")
        for file in sorted((ROOT / floor).rglob("*.py"))
    }
    guilty = {
        name: said
        for name, said in cuts.items()
        if said and name not in {*FOR_PEOPLE, *OF_A_CONNECTION, CUTTER}
    }
    assert guilty == {}
    assert all(cuts[name] for name in (*FOR_PEOPLE, *OF_A_CONNECTION)), "an exception that nothing needs"


def test_the_guard_sees_what_it_forbids():
    """Each way of cutting lines as Python does is noticed, cutting at line feeds is not."""
    forbidden = (
        "text.splitlines()",
        "stream.readlines()",
        "iter(stream.readline, '')",
        "with file.open() as lines:\n    for line in lines: pass",
        "with open('x') as lines:\n    found = [line for line in lines]",
        "with open('x') as lines:\n    found = list(lines)",
        "for line in Path('x').open(): pass",
    )
    assert all(list(offences(source)) for source in forbidden)
    assert not list(offences("for line in text.split('\\n'): pass"))
