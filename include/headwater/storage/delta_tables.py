"""Opening and appending to Delta tables by delta-rs, wherever they lie.

Decision 0184, decision 0222.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from headwater.storage.conditions import store_errors_of_delta
from headwater.storage.listing import current_look
from headwater.storage.mirrors import LOG, mirrored_log, mirrored_table, remembered
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, refuse_escapes

if TYPE_CHECKING:
    from deltalake import DeltaTable

# What stands for itself in the path of a URL.
_PLAIN = "/-_.!~'()*:@&=+$,;"


def delta_table(place: Place, version: int | None = None) -> DeltaTable:
    """The table at a place, at a version or its newest.

    Raises:
        Exception: what delta-rs raises.
        StoreRefused, StoreUnreachable: the store does not answer, or denies access.
    """
    from deltalake import DeltaTable

    address, options = _address(place), delta_options(place)
    with delta_errors(place):
        return DeltaTable(address, version=version, storage_options=options)


def delta_errors(place: Place) -> AbstractContextManager[None]:
    """In which delta-rs works on a table: that its store is away is raised as of ``delta_table``, and all else as it is."""
    return store_errors_of_delta(place) if isinstance(place, ObjectPath) else nullcontext()


def table_log(place: Place, version: int | None = None) -> DeltaTable:
    """The table at a place for what its log says (id, version, properties, files): its rows are not there to be read.

    On a store the log is read from a copy on this machine, which is brought up to date first.

    Raises:
        Exception: what delta-rs raises.
        StoreRefused, StoreUnreachable: the store does not answer, or denies access.
    """
    if version is not None or not isinstance(place, ObjectPath):
        return delta_table(place, version)
    opened: DeltaTable = remembered((place, "log"), lambda: _from_mirror(place))
    return opened


def log_file(file: Place) -> Place:
    """A file of a table's log, to be read: on a store its copy on this machine, brought up to date, where one is kept.

    Raises:
        StoreRefused, StoreUnreachable: the store does not answer, or denies access.
    """
    if not isinstance(file, ObjectPath):
        return file
    return _copy_in(_mirror(file.parents[1]), file)


def copy_of_commit(file: Place) -> Place:
    """A file of a table's log, or its copy where this look (``looked_over``) has brought one up to date: asks the store nothing."""
    look = current_look()
    if look is None or not isinstance(file, ObjectPath):
        return file
    return _copy_in(look.tables.get((file.parents[1], "mirror")), file)


def _copy_in(mirror: Path | None, file: ObjectPath) -> Place:
    copy = None if mirror is None else mirror / file.parent.name / file.name
    return file if copy is None or not copy.exists() else copy


def small_table(place: Place) -> DeltaTable:
    """The table at a place, to query: on a store, all its files are copied to this machine first."""
    if not isinstance(place, ObjectPath):
        return delta_table(place)
    opened: DeltaTable = remembered((place, "table"), lambda: _copied(place))
    return opened


def log_here(place: Place) -> Path | None:
    """The folder of a table's log on this machine, there or not; on a store that of a copy, which is brought up to date first.

    None where no copy can be made: only delta-rs can read the log then.

    Raises:
        StoreRefused, StoreUnreachable: the store does not answer, or denies access.
    """
    if isinstance(place, ObjectPath):
        folder = _mirror(place)
        return None if folder is None else folder / LOG
    return place / LOG


def _mirror(place: ObjectPath) -> Path | None:
    try:
        mirror: Path | None = remembered((place, "mirror"), lambda: mirrored_log(place))
    except OSError:  # no room in the cache, or a commit that was cleaned away meanwhile
        return None
    return mirror


def _from_mirror(place: ObjectPath) -> DeltaTable:
    folder = _mirror(place)
    return delta_table(place if folder is None else folder)


def _copied(place: ObjectPath) -> DeltaTable:
    try:
        copy = mirrored_table(place)
    except OSError:  # as above
        copy = None
    return copy or delta_table(place)


def append(place: Place, rows: Any, **how: Any) -> None:
    """``write_deltalake`` to a place; ``how``: its other arguments. Raises as ``delta_table``."""
    from deltalake import write_deltalake

    address, options = _address(place), delta_options(place)
    with delta_errors(place):
        write_deltalake(address, rows, storage_options=options, **how)


def _address(place: Place) -> str:
    """A place as delta-rs takes it, by a URL: it would end a name at ``?`` and ``#``.

    Raises:
        StoreRefused: a name has ``%20`` or the like, which delta-rs decodes more than once, however it is written.
    """
    if not isinstance(place, ObjectPath):
        return str(place)
    refuse_escapes(place)
    head = str(place)[: len(str(place)) - len(place.key)]
    return f"{head}{quote(place.key, safe=_PLAIN)}"


def delta_options(place: Place) -> dict[str, str] | None:
    """``storage_options`` for a place, None for a local one."""
    if not isinstance(place, ObjectPath):
        return None
    return place.bucket.access.delta_options_of(place.bucket.name)
