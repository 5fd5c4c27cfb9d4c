"""The packaged list of the classes that are worth sharing: those that small updates load.

Decision 0158.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

CLASS_LIST = Path(__file__).with_name("classes.list.gz")
_OF_ONE_RUN = re.compile(r" (id|super|interfaces): [\d ]+$")
_UNSHARED = re.compile(r"^#|^@cp |source:|Proxy\d+\b|^(jdk|com/sun)/proxy|\$\$Lambda|0x[0-9a-f]{8}")


def packaged_list() -> bytes:
    """Return the list, as Java reads it."""
    return gzip.decompress(CLASS_LIST.read_bytes())


def write_list(recorded: Iterable[Path]) -> None:
    """Write the list from those that JVMs wrote."""
    text = merged_list(file.read_text(encoding="utf-8") for file in recorded)
    CLASS_LIST.write_bytes(gzip.compress(text.encode(), mtime=0))


def merged_list(texts: Iterable[str]) -> str:
    """One list of classes from several that JVMs wrote, without what each run generates."""
    lines = dict.fromkeys(_OF_ONE_RUN.sub("", line) for text in texts for line in text.split("\n"))
    kept = [line for line in lines if line and not _UNSHARED.search(line)]
    # A class stands before what refers to it.
    return "".join(f"{line}\n" for line in sorted(kept, key=lambda line: line.startswith("@")))
