"""``%run``: another notebook's cells in place of the line that names it, in the same namespace."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.errors import SourceFileFailed

_LINE = re.compile(r"\s*%run\s+(?:\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'|(?P<word>\S+))(?P<rest>.*)")
_SUFFIXES = ("", ".ipynb", ".py")


def run_target(line: str, path: Path, root: Path | None, chain: tuple[Path, ...], where: str) -> Path:
    """The file that a ``%run`` line names: relative to the notebook, with or without its ending.

    Args:
        line: the whole line.
        path: the notebook that the line stands in.
        root: the folder that the file has to lie in, if any: what lies elsewhere is not in the hash of the sources.
        chain: the notebooks whose ``%run`` led here, this one included.
        where: the place of the line, for errors.

    Raises:
        SourceFileFailed: there is no such file, it lies elsewhere, it runs itself, or arguments are passed.

    """
    match = _LINE.fullmatch(line.rstrip())
    if match is None:
        raise SourceFileFailed("A %run without a notebook.", where=where, remedy="Name it: %run ./setup")
    name = match["double"] or match["single"] or match["word"]
    if match["rest"].strip() or name.startswith("-"):
        raise SourceFileFailed(
            f"%run is given arguments: {line.strip()}",
            where=where,
            remedy="Put values under `configuration` in pipeline.yml and read them with spark.conf.get; leave options of %run out.",
        )
    candidates = [(path.parent / f"{name}{suffix}").resolve() for suffix in _SUFFIXES]
    target = next((file for file in candidates if file.is_file()), None)
    if target is None:
        raise SourceFileFailed(
            f"%run names {name}, and there is no such file beside {path.name}.",
            where=where,
            remedy="Correct the path; it is relative to the notebook.",
        )
    if root is not None and not target.is_relative_to(root.resolve()):
        raise SourceFileFailed(
            f"%run names {target}, which is not in the pipeline's folder.",
            where=where,
            remedy="Keep it below the folder of pipeline.yml, outside of `libraries` unless it declares nothing.",
        )
    if target in chain:
        raise SourceFileFailed(f"%run {name} runs a notebook that is being run already.", where=where)
    return target
