"""A stream that a source starts itself is answered with the declaration that does the same."""

from __future__ import annotations

from types import SimpleNamespace

from headwater_spark.facade.declared_forms import StreamOfItsOwn, declared_form, note, noted


def test_a_table():
    """A named table becomes a declared one; without a name there is a gap to fill in."""
    assert '@dp.table(name="bronze.events")\n      def events():' in declared_form(
        StreamOfItsOwn(), "bronze.events"
    )
    assert "def name_of_the_table():" in declared_form(StreamOfItsOwn(), "")


def test_a_function_for_each_batch():
    """The function becomes a sink of its name, and the rows a flow into it, not a table."""
    form = declared_form(StreamOfItsOwn(batch_function="upsertToDelta", format="delta"), "")
    assert "@dp.foreach_batch_sink\n      def upsertToDelta(batch_df, batch_id):" in form
    assert '@dp.append_flow(target="upsertToDelta")' in form
    assert "@dp.table" not in form


def test_messages():
    """A query that writes messages becomes a sink of that format."""
    assert 'dp.create_sink(name="messages", format="kafka"' in declared_form(
        StreamOfItsOwn(format="kafka"), ""
    )


def test_the_trigger():
    """What the query said about its trigger is said as the key of pipeline.yml."""
    says = {
        "processingTime": ("30 seconds", "trigger: {processing_time: 30 seconds, run_for: 30 minutes}"),
        "once": (True, "trigger: available_now"),
        "availableNow": (True, "trigger: available_now"),
    }
    for name, (value, text) in says.items():
        assert text in declared_form(StreamOfItsOwn(trigger={name: value}), "t")


def test_notes_add_up():
    """A writer remembers each thing that it is given."""
    writer = SimpleNamespace()
    assert noted(writer) == StreamOfItsOwn()
    note(writer, format="delta")
    note(writer, batch_function="f")
    assert noted(writer) == StreamOfItsOwn("f", "delta")
