"""The files of a table that somebody still needs, whatever their age."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from headwater.delta_log.commits import Action, commit_file, read_actions
from headwater.maintenance.reader_positions import ReaderPosition
from headwater.storage.delta_tables import table_log
from headwater.storage.place import Place


class NotKnown(Exception):
    """It is not known which files a reader needs; the message says why."""


@dataclass(frozen=True)
class NeededFiles:
    """Paths below the table's folder, in one spelling."""

    paths: frozenset[str]

    def __contains__(self, path: str) -> bool:
        return plain(path) in self.paths


def needed_files(table: Place, positions: Sequence[ReaderPosition]) -> NeededFiles:
    """What the newest version holds, and what readers still have to read.

    A reader at a version needs the files that commits from there on have added, also those that were removed since, the
    files of the change feed, and what those commits removed with its rows.

    Raises:
        NotKnown: where a reader's position, or a commit that it has to read, can't be made out.
    """
    for position in positions:
        if position.unknown is not None:
            raise NotKnown(f"{position.reader}: {position.unknown}")
    paths = set(_content(table, None))
    for version in {p.snapshot for p in positions if p.snapshot is not None}:
        paths.update(_content(table, version))
    first = min((p.version for p in positions if p.version is not None), default=None)
    if first is not None:
        for actions in _commits_from(table, first, _who(positions, first)):
            paths.update(_of_commit(actions))
    return NeededFiles(frozenset(map(plain, paths)))


def plain(path: str) -> str:
    """A path as the file system has it: logs spell it percent-encoded, at times twice."""
    while (decoded := unquote(path)) != path:
        path = decoded
    return path


def _who(positions: Iterable[ReaderPosition], version: int) -> str:
    return next(p.reader for p in positions if p.version == version)


def _commits_from(table: Place, first: int, reader: str) -> Iterator[list[Action]]:
    for version in range(first, table_log(table).version() + 1):
        try:
            yield read_actions(commit_file(table, version))
        except FileNotFoundError:
            raise NotKnown(
                f"{reader} has to read version {version}, which is gone from the table's log"
            ) from None
        except (OSError, ValueError) as error:
            raise NotKnown(f"{reader} has to read version {version}, which can't be read: {error}") from None


def _of_commit(actions: Iterable[Action]) -> Iterator[str]:
    for action in actions:
        for kind in ("add", "cdc", "remove"):
            # A change feed reads deleted rows from the files that held them; files that only moved rows are not read.
            if kind in action and (kind == "cdc" or action[kind].get("dataChange", True)):
                yield str(action[kind]["path"])


def _content(table: Place, version: int | None) -> Iterator[str]:
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    try:
        opened = table_log(table, version=version)
    except DeltaError as error:
        raise NotKnown(f"version {version} is being read and can't be opened: {error}") from None
    yield from pa.table(opened.get_add_actions(flatten=True))["path"].to_pylist()
