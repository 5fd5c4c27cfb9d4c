"""What a source declares in place of a stream that it would start itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_NOTED = "_headwater_stream"


@dataclass(frozen=True)
class StreamOfItsOwn:
    """What a source has said about a stream before it starts it.

    Args:
        batch_function: what is given to ``foreachBatch``, by name.
        format: of the sink; empty where none is named.
        trigger: the arguments of ``trigger``.

    """

    batch_function: str = ""
    format: str = ""
    trigger: Mapping[str, Any] | None = None


def noted(writer: object) -> StreamOfItsOwn:
    """What has been said to a writer so far."""
    stream: StreamOfItsOwn = getattr(writer, _NOTED, StreamOfItsOwn())
    return stream


def note(writer: object, **said: Any) -> None:
    """Remember what a writer is given."""
    setattr(writer, _NOTED, replace(noted(writer), **said))


def declared_form(stream: StreamOfItsOwn, table: str) -> str:
    """The remedy for a stream that a source starts: what to write instead. ``table``: where it would write, if that has a name."""
    if stream.batch_function:
        return (
            f"Declare the function as a sink, and a flow that feeds it:\n"
            f"      @dp.foreach_batch_sink\n"
            f"      def {stream.batch_function}(batch_df, batch_id):\n"
            f"          ...\n"
            f'      @dp.append_flow(target="{stream.batch_function}")\n'
            f"      def rows_of_{stream.batch_function}():\n"
            f"          return df\n"
            f"    A merge by key needs no function: dp.create_auto_cdc_flow. {_kept(stream)}"
        )
    if stream.format.lower() in ("kafka", "eventhubs"):
        return (
            f"Declare a sink, and a flow that feeds it:\n"
            f'      dp.create_sink(name="messages", format="{stream.format}", options={{...}})\n'
            f'      @dp.append_flow(target="messages")\n'
            f"      def rows_of_messages():\n"
            f"          return df\n"
            f"    {_kept(stream)}"
        )
    arguments = f'(name="{table}")' if table else ""
    return (
        f"Return the DataFrame from a function that declares the table:\n"
        f"      @dp.table{arguments}\n"
        f"      def {table.rpartition('.')[2] or 'name_of_the_table'}():\n"
        f"          return df\n"
        f"    {_kept(stream)}"
    )


def _kept(stream: StreamOfItsOwn) -> str:
    given = stream.trigger or {}
    if given.get("processingTime"):
        how = f"trigger: {{processing_time: {given['processingTime']}, run_for: 30 minutes}}"
    elif given.get("once") or given.get("availableNow"):
        how = "trigger: available_now"
    else:
        how = "trigger"
    return f"The pipeline keeps the checkpoint; pipeline.yml says how often ({how})."
