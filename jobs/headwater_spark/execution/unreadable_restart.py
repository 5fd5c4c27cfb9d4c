"""A stream that fails over files that can't be read goes on without them, where its table has a quarantine for them."""

from __future__ import annotations

from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import quarantines
from headwater.definitions.flow import Flow
from headwater.event_log.details import FlowStatus
from headwater_spark.execution.failures import cause_messages, passes_by_itself
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.streaming_write import run_stream
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.quarantine.unreadable_files import UnreadableFile, damaged_file, find_unreadable


def run_readable(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    """Run a stream; where a batch fails over files that can't be read, run it again without them.

    What was found is known for this run alone: a batch is committed in both tables, or its files are looked at anew.

    Raises:
        Whatever ``run_stream`` raises; also over a file, where the table has no quarantine.
    """
    left_out: list[UnreadableFile] = []
    while True:
        try:
            run_stream(context, dataset, flow, outcome, tuple(left_out))
        except Exception as error:
            found = _found(context, dataset, flow, error, left_out)
            if not found or context.stop_requested.is_set():
                raise
            left_out += found
            names = ", ".join(file.path.rpartition("/")[2] for file in found[:3])
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            message = f"{flow.name} starts again without files that can't be read, which go to the quarantine: {names}{more}."
            context.say(message)
            context.flow_event(outcome, FlowStatus.STARTING, message)
        else:
            return


def _found(
    context: UpdateContext, dataset: Dataset, flow: Flow, error: Exception, known: list[UnreadableFile]
) -> list[UnreadableFile]:
    messages = cause_messages(error)
    if not quarantines(dataset.expectations) or damaged_file(messages) is None:
        return []
    if passes_by_itself(messages):
        return []
    checkpoint = context.checkpoint(dataset.name, flow.name)
    state = checkpoint.read_state()
    if state is None:
        return []
    with context.pipeline.evaluation.settings(flow, state.state_settings):
        frame = context.pipeline.evaluation.evaluate(flow)
        return find_unreadable(frame, checkpoint.epoch_folder(state.epoch), cause_messages, known)
