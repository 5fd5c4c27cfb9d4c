"""What ``os.walk``, ``os.listdir`` and ``shutil`` do, for places: names, files, removing and copying whole folders.

Decision 0184.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from headwater.storage import azure
from headwater.storage.azure_marks import is_marked
from headwater.storage.object_path import ObjectPath, ObjectState
from headwater.storage.place import Place, parts_below

_AT_ONCE = 16
# The most keys that S3 removes by one request.
_A_REQUEST = 1000


def names_in(folder: Place) -> list[str]:
    """The names in a folder, in no order; raises FileNotFoundError where there is none (on a store: where it is empty)."""
    if isinstance(folder, Path):
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted, and there may be very many
    return [path.name for path in folder.iterdir()]


def sizes_in(folder: Place) -> dict[str, int]:
    """The sizes of the files directly in a folder, by name; empty where there is none."""
    if isinstance(folder, ObjectPath):
        return {name: listed.size for name, listed in folder.listed().items()}
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
    except FileNotFoundError:
        return {}


def files_below(folder: Place) -> Iterator[tuple[Place, os.stat_result | ObjectState]]:
    """Every file at any depth with its state, in no order; one that is removed meanwhile is left out."""
    if isinstance(folder, ObjectPath):
        yield from objects_below(folder)
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent) / name
            try:
                yield file, file.stat()
            except FileNotFoundError:
                continue


def contents_below(folder: Place) -> Iterator[tuple[Place, os.stat_result | ObjectState]]:
    """As ``files_below``, without the empty objects by which Hadoop marks folders; a request more for each empty object."""
    for file, about in files_below(folder):
        if about.st_size or isinstance(file, Path) or file.is_file():
            yield file, about


def objects_below(folder: ObjectPath) -> Iterator[tuple[ObjectPath, ObjectState]]:
    """Every object below a folder of a store, by one request for a thousand."""
    import obstore

    from headwater.storage.conditions import store_errors

    with store_errors(folder):
        for page in obstore.list(folder.bucket.client, folder.key or None):
            for meta in page:
                # Hadoop's mark of the folder itself has the folder's own name.
                if meta["path"] != folder.key:
                    state = ObjectState(int(meta["size"]), meta["last_modified"].timestamp())
                    yield ObjectPath(folder.bucket, meta["path"]), state


def is_there_for_hadoop(folder: ObjectPath) -> bool:
    """Whether anything lies below, Hadoop's marks of the folder and of others in it included: then it exists for Spark.

    On Azure it may exist in any case: an account with a hierarchy has folders that no listing of objects shows.
    """
    import obstore

    from headwater.storage.conditions import store_errors

    if folder.bucket.store.scheme == azure.SCHEME:
        return True
    with store_errors(folder):
        return any(len(page) for page in obstore.list(folder.bucket.client, folder.key, chunk_size=1))


def unchecked() -> None:
    """The check of what needs no lease."""


def remove_tree(folder: Place, *, ignore_errors: bool = False, check: Callable[[], None] = unchecked) -> None:
    """Remove a folder and all below it; raises FileNotFoundError where a local one is not there.

    On a store, what lies directly in it goes first: a record that says "complete" must not outlive what it is about. ``check``: called
    before each request that removes; raises where the right to write is lost.
    """
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=ignore_errors)
        return
    objects = sorted((path for path, _ in objects_below(folder)), key=lambda path: len(path.parts))
    remove_files([*objects, folder] if is_marked(folder) else objects, check)


def remove_files(files: Sequence[Place], check: Callable[[], None] = unchecked) -> None:
    """Remove files of one disk or one bucket, in this order; on a store a thousand by a request. What is not there is passed over.

    ``check``: as of ``remove_tree``.
    """
    for file in files:
        if isinstance(file, Path):
            file.unlink(missing_ok=True)
    objects = [file for file in files if isinstance(file, ObjectPath)]
    if not objects:
        return
    import obstore

    from headwater.storage.conditions import store_errors

    def delete(keys: str | list[str]) -> None:
        with store_errors(objects[0]):
            obstore.delete(objects[0].bucket.client, keys)

    for start in range(0, len(objects), _A_REQUEST):
        keys = [file.key for file in objects[start : start + _A_REQUEST]]
        check()
        try:
            delete(keys)
        except FileNotFoundError:  # Azure says so of each; S3 passes over what is not there
            for key in keys:
                with suppress(FileNotFoundError):
                    delete(key)


def copy_file(source: Place, target: Place) -> None:
    """Copy a file with, on a disk, its times and rights; to or from a store its content, which a bucket copies by itself."""
    if isinstance(source, Path) and isinstance(target, Path):
        shutil.copy2(source, target)
    else:
        _transfer(source, target)


def copy_files(
    source: Place,
    target: Place,
    keep: Callable[[Place], bool] = lambda _: True,
    check: Callable[[], None] = unchecked,
) -> None:
    """Copy all below a folder to another one, of which one at least is on a store; durable before it returns.

    Args:
        source: a folder, with all below it.
        target: where it goes; what is there stays, unless it has the name of a file of ``source``.
        keep: whether a file is copied, by its place in ``source``.
        check: called before each file; raises where the right to write is lost.

    Raises:
        StoreUnreachable: some may be copied by then.
        FileNotFoundError: a file was removed meanwhile.
    """

    def copy(file: tuple[Place, os.stat_result | ObjectState]) -> None:
        path, about = file
        check()
        try:
            _transfer(path, target.joinpath(*parts_below(path, source)))
        except FileNotFoundError:
            if about.st_size:
                raise  # else it is Hadoop's mark of a folder, which has another key than it is listed by

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(copy, [file for file in files_below(source) if keep(file[0])]):
            pass
    if isinstance(target, Path) and target.is_dir():
        for parent, _, _ in os.walk(target):
            _sync(Path(parent))


def _transfer(source: Place, target: Place) -> None:
    """Copy one file; within a bucket the server does, otherwise it goes through this process piece by piece."""
    import obstore

    from headwater.storage.conditions import store_errors

    with store_errors(source if isinstance(source, ObjectPath) else target):
        if isinstance(target, Path):
            assert isinstance(source, ObjectPath)
            pieces = obstore.get(source.bucket.client, source.key).stream()
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                for piece in pieces:
                    stream.write(piece)
            _sync(target)
        elif isinstance(source, Path):
            obstore.put(target.bucket.client, target.key, source)
        elif source.bucket == target.bucket:
            obstore.copy(source.bucket.client, source.key, target.key)
        else:
            with tempfile.NamedTemporaryFile() as between:
                for piece in obstore.get(source.bucket.client, source.key).stream():
                    between.write(piece)
                between.flush()
                obstore.put(target.bucket.client, target.key, Path(between.name))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def files_and_folders(folder: Place) -> tuple[list[str], list[str]]:
    """The names of the files and of the folders directly in a folder; empty on a store where there is none."""
    if isinstance(folder, ObjectPath):
        return folder.children()
    with os.scandir(folder) as entries:
        kinds = [(entry.name, entry.is_dir()) for entry in entries]
    return [name for name, is_folder in kinds if not is_folder], [
        name for name, is_folder in kinds if is_folder
    ]


def folders_in(folder: Place) -> list[str]:
    """The names of the folders directly in a folder; empty where there is none. On a store, one request."""
    try:
        return files_and_folders(folder)[1]
    except FileNotFoundError:
        return []


def move(source: Place, target: Place) -> None:
    """Move a file or a folder within one storage.

    On a store it is copied and then removed: whoever is killed in between leaves both, and does it again.
    """
    if isinstance(source, ObjectPath) and isinstance(target, ObjectPath):
        if source.is_file():
            copy_file(source, target)
            source.unlink(missing_ok=True)
        else:
            copy_files(source, target)
            remove_tree(source)
    elif isinstance(source, Path) and isinstance(target, Path):
        source.rename(target)
    else:
        raise TypeError(f"{source} and {target} are not in one storage")


def in_order(places: Iterable[Place]) -> list[Place]:
    """The places sorted by their names, folder by folder."""
    return sorted(places, key=lambda place: place.parts)


def readable(file: Place) -> Path | io.BytesIO:
    """A file for libraries that take a path or a stream; raises FileNotFoundError for a missing object."""
    return file if isinstance(file, Path) else io.BytesIO(file.read_bytes())
