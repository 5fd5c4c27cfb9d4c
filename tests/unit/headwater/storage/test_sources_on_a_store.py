"""Files of sources in a folder and in S3: one contract, answered by one listing (decision 0193)."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.headwater.metrics.conftest import pipeline

from headwater.arrivals.unread import unread
from headwater.checkpoints.offsets import files_seen
from headwater.definitions.source import SourceKind
from headwater.doctor.file_log_lines import lines_by_age
from headwater.errors import SourceUnreachable
from headwater.files.atomic_files import write_atomically
from headwater.metrics.file_listing import file_paths, list_files
from headwater.metrics.fingerprint import source_fingerprint
from headwater.metrics.lag import flow_lag
from headwater.preflight.file_source_checks import planned_files_are_gone
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.moved_folders import folder_was_moved
from headwater.storage.access import object_store
from headwater.storage.conditions import StoreRefused, StoreUnreachable
from headwater.storage.object_files import anything_at, opened
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import place_of, spark_uri
from headwater.storage.walking import move

__all__ = ["pipeline"]
_NUMBERS = itertools.count()
DEEP = {"recursiveFileLookup": "true"}


@pytest.fixture(scope="module")
def s3(moto):
    """The listings of a server that others have written."""
    return moto


@pytest.fixture
def landing(s3) -> ObjectPath:
    """A prefix of its own, which nothing lies below."""
    return s3.place("places", f"landing-{next(_NUMBERS)}")


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """Both roots in folders."""
    return tmp_path / "storage", tmp_path / "warehouse"


@pytest.fixture(params=["folder", "s3"])
def filled(request: pytest.FixtureRequest, tmp_path: Path):
    """Files of every kind that a listing meets."""
    place = tmp_path / "landing" if request.param == "folder" else request.getfixturevalue("landing")
    for name in (
        *("b.json", "a.json", "c.csv", "_SUCCESS", ".hidden.json", "d.json._COPYING_", "x y%20ü+.json"),
        *("day=1/a.json", "day=1/plain/e.json", "plain/a.json", "_temporary/f.json", "_x=1/g.json"),
    ):
        write_atomically(place / name, "{}")
    return place


def names(place: object, path: str = "", **options: str) -> list[str]:
    """What is listed below a place, from there on."""
    listed = [file.path for file in list_files(f"{place}{path}", options)]
    assert sorted(file_paths(f"{place}{path}", options)) == listed
    return [name.removeprefix(f"{place}/") for name in listed]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_listing(filled, end):
    """Hidden names are left out, and plain folders unless all are asked for; names may have any sign."""
    top = ["_x=1/g.json", "a.json", "b.json", "c.csv", "day=1/a.json", "x y%20ü+.json"]
    assert names(filled, end) == top
    deep = [*top[:-2], "day=1/a.json", "day=1/plain/e.json", "plain/a.json", top[-1]]
    assert names(filled, end, **DEEP) == deep
    assert names(filled, end, pathGlobFilter="*.{csv,txt}") == ["c.csv"]
    assert names(filled, "/a.json") == ["a.json"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/*.csv", ["c.csv"]),
        ("/{a,b}.json", ["a.json", "b.json"]),
        ("/[ab].json", ["a.json", "b.json"]),
        ("/?.json", ["a.json", "b.json"]),
        ("/*/a.json", ["day=1/a.json", "plain/a.json"]),
        ("/p*n", ["plain/a.json"]),
        ("/p*n/", ["plain/a.json"]),
        ("/none*", []),
        ("/none*/deeper", []),
    ],
)
def test_a_glob(filled, pattern, expected):
    """A star stays within a name; what a pattern does not match is no error."""
    assert names(filled, pattern) == expected


def test_times_choose_files(filled):
    """modifiedAfter and modifiedBefore are honoured in both."""
    assert list_files(str(filled), {"modifiedAfter": "2200-01-01"}) == []
    assert len(list_files(str(filled), {"modifiedBefore": "2200-01-01"})) == 6


def test_one_listing_in_pages(s3, landing):
    """More than a page of objects is one listing of that many pages, and complete; nothing else is asked."""
    for number in range(1005):
        (landing / f"f{number:05d}.json").write_text("")
    (landing / "one.json").write_text("{}")
    with s3.counted() as requests:
        assert len(list_files(f"{landing}/*.json", {})) == 1006
    # Twice: empty objects might be marks of folders.
    assert requests == {"LIST": 4}


def test_a_listing_that_breaks_off(s3, landing, monkeypatch):
    """A page that does not come is an error that passes, never a part of the files."""
    import obstore

    (landing / "a.json").write_text("{}")
    pages = obstore.list

    def broken(*arguments, **options):
        yield from pages(*arguments, **options)
        raise obstore.exceptions.GenericError("503 Slow Down")

    monkeypatch.setattr(obstore, "list", broken)
    with pytest.raises(StoreUnreachable, match="503"):
        list_files(str(landing), {})


def test_marks_of_folders(s3, landing):
    """Empty objects that mark folders are no files; an empty file is one, whatever it is called."""
    for key in ("/", "/sub/", "/full/", "/v1.2/", "/full/inner/"):
        s3.put("places", landing.key + key)
    (landing / "full" / "a.json").write_text("{}")
    (landing / "empty").write_text("")
    (landing / "full" / "empty.json").write_text("")
    assert names(landing, **DEEP) == ["empty", "full/a.json", "full/empty.json"]


def test_a_folder_that_is_only_marked(s3, landing):
    """A mark alone is an empty folder; without it nothing is there, and that is said."""
    with pytest.raises(SourceUnreachable, match="no object at or below") as caught:
        list_files(str(landing), {})
    assert "upload the first file" in caught.value.remedy
    assert not anything_at(landing)
    s3.put("places", f"{landing.key}/")
    assert list_files(str(landing), {}) == []
    assert anything_at(landing)


@pytest.mark.parametrize("path", ["s3://no-such-bucket/x", "s3://no-such-bucket/*/x", "s3://no-such-bucket"])
def test_a_bucket_that_is_not_there(s3, path):
    """It is not empty: the error names the place and what to do."""
    with pytest.raises(StoreRefused, match="bucket is not there") as caught:
        list_files(path, {})
    assert "pipeline.yml" in caught.value.remedy


def test_a_bucket_that_may_not_be_listed(s3, landing, monkeypatch):
    """403 is not empty either."""
    import obstore

    def denied(*_, **__):
        raise obstore.exceptions.PermissionDeniedError("<Code>AccessDenied</Code>")

    monkeypatch.setattr(obstore, "list", denied)
    with pytest.raises(StoreRefused, match="denies access: AccessDenied"):
        list_files(str(landing), {})


def test_a_key_that_no_path_has(s3, landing):
    """An empty name between slashes is refused for good, and named: Spark could not read it either."""
    s3.put("places", f"{landing.key}/a//b.json", b"{}")
    with pytest.raises(StoreRefused, match=r"a//b\.json") as caught:
        list_files(str(landing), {})
    assert "Rename" in caught.value.remedy


def test_a_stream_fetches_what_is_read(s3, landing):
    """Header and footer of a large object are two ranges of it."""
    content = bytes(range(256)) * 4096
    (landing / "large").write_bytes(content)
    with s3.counted() as requests, opened(landing / "large") as stream:
        assert stream.read(10) == content[:10]
        stream.seek(-6, 2)
        assert stream.read() == content[-6:]
    assert requests == {"HEAD": 1, "GET": 2}


@pytest.mark.parametrize("bucket", ["places", "elsewhere"])
def test_an_object_is_moved(s3, landing, bucket):
    """Within a bucket and into another one."""
    if bucket != "places":
        s3.make_bucket(bucket)
    (landing / "a.json").write_text("x" * 100_000)
    target = s3.place(bucket, f"{landing.key}/done/a.json")
    move(landing / "a.json", target)
    assert target.read_text() == "x" * 100_000
    assert not (landing / "a.json").exists()


# -- what is decided from a listing --------------------------------------------------------------------------------


def over(pipeline, landing, **changes):
    """The pipeline with its files below ``landing``, and their flow."""
    flow = pipeline.flow("bronze")
    source = flow.sources[0].model_copy(update={"path": str(landing), **changes})
    return flow.model_copy(update={"sources": (source,)})


def take_in(pipeline, *files: ObjectPath, batch: int = 0, committed: bool = True) -> None:
    """Record files as Spark does."""
    folder = pipeline.checkpoint("bronze").epoch_folder(0)
    for name in ("offsets", "commits", "sources/0"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(
            {
                "path": spark_uri(str(file)),
                "timestamp": file.stat().st_mtime_ns // 1_000_000,
                "batchId": batch,
            }
        )
        for file in files
    ]
    (folder / "sources/0" / str(batch)).write_text("\n".join(["v1", *lines]))
    (folder / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"logOffset":{batch}}}')
    if committed:
        (folder / "commits" / str(batch)).write_text("v1\n{}")


def test_lag_counts_what_was_not_read(s3, pipeline, landing):
    """One listing; files are known again by the names that Spark writes, and a bucket that is gone is said to be."""
    odd = landing / "x y%20ü?+.json"
    odd.write_text("{}")
    take_in(pipeline, odd)
    (landing / "new.json").write_text("12345")
    with s3.counted() as requests:
        backlog = flow_lag(pipeline.project, over(pipeline, landing)).backlog
    assert (backlog.files, backlog.bytes, backlog.moved) == (1, 5, True)
    assert requests == {"LIST": 1}
    gone = flow_lag(pipeline.project, over(pipeline, "s3://no-such-bucket/x")).backlog
    assert "bucket is not there" in (gone.unknown or "")
    assert gone.files is None


def test_a_prefix_that_was_emptied(pipeline, landing):
    """Without objects it is not there any more; it was right, since files were read below it, and nothing is new."""
    assert "no object" in (flow_lag(pipeline.project, over(pipeline, landing)).backlog.unknown or "")
    (landing / "a.json").write_text("{}")
    take_in(pipeline, landing / "a.json")
    (landing / "a.json").unlink()
    backlog = flow_lag(pipeline.project, over(pipeline, landing)).backlog
    assert (backlog.files, backlog.moved, backlog.unknown) == (0, False, None)


def test_the_spec_says_where_the_store_is(s3, pipeline, landing, monkeypatch):
    """Without an endpoint in the environment, that of the pipeline's spec is used: sensors watch many pipelines."""
    (landing / "new.json").write_text("12345")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    store = pipeline.project.spec.object_store.model_copy(
        update={"endpoint": s3.endpoint, "region": "us-east-1"}
    )
    spec = pipeline.project.spec.model_copy(update={"object_store": store})
    project = replace(pipeline.project, spec=spec)
    assert flow_lag(project, over(pipeline, landing)).backlog.files == 1


def test_arrivals_are_seen_by_one_listing(s3, pipeline, landing):
    """What wakes a DAG; another content of the same size is another mark."""
    (landing / "new.json").write_text("12345")
    manifest = pipeline.manifest.model_copy(update={"flows": (over(pipeline, landing),)})
    with s3.counted() as requests:
        (source,) = unread(pipeline.project, manifest).sources
    assert (source.amount, requests) == (1, {"LIST": 1})
    (landing / "new.json").write_text("54321")
    assert unread(pipeline.project, manifest).sources[0].mark != source.mark


def test_a_fingerprint_sees_an_overwrite_within_a_second(pipeline, landing):
    """Times are whole seconds: the tag of an object tells its content."""
    source = over(pipeline, landing, streaming=False).sources[0]
    marks = []
    for text in ("12345", "54321"):
        (landing / "a.json").write_text(text)
        marks.append(source_fingerprint(source, pipeline.project.warehouse))
    assert None not in marks
    assert marks[0] != marks[1]
    gone = source.model_copy(update={"path": "s3://no-such-bucket/x"})
    assert source_fingerprint(gone, pipeline.project.warehouse) is None


def start(pipeline, landing, path=None) -> FlowStart:
    """The start of the flow over its files, before the checks."""
    source = StreamSource(
        SourceKind.FILES,
        "input",
        path=str(path or landing),
        files=lambda: file_paths(str(landing), DEEP),
        store=landing.bucket.store,
    )
    checkpoint = pipeline.checkpoint("bronze")
    return FlowStart(
        "p",
        "bronze",
        "bronze",
        checkpoint,
        checkpoint.read_state() or _state(),
        None,
        None,
        sources=(source,),
    )


def _state():
    from headwater.checkpoints.layout import FlowState

    return FlowState()


def test_files_of_a_planned_batch(s3, pipeline, landing):
    """One listing says that they are all there; a missing one is named before Spark fails on it."""
    files = [landing / f"{number}.json" for number in range(20)]
    for file in files:
        file.write_text("{}")
    take_in(pipeline, *files, committed=False)
    with s3.counted() as requests:
        assert list(planned_files_are_gone(start(pipeline, landing))) == []
    assert requests == {"LIST": 1}
    files[3].unlink()
    (damage,) = planned_files_are_gone(start(pipeline, landing))
    assert damage.evidence == (str(files[3]),)


def test_a_planned_batch_of_another_prefix(pipeline, landing):
    """It would end in a failure inside Spark; the message names both places."""
    (landing / "a" / "1.json").parent.mkdir()
    (landing / "a" / "1.json").write_text("{}")
    take_in(pipeline, landing / "a" / "1.json", committed=False)
    assert list(folder_was_moved(start(pipeline, landing, f"{landing}/a/"))) == []
    assert list(folder_was_moved(start(pipeline, landing, f"{landing}/*"))) == []
    (damage,) = folder_was_moved(start(pipeline, landing, f"{landing}/b"))
    assert f"below {landing}/a" in damage.error.what
    assert str(damage.error.where) == f"{landing}/b"


def test_lines_of_a_log(pipeline, landing):
    """Files that a repair takes for read are written as Spark would have written them."""
    (landing / "x y%20ü?+.json").write_text("{}")
    source = start(pipeline, landing).sources[0]
    (line,) = lines_by_age(source, 1 << 60)
    folder = pipeline.checkpoint("bronze").epoch_folder(0)
    (folder / "sources/0").mkdir(parents=True)
    (folder / "sources/0/0").write_text("v1\n" + json.dumps({**line, "batchId": 0}))
    assert [file.path for file in files_seen(folder)] == [str(landing / "x y%20ü?+.json")]


def test_addresses_as_spark_writes_them():
    """Encoded as Java does, without the bucket; a plain path keeps its form."""
    assert spark_uri("s3://b/x y%20ü?+.json") == "s3://b/x%20y%2520ü%3F+.json"
    assert spark_uri("/a b/c://d.json") == "file:/a%20b/c://d.json"
    assert place_of("s3://b/a", store=object_store("s3")) == place_of("s3://b/a")
