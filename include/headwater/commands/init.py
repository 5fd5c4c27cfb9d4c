"""``init``: a small pipeline to start from."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from pydantic import ValidationError

from headwater.contract.printing import print_json
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import UsageError

# Source templates carry this ending, so that nothing takes them for modules.
_ENDING = ".tmpl"


def init(folder: str, name: str | None, *, as_json: bool) -> int:
    """Write a pipeline with sample data into a new or empty folder, and say how to run it."""
    if not folder:
        raise UsageError("No folder is given.", remedy="Give a folder that does not exist yet.")
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{folder} is not an empty folder.", remedy="Give a folder that does not exist yet.")
    chosen = _name(name, target)
    written: list[str] = []
    try:
        _copy(files("headwater.commands") / "templates", target, {"name": chosen}, written)
    except OSError as error:
        raise UsageError(
            f"{folder} can't be made a folder: {error.strerror}.",
            remedy="Give a place that this user may write to.",
        ) from None
    if as_json:
        print_json({"state": "COMPLETED", "name": chosen, "folder": str(target), "files": sorted(written)})
    else:
        print("\n".join(f"wrote {target / path}" for path in sorted(written)))
        print(f"\nNow run it:  python -m headwater run {shlex.quote(folder)}")
    return 0


def _name(name: str | None, folder: Path) -> str:
    chosen = name if name is not None else re.sub(r"[^A-Za-z0-9_-]+", "_", folder.resolve().name).lstrip("-")
    try:
        PipelineSpec(name=chosen or "pipeline")
    except ValidationError:
        raise UsageError(
            f"{chosen!r} can't name a pipeline.", remedy="Use letters, digits, _ and -, with --name."
        ) from None
    return chosen or "pipeline"


def _copy(
    source: Traversable, target: Path, values: dict[str, str], written: list[str], below: str = ""
) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for item in source.iterdir():
        if item.is_dir():
            _copy(item, target / item.name, values, written, f"{below}{item.name}/")
            continue
        text = item.read_text(encoding="utf-8")
        name = item.name.removesuffix(_ENDING)
        (target / name).write_text(Template(text).safe_substitute(values), encoding="utf-8")
        written.append(below + name)
