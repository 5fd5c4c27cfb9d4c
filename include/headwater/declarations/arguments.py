"""Checks that all declarations share: what can be honoured is normalised, the rest is refused with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.definitions.flow_settings import wrong_setting
from headwater.definitions.platform_settings import SettingPlace, wrong_place
from headwater.definitions.source_location import SourceLocation
from headwater.errors import UnsupportedArgument

_REMEDIES = {
    "row_filter": "Open Delta has no row filters. Filter in the query, or publish a filtered materialized view.",
    "where": "Filter in a view, and name that as the source.",
}
_OF_FLOWS = {"spark_conf": SettingPlace.FLOW, "table_properties": SettingPlace.TABLE}
_RESERVED_PROPERTIES = {"provider", "location", "owner", "external", "is_managed_location"}
_CATALOG_OWNS = (
    "a catalog would own the table's commits, and every check here reads them from the table's own log",
    "Leave it out: tables are found by their path, and `metastore` in pipeline.yml lists them for others.",
)
_NO_CONVERTER = (
    "Delta's converter to Iceberg is not among the jars",
    "Leave it out: Iceberg readers can't be served. docs/other-engines.md says who reads the Delta table as it is.",
)
# Features that would be written down, and could not be honoured. Names as Delta compares them: without regard to case.
_REFUSED_PROPERTIES = {
    "delta.feature.catalogmanaged": _CATALOG_OWNS,
    "delta.feature.catalogowned": _CATALOG_OWNS,
    "delta.feature.catalogowned-preview": _CATALOG_OWNS,
    "io.unitycatalog.tableid": _CATALOG_OWNS,
    "uctableid": _CATALOG_OWNS,
    "delta.universalformat.enabledformats": _NO_CONVERTER,
}


def refuse(what: str, where: SourceLocation | None, /, **arguments: object) -> None:
    """Raise UnsupportedArgument for the first of ``arguments`` that was given (is neither None nor False)."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise UnsupportedArgument(
                f"{what}: the argument {name} can't be honoured here.",
                where=where,
                remedy=_REMEDIES.get(name, ""),
            )


def check_format(value: str | None, where: SourceLocation | None) -> None:
    """Tables are Delta tables."""
    if value is not None and value.lower() != "delta":
        raise UnsupportedArgument(
            f"format={value!r}: tables of a pipeline are Delta tables.",
            where=where,
            remedy='Leave it out, or say format="delta".',
        )


def check_properties(properties: Mapping[str, str], where: SourceLocation | None) -> None:
    """Refuse names that Spark keeps for itself, and would refuse when they are to be changed; and what needs a catalog or a converter."""
    for name in properties:
        reason, remedy = _REFUSED_PROPERTIES.get(name.lower(), ("", ""))
        if reason:
            raise UnsupportedArgument(
                f"table_properties: {name!r} can't be honoured: {reason}.", where=where, remedy=remedy
            )
        if name.lower() in _RESERVED_PROPERTIES:
            raise UnsupportedArgument(
                f"table_properties: Spark keeps the name {name!r} for itself.",
                where=where,
                remedy=f"Choose another one, as 'pipeline.{name.lower()}'; a table's folder is path=.",
            )


def columns(
    value: str | Iterable[str] | None, argument: str, where: SourceLocation | None, what: str = "column names"
) -> tuple[str, ...]:
    """Names of columns (or of ``what``) as a tuple; one bare string is one name."""
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise UnsupportedArgument(
            f"{argument} takes {what}.", where=where, remedy=f'Write {argument}=["a", "b"].'
        )
    return names


def text_map(
    value: Mapping[str, Any] | None, argument: str, where: SourceLocation | None, *, of_view: bool = False
) -> dict[str, str]:
    """Properties and confs: Spark knows strings only, so numbers and booleans are spelled its way."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UnsupportedArgument(
            f"{argument} takes a dict.", where=where, remedy=f'Write {argument}={{"key": "value"}}.'
        )
    empty = next((key for key, one in value.items() if one is None), None)
    if empty is not None:  # as text it would be the word None
        raise UnsupportedArgument(
            f"{argument}: {empty!r} is None.", where=where, remedy="Give it a value, or leave it out."
        )
    texts = {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
    wrong = wrong_setting(texts, of_flow=True) if argument in _OF_FLOWS else None
    if wrong is not None:
        raise UnsupportedArgument(
            f"{argument}: {wrong}.", where=where, remedy="Correct its value, or leave it out."
        )
    if argument in _OF_FLOWS:
        place = SettingPlace.VIEW if of_view else _OF_FLOWS[argument]
        refused = wrong_place(texts, place)
        if refused is not None:
            raise UnsupportedArgument(f"{argument}: {refused.what}.", where=where, remedy=refused.remedy)
    return texts
