"""What is done with entries follows from what there is, and never touches what is not ours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.metastore.column_types import Column
from headwater.metastore.entry import Entry, EntryName, mark_of, table_of
from headwater.metastore.record import Registered
from headwater.metastore.steps import Action, steps_for
from headwater.metastore.thrift_binary import Field, Kind


def entry(name: str, table_id: str, *columns: str) -> Entry:
    """The entry of a table."""
    return Entry(
        EntryName("shop", name),
        name,
        "orders",
        table_id,
        f"/wh/shop/{name}",
        tuple(Column(c, "int") for c in columns),
    )


def known(one: Entry) -> tuple[EntryName, Registered]:
    """How an entry is noted."""
    return one.name, Registered(one.dataset, one.place, one.table_id)


def stored(one: Entry):
    """How a metastore has it."""
    return one.name, table_of(one, None, "ada", 1)


def decide(wanted, existing=(), registered=(), there=()):
    """The steps as texts, and the refused names."""
    steps, refused = steps_for(
        wanted, dict(map(stored, existing)), dict(map(known, registered)), lambda one: one.dataset in there
    )
    return [str(step) for step in steps], [error.where for error in refused]


A, B = entry("a", "1"), entry("b", "2")


def test_a_new_table_is_created_and_then_kept():
    """The second time nothing is to be done."""
    assert decide([A]) == (["create shop.a"], [])
    assert decide([A], [A], [A]) == (["keep shop.a"], [])
    assert decide([A], [A]) == (["keep shop.a"], []), "a record that was lost is made again"


def test_a_change_alters():
    """Another column, another place, another Delta table at the name that we registered."""
    assert decide([entry("a", "1", "x")], [A], [A]) == (["alter shop.a"], [])
    assert decide([entry("a", "9")], [A], [A]) == (["alter shop.a"], [])


def test_a_table_of_another_is_refused():
    """Also one of another deployment of the same pipeline: its Delta table is another one."""
    other = entry("a", "9")
    assert decide([A], [other]) == ([], [str(A.name)])
    assert decide([A, B], [other], [A]) == (["create shop.b"], [str(A.name)])


def test_a_renamed_table_keeps_its_entry():
    """By the table's id; also where its folder stays because it was chosen by hand."""
    new = entry("c", "1")
    assert decide([new], [A], [A]) == (["rename shop.a to shop.c"], [])
    assert decide([new], [A], [A], there=["a"]) == (["rename shop.a to shop.c"], [])


def test_a_dropped_table_goes_and_first():
    """Its name may be wanted by another one."""
    assert decide([B], [A], [A]) == (["drop shop.a", "create shop.b"], [])
    assert decide([], [A], [A], there=["a"]) == ([], []), "no dataset any more, and the table is still there"


def test_what_is_not_ours_any_more_is_forgotten():
    """Somebody has dropped the entry, or replaced it."""
    assert decide([], [], [A]) == (["forget shop.a"], [])
    assert decide([], [entry("a", "9")], [A]) == (["forget shop.a"], [])


NAMES, IDS = st.sampled_from("abcd"), st.sampled_from("1234")
ENTRIES = st.dictionaries(NAMES, IDS, max_size=4).map(
    lambda found: [entry(name, key) for name, key in found.items()]
)


@given(ENTRIES.filter(lambda e: len({one.table_id for one in e}) == len(e)), ENTRIES, ENTRIES, st.sets(NAMES))
def test_only_our_own_is_changed_and_the_end_is_reached(wanted, existing, registered, there):
    """Whatever there is: no entry that is neither of a table of ours nor noted with its id is touched, and a second look finds
    nothing but what is refused.
    """
    tables = dict(map(stored, existing))
    notes = dict(map(known, registered))
    steps, refused = steps_for(wanted, tables, notes, lambda one: one.dataset in there)
    ids = {one.table_id for one in wanted}
    for step in steps:
        if step.action in (Action.ALTER, Action.RENAME, Action.DROP):
            mark = mark_of(tables[step.name])
            assert mark is not None
            note = notes.get(step.name)
            assert mark.table_id in ids | {note.table_id if note else None}
        if step.action is Action.CREATE:
            assert step.name not in tables
        if step.action in (Action.DROP, Action.RENAME, Action.ALTER):
            del tables[step.name]
        notes.pop(step.name, None)
        if step.entry is not None:
            assert step.entry.name not in tables or step.action is Action.KEEP
            tables[step.entry.name] = table_of(step.entry, None, "ada", 1)
            notes[step.entry.name] = known(step.entry)[1]
    again, still = steps_for(wanted, tables, notes, lambda one: one.dataset in there)
    assert {step.action for step in again} <= {Action.KEEP}
    assert [error.where for error in still] == [error.where for error in refused]


def test_an_entry_without_a_mark_is_never_ours():
    """A table that a user has registered by hand at the same place stays as it is."""
    name, table = stored(A)
    table = {**table, 12: Field(Kind.STRING, "MANAGED_TABLE")}
    steps, refused = steps_for([A], {name: table}, dict([known(A)]), lambda _: False)
    assert (steps, len(refused)) == ([], 1)
