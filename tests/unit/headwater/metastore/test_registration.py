"""Entries follow the tables: after updates and verbs, past outages, and never over what somebody else has."""

from __future__ import annotations

import json
import socket
import threading

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.unit.headwater.metastore.conftest import at

from headwater.commands.command_line import main
from headwater.definitions.dataset import DatasetKind
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import DatasetEntry
from headwater.leases.file_lease import update_lease
from headwater.metastore import connection, following
from headwater.metastore.column_types import Column
from headwater.metastore.conditions import MetastoreNameClash, MetastoreNameTaken
from headwater.metastore.entry import TABLE_ID, columns_of
from headwater.metastore.record import FILE_NAME, read_record
from headwater.metastore.registration import is_due, refuse_foreign_entries, refuse_name_clashes, register


def call(listed, capsys, verb, *arguments):
    """What a verb answers: its exit code, and the JSON of the last line."""
    roots = [f"--storage={listed.project.storage}", f"--warehouse={listed.project.warehouse}"]
    code = main([verb, str(listed.project.folder), *arguments, *roots, "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def names(metastore):
    """The tables of a metastore, as people write them."""
    return sorted(".".join(key) for key in metastore.tables)


def records(listed):
    """Level and message of what the event log has about the metastore."""
    found = events(listed.project.state_folder, event_type="operation_progress")
    return [
        (e["level"], e["message"]) for e in found if e["details"]["operation_progress"]["type"] == "METASTORE"
    ]


def set_description(table, text):
    """Give a table a comment, as Spark does."""
    DeltaTable(str(table)).alter.set_table_description(text)


def test_tables_are_listed_and_nothing_is_done_twice(listed, metastore):
    """All stored tables, once; the second time only a look; a private one, a view and a table that is not there are left out."""
    private = DatasetEntry(
        name="inner", kind=DatasetKind.STREAMING_TABLE, location="shop/bronze", private=True
    )
    view = DatasetEntry(name="view", kind=DatasetKind.TEMPORARY_VIEW)
    later = DatasetEntry(name="later", kind=DatasetKind.STREAMING_TABLE, location="shop/later")
    datasets = (*listed.manifest.datasets, private, view, later)
    manifest = listed.manifest.model_copy(update={"datasets": datasets})
    assert not register(listed.project, manifest).troubles
    assert names(metastore) == ["shop.bronze", "shop.gold", "shop.silver"]
    assert metastore.parameters("shop", "gold")[TABLE_ID] == str(
        DeltaTable(str(listed.table("gold"))).metadata().id
    )
    assert not is_due(listed.project)
    metastore.calls.clear()
    assert register(listed.project, manifest).steps == []
    assert metastore.calls == ["set_ugi", "get_table_objects_by_name_req"]


def test_what_the_table_says_is_what_is_listed(listed, metastore):
    """A new column, another type at the place of an old one, a comment, a property."""
    register(listed.project, listed.manifest)
    write_deltalake(
        str(listed.table("gold")),
        pa.table({"label": ["a"], "id": [1]}),
        mode="overwrite",
        schema_mode="overwrite",
    )
    set_description(listed.table("gold"), "what it is for")
    DeltaTable(str(listed.table("gold"))).alter.set_table_properties(
        {"team": "blue"}, raise_if_not_exists=False
    )
    done = register(listed.project, listed.manifest)
    assert [str(step) for step in done.steps] == ["alter shop.gold"]
    assert columns_of(metastore.tables["shop", "gold"]) == (Column("label", "string"), Column("id", "bigint"))
    assert {"comment": "what it is for", "team": "blue"}.items() <= metastore.parameters(
        "shop", "gold"
    ).items()


def test_a_rename_keeps_the_entry(listed, metastore, capsys):
    """`rename` gives the entry the new name and place; what others have set in it stays."""
    register(listed.project, listed.manifest)
    before = metastore.tables["shop", "silver"]
    before[9].value.values["grant"] = "kept"
    code, _ = call(listed, capsys, "rename", "silver", "mart.purified", "--yes")
    assert code == 0
    assert names(metastore) == ["mart.purified", "shop.bronze", "shop.gold"]
    assert metastore.parameters("mart", "purified")["grant"] == "kept"
    assert metastore.tables["mart", "purified"][7].value[2].value.endswith("/mart/purified")
    assert records(listed) == [
        ("INFO", "The metastore follows the tables: rename shop.silver to mart.purified.")
    ]


def test_a_drop_takes_the_entry_with_it(listed, metastore, capsys):
    """`drop` removes the entry; those of other tables stay."""
    register(listed.project, listed.manifest)
    assert call(listed, capsys, "drop", "gold", "--yes")[0] == 0
    assert names(metastore) == ["shop.bronze", "shop.silver"]
    assert records(listed) == [("INFO", "The metastore follows the tables: drop shop.gold.")]


def test_a_moved_table_has_another_pipeline(listed, metastore, capsys):
    """`move` leaves name and place, and the entry says whose it is; the pipeline before does not take it away later."""
    register(listed.project, listed.manifest)
    folder = listed.project.folder.with_name("other")
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text(
        f"name: other\nschema: mart\nmetastore: {{uri: '{metastore.uri}'}}\n"
    )
    code, _ = call(listed, capsys, "move", "gold", "--to", str(folder), "--yes")
    assert code == 0
    assert metastore.parameters("shop", "gold")["headwater.pipeline"] == "other"
    manifest = listed.manifest.model_copy(update={"datasets": listed.manifest.datasets[:2]})
    assert not register(listed.project, manifest).steps
    assert names(metastore) == ["shop.bronze", "shop.gold", "shop.silver"]


def test_a_table_of_somebody_else_stays_as_it_is(listed, metastore):
    """It is refused before anything is written, and passed over where it came meanwhile; the others are listed."""
    register(listed.project, listed.manifest)
    foreign = metastore.tables["shop", "gold"]
    foreign[9].value.values[TABLE_ID] = "of another deployment"
    before = dict(foreign)
    (listed.project.state_folder / FILE_NAME).unlink()
    with pytest.raises(
        MetastoreNameTaken, match=r"a table shop\.gold that was not registered by this pipeline"
    ):
        refuse_foreign_entries(listed.project, listed.manifest)
    del metastore.tables["shop", "silver"]
    done = register(listed.project, listed.manifest)
    assert [error.condition for error in done.troubles] == ["METASTORE_NAME_TAKEN"]
    assert [str(step) for step in done.steps] == ["create shop.silver"]
    assert metastore.tables["shop", "gold"] == before
    assert is_due(listed.project)


def test_our_own_are_not_refused(listed, metastore):
    """Nor is a table that was made anew at a name that we registered, though its id is another."""
    register(listed.project, listed.manifest)
    write_deltalake(str(listed.table("gold")), pa.table({"id": [1]}), mode="overwrite")
    for file in sorted(listed.table("gold").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    refuse_foreign_entries(listed.project, listed.manifest)
    write_deltalake(str(listed.table("gold")), pa.table({"id": [1]}))
    refuse_foreign_entries(listed.project, listed.manifest)
    assert [str(step) for step in register(listed.project, listed.manifest).steps] == ["alter shop.gold"]


@pytest.mark.parametrize(
    "spoiled",
    ["", "{", "[]", '{"uri": 1}', '{"uri": "", "warehouse": "", "pending": 0, "entries": {"a": {}}}'],
)
def test_a_damaged_record_is_made_again(listed, metastore, spoiled):
    """It is not the truth: all is looked at again."""
    register(listed.project, listed.manifest)
    kept = read_record(listed.project.state_folder)
    (listed.project.state_folder / FILE_NAME).write_text(spoiled)
    assert is_due(listed.project)
    assert not register(listed.project, listed.manifest).steps
    assert read_record(listed.project.state_folder) == kept


def test_an_outage_is_made_up_for_without_news(listed, metastore, capsys):
    """The update that meets it completes with a warning; the next one without news registers what is left, and says so once."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        away = at(listed, f"thrift://127.0.0.1:{taken.getsockname()[1]}")
        refuse_foreign_entries(away.project, away.manifest)
        code, answer = call(away, capsys, "run")
    assert (code, answer["state"]) == (0, "COMPLETED")
    ((level, message),) = records(away)
    assert level == "WARN"
    assert "The metastore does not answer" in message
    assert is_due(away.project)
    back = at(listed, metastore.uri)
    with update_lease(back.project.state_folder, "another update"):
        assert call(back, capsys, "run")[0] == 0
    assert names(metastore) == []
    for _ in range(2):
        assert call(back, capsys, "run")[0] == 0
    assert names(metastore) == ["shop.bronze", "shop.gold", "shop.silver"]
    assert [level for level, _ in records(back)] == ["WARN", "INFO"]


def test_a_table_that_is_refused_does_not_hold_up_the_others(listed, metastore):
    """Also where the server can't create anything: each says so, and the next time all is made up for."""
    metastore.fails.add("create_table_with_environment_context")
    done = register(listed.project, listed.manifest)
    assert {error.condition for error in done.troubles} == {"METASTORE_REFUSED"}
    assert len(done.troubles) == 3
    assert "it was told to fail (MetaException)" in done.troubles[0].what
    metastore.fails.clear()
    assert len(register(listed.project, listed.manifest).steps) == 3


@pytest.mark.parametrize("method", ["set_ugi", "get_database", "get_table_objects_by_name_req"])
def test_a_metastore_whose_database_fails_ends_no_update(listed, metastore, method):
    """Whatever it does not do, the rows are there; nothing is raised."""
    metastore.fails.add(method)
    refuse_foreign_entries(listed.project, listed.manifest)
    troubles = register(listed.project, listed.manifest).troubles
    assert {error.condition for error in troubles} == {"METASTORE_REFUSED"}
    assert is_due(listed.project)


@pytest.mark.parametrize(
    ("answer", "condition"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "METASTORE_REFUSED"),
        (b"\x05\x00\x00\x00\x08bad sasl", "METASTORE_REFUSED"),
        (b"\x80\x01\x00", "METASTORE_UNREACHABLE"),
        (b"", "METASTORE_UNREACHABLE"),
        (None, "METASTORE_UNREACHABLE"),
    ],
)
def test_what_is_no_metastore_is_named(listed, monkeypatch, answer, condition):
    """A web server, one that wants Kerberos, one that dies, one that says nothing at all."""
    monkeypatch.setattr(connection, "_CALL_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve():
            taken, _ = server.accept()
            kept.append(taken)
            taken.recv(1000)
            if answer is not None:
                taken.sendall(answer)
                taken.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        other = at(listed, f"thrift://127.0.0.1:{server.getsockname()[1]}")
        (trouble,) = register(other.project, other.manifest).troubles
        thread.join()
        kept[0].close()
    assert trouble.condition == condition


def test_the_second_address_answers_for_the_first(listed, metastore):
    """Services of one metastore stand in for each other."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        both = at(listed, f"thrift://127.0.0.1:{taken.getsockname()[1]},{metastore.uri}")
        assert not register(both.project, both.manifest).troubles
    assert len(names(metastore)) == 3


def test_names_that_become_one_are_refused(listed):
    """A metastore has no capital letters, and two parts: nothing is written where two tables would have one name."""
    pairs = [("Gold", None), ("a.b_c.t", "a_b.c.t")]
    for one, other in pairs:
        more = [
            DatasetEntry(name=name, kind=DatasetKind.STREAMING_TABLE, location=name.replace(".", "/"))
            for name in (one, other) if name is not None
        ]  # fmt: skip
        manifest = listed.manifest.model_copy(update={"datasets": (*listed.manifest.datasets, *more)})
        with pytest.raises(MetastoreNameClash, match="would both be"):
            refuse_name_clashes(listed.project, manifest)
        refuse_name_clashes(at(listed, None).project, manifest)
        at(listed, listed.project.spec.metastore.uri)


def test_a_table_whose_log_is_damaged_is_left_for_the_next_time(listed, metastore):
    """The others are listed, and its entry stays; nobody is accused of having taken its name."""
    register(listed.project, listed.manifest)
    log = listed.table("gold") / "_delta_log"
    for file in log.iterdir():
        file.write_text("{")
    refuse_foreign_entries(listed.project, listed.manifest)
    done = register(listed.project, listed.manifest)
    assert [error.condition for error in done.troubles] == ["SOURCE_UNREACHABLE"]
    assert names(metastore) == ["shop.bronze", "shop.gold", "shop.silver"]
    assert is_due(listed.project)


def test_another_metastore_gets_all_of_it(listed, metastore):
    """The address in the spec is another one now: what is registered there is what counts."""
    register(listed.project, listed.manifest)
    metastore.tables.clear()
    moved = at(listed, metastore.uri + ",thrift://127.0.0.1:1")
    assert is_due(moved.project)
    assert len(register(moved.project, moved.manifest).steps) == 3


def test_an_entry_by_hand_is_not_ours(listed, metastore):
    """Somebody has registered the table by hand, at its very place: it is refused, not taken over."""
    register(listed.project, listed.manifest)
    table = metastore.tables["shop", "gold"]
    for key in [key for key in table[9].value.values if key.startswith("headwater.")]:
        del table[9].value.values[key]
    with pytest.raises(MetastoreNameTaken):
        refuse_foreign_entries(listed.project, listed.manifest)


def test_a_trouble_that_lasts_is_recorded_once(listed, monkeypatch):
    """Also one that nobody foresaw: a continuous update looks each minute, and none of it ends the update."""
    answers = iter(
        [RuntimeError("a bug"), RuntimeError("a bug"), ValueError("another"), RuntimeError("a bug")]
    )

    def fails(*_):
        raise next(answers)

    monkeypatch.setattr(following, "register", fails)
    project = listed.project
    with EventLogWriter(project.state_folder, project.pipeline_id, project.spec.name, "u") as log:
        follower = following.Follower(project, log)
        for _ in range(4):
            follower.follow(listed.manifest)
    assert [(level, message.split(": ", 1)[1]) for level, message in records(listed)] == [
        ("WARN", f"The entries could not be brought up to date: {cause}.")
        for cause in ("RuntimeError: a bug", "ValueError: another", "RuntimeError: a bug")
    ]
