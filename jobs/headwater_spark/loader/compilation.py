from __future__ import annotations

import ast
import linecache
from types import CodeType

from headwater.errors import SourceFileFailed
from headwater_spark.loader.import_rewriting import rewrite_imports
from headwater_spark.loader.main_blocks import run_declaring_blocks
from headwater_spark.loader.source_text import SourceText


def show_in_tracebacks(unit: SourceText) -> None:
    """Keep a unit's text where Python and the linter look up the lines of a source, also of a notebook's cell."""
    text = unit.whole or unit.text
    linecache.cache[unit.label] = (len(text), None, text.splitlines(keepends=True), unit.label)


def forget_text(label: str) -> None:
    """Let the lines of a source be looked up in its file again, which has more than the unit that was compiled."""
    linecache.cache.pop(label, None)


def compile_source(unit: SourceText) -> CodeType:
    """Compile a unit with rewritten imports; raises SourceFileFailed with the line of a syntax error."""
    show_in_tracebacks(unit)
    try:
        tree = ast.parse(unit.text, filename=unit.label)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise SourceFileFailed(
            f"{error.msg}: {line}" if line else str(error.msg),
            where=f"{unit.label}:{error.lineno}",
            remedy="Correct the line and run again.",
        ) from None
    return compile(rewrite_imports(run_declaring_blocks(tree)), unit.label, "exec", dont_inherit=True)
