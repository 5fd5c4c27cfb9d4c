"""Names as people spell them on a command line, against those that the pipeline declares.

Letter case, backticks, ``LIVE.`` and the pipeline's own catalog and schema are no part of a name, there as in sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headwater.definitions.dataset_name import DatasetName
from headwater.errors import InvalidName, UnknownDataset
from headwater.graph.manifest import Manifest
from headwater.suggestions import did_you_mean, nearest


def declared_name(manifest: Manifest, text: str, names: Iterable[str] | None = None) -> str:
    """The one of ``names`` that a text means, else the text itself; without ``names``: of the pipeline's datasets."""
    known = list(names) if names is not None else [entry.name for entry in manifest.datasets]
    if text in known:
        return text
    place = _place(manifest, text)
    return next((name for name in known if place is not None and _place(manifest, name) == place), text)


def declared_names(manifest: Manifest, texts: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """As ``declared_name`` for each of the texts; two spellings of one name are one."""
    known = list(names)
    return tuple(dict.fromkeys(declared_name(manifest, text, known) for text in texts))


def known_name(manifest: Manifest, text: str, names: Iterable[str], what: str) -> str:
    """The one of ``names`` that a text means; raises UnknownDataset as ``refuse_unknown`` where it is none."""
    known = list(names)
    name = declared_name(manifest, text, known)
    refuse_unknown(name, known, what)
    return name


def refuse_unknown(name: str, names: Collection[str], what: str) -> None:
    """Raise UnknownDataset, with the nearest of ``names``, where the pipeline has no ``what`` of this name."""
    if name not in names:
        raise UnknownDataset(
            f"The pipeline has no {what} {name!r}.",
            remedy=did_you_mean(nearest(name, names), f"It has: {', '.join(names)}."),
        )


def _place(manifest: Manifest, text: str) -> str | None:
    try:
        name = DatasetName.parse(text, catalog=manifest.catalog, schema=manifest.schema_name)
    except InvalidName:
        return None
    return name.location.lower()
