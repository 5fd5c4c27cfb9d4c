"""The text of a definition: its lines, the method calls in it, and the comments that silence findings."""

from __future__ import annotations

import ast
import io
import linecache
import re
import tokenize
from collections.abc import Collection
from dataclasses import dataclass, field

from headwater.definitions.source_location import SourceLocation
from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.source import SqlSource
from headwater.sql_sources.splitting import statements_in

_IGNORE_IN_SQL = re.compile(r"--\s*headwater:\s*ignore\b(?:\[([^\]]*)\])?", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*headwater:\s*ignore\b(?:\[([^\]]*)\])?", re.IGNORECASE)


@dataclass(frozen=True)
class IgnoreComment:
    """A comment ``# headwater: ignore[HW101, HW103] why``. ``codes`` is None where it names none."""

    where: SourceLocation
    codes: tuple[str, ...] | None


@dataclass
class SourceFile:
    """A source by its label: its syntax tree, if it can be parsed, and its comments that silence findings.

    ``statements``: of a SQL source, the lines of each statement.
    """

    label: str
    tree: ast.Module = field(init=False)
    comments: list[IgnoreComment] = field(init=False)
    statements: list[range] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        # The loader puts the text of sources there, of a notebook's cells too.
        text = "".join(linecache.getlines(self.label))
        try:
            self.tree = ast.parse(text)
        except SyntaxError:
            self.tree = ast.Module([], [])
            self.statements = _statement_lines(self.label, text)
        self.comments = _comments_of_sql(self.label, text) if self.statements else _comments(self.label, text)

    def span(self, line: int) -> range:
        """The lines of the definition that begins at ``line``, with its decorators and the line above them."""
        for lines in self.statements:
            if line in lines:
                return range(lines.start - 1, lines.stop)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and _first_line(node) <= line <= (node.end_lineno or line):
                return range(_first_line(node) - 1, (node.end_lineno or line) + 1)
        for statement in self.tree.body:
            if statement.lineno <= line <= (statement.end_lineno or line):
                return range(statement.lineno - 1, (statement.end_lineno or line) + 1)
        return range(line - 1, line + 1)

    def calls(self, line: int, names: Collection[str]) -> list[int]:
        """The lines inside the function that begins at ``line`` where one of these methods is called."""
        span = self.span(line)
        lines = [call.func.end_lineno or call.lineno for call in self._calls_of(names)]
        return [line for line in lines if line in span]

    def settings(self, key: str) -> list[int]:
        """The lines where ``spark.conf.set`` sets ``key``."""
        calls = [call for call in self._calls_of(("set",)) if call.args]
        return [c.lineno for c in calls if isinstance(c.args[0], ast.Constant) and c.args[0].value == key]

    def fixed_options(self, line: int, key: str) -> list[int]:
        """The lines inside the function that begins at ``line`` where a writer's option ``key`` is a text that never changes."""
        calls = self._calls_of(("option", "options"))
        values = [value for call in calls for name, value in _options(call) if name.lower() == key.lower()]
        lines = [value.lineno for value in values if self._is_fixed(value)]
        return sorted({fixed for fixed in lines if fixed in self.span(line)})

    def _is_fixed(self, value: ast.expr) -> bool:
        if not isinstance(value, ast.Name):
            return isinstance(value, ast.Constant)
        given = [
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
        ]
        return bool(given) and all(isinstance(one, ast.Constant) for one in given)

    def _calls_of(self, names: Collection[str]) -> list[ast.Call]:
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in names]


def _options(call: ast.Call) -> list[tuple[str, ast.expr]]:
    """The options that a call names as texts, with the expressions of their values."""
    named = [(word.arg, word.value) for word in call.keywords if word.arg is not None]
    match call.args:
        case [ast.Constant(value=str(key)), value]:
            return [(key, value), *named]
    return named


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _comments(label: str, text: str) -> list[IgnoreComment]:
    comments = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                comments.append(IgnoreComment(SourceLocation(label, token.start[0]), _codes(match[1])))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return comments
    return comments


def _codes(text: str | None) -> tuple[str, ...] | None:
    return tuple(code.strip().upper() for code in (text or "").split(",") if code.strip()) or None


def _statement_lines(label: str, text: str) -> list[range]:
    source = SqlSource(label, text)
    try:
        statements = list(statements_in(source))
    except SqlNotUnderstood:
        return []
    return [range(source.place(s.start).line, source.place(s.stop).line + 1) for s in statements]


def _comments_of_sql(label: str, text: str) -> list[IgnoreComment]:
    matches = ((number, _IGNORE_IN_SQL.search(line)) for number, line in enumerate(text.split("\n"), start=1))
    return [
        IgnoreComment(SourceLocation(label, n), _codes(match[1])) for n, match in matches if match is not None
    ]
