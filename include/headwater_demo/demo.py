"""The demo: the whole path from Kafka and files to gold tables, run by Airflow, on this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import httpx
from rich.console import Console

from headwater.errors import HeadwaterError, UpdateFailed
from headwater.event_log.reader import FlowResult
from headwater_demo.airflow_services import USER
from headwater_demo.dag_updates import DagUpdates
from headwater_demo.results_table import results_table, unread
from headwater_demo.sample_data import Counts, SampleData
from headwater_demo.sample_delivery import ArrivingData
from headwater_demo.stack import LocalStack, local_stack
from headwater_demo.steps import Steps

_PIPELINE = "orders"
SEED = 4
FIRST_LOT, SECOND_LOT = 2000, 500
_SECONDS_BETWEEN_LOTS = 5.0
# An update of the demo takes half a minute; a machine that is busy takes longer.
_LONGEST_END_SECONDS = 180.0


@dataclass
class Demo:
    """One run of the demo.

    Attributes:
        stack: what it runs on.
        console: where it reports.
        data: what it sends.

    """

    stack: LocalStack
    console: Console
    data: SampleData
    sent: list[Counts] = field(default_factory=list)
    results: list[list[FlowResult]] = field(default_factory=list)

    @cached_property
    def following(self) -> DagUpdates:
        """The updates of the pipeline's DAG."""
        return DagUpdates(self.stack.airflow, _PIPELINE, self.stack.storage / "pipelines" / _PIPELINE)

    def run(self) -> None:
        """Bring the stack up and take two updates through it.

        Raises:
            UpdateFailed: if an update failed, or the second did not read exactly what came after the first.

        """
        following = self.following
        with Steps(self.console) as steps:
            self.stack.start(steps, lambda: self._send(FIRST_LOT))
            with steps.step("First update") as step:
                step.say("waiting for the DAG")
                following.begin()
                self.results.append(following.next_update(step))
                step.say(_summary(self.results[-1]))
            with steps.step("More data") as step:
                step.say("waiting until nothing runs")
                following.hold()
                step.say(self._send(SECOND_LOT))
            with steps.step("Second update") as step:
                self.results.append(following.next_update(step))
                step.say(_summary(self.results[-1]))

    def end(self) -> None:
        """Let an update that is under way end, for so long at most, and pause the DAG: the next demo has no failed run to show."""
        try:
            with self.console.status("Letting the update that runs end. Ctrl-C ends it at once."):
                self.following.hold(_LONGEST_END_SECONDS)
        except (HeadwaterError, httpx.HTTPError, KeyboardInterrupt) as error:
            reason = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error).partition("\n")[0]
            self.console.print(
                f"An update may have been cut off ({reason}). The next one goes on from where it stood.",
                soft_wrap=True,
            )

    def report(self) -> None:
        """Print what the updates did.

        Raises:
            UpdateFailed: if the second update did not read exactly what was sent after the first.

        """
        self.console.print(results_table(self.results))
        if wrong := unread(self.sent[-1], self.results[-1]):
            raise UpdateFailed(
                f"the second update read something else than what was sent after the first: {'; '.join(wrong)}",
                where=self.stack.storage / "pipelines" / _PIPELINE / "system" / "events",
                remedy="`python -m headwater events jobs/pipelines/orders` shows each batch",
            )
        self.console.print(
            f"The second update read exactly what was sent after the first: {_sentence(self.sent[-1])}.",
            soft_wrap=True,
        )

    def keep_going(self) -> None:
        """Let data arrive, and Airflow update on its schedule, until interrupted."""
        airflow = self.stack.airflow
        # If the output is not a terminal, it may be a log that others can read.
        password = airflow.password if self.console.is_terminal else f"in {airflow.password_file}"
        self.console.print(f"Airflow: {airflow.address}  (user {USER}, password {password})", soft_wrap=True)
        self.console.print(f"Tables: {self.stack.folder / 'warehouse'}", soft_wrap=True)
        total = sum(self.sent, Counts())

        with self.console.status("Data keeps arriving. Ctrl-C ends everything.") as status:

            def arrived(lot: Counts) -> None:
                nonlocal total
                total += lot
                status.update(f"Data keeps arriving, so far {_sentence(total)}. Ctrl-C ends everything.")

            with ArrivingData(
                self.data, self.stack.destination, seconds=_SECONDS_BETWEEN_LOTS, on_lot=arrived
            ):
                while True:
                    airflow.require_running()
                    time.sleep(1)

    def _send(self, messages: int) -> str:
        self.sent.append(self.stack.destination.deliver(self.data.lot(messages, datetime.now(UTC))))
        return _sentence(self.sent[-1])


def run_demo(checkout: Path, *, once: bool) -> None:
    """Run the demo; its files are in ``<checkout>/.demo``, and a later run goes on from them.

    Args:
        checkout: the project's folder.
        once: end after the second update; otherwise data keeps arriving until Ctrl-C.

    Raises:
        HeadwaterError: if something did not start, or an update failed.

    """
    console = Console()
    started = time.monotonic()
    with local_stack(checkout, checkout / ".demo") as stack:
        demo = Demo(stack, console, SampleData(SEED, f"{datetime.now(UTC):%y%m%d%H%M%S}"))
        demo.run()
        demo.report()
        console.print(f"Two updates after {time.monotonic() - started:.0f} seconds.")
        if once:
            console.print("Ending what was started.")
            demo.end()
            return
        try:
            demo.keep_going()
        except KeyboardInterrupt:
            console.print("Ending what was started. The tables stay; `make demo` goes on from them.")
            demo.end()


def _sentence(sent: Counts) -> str:
    return f"{sent.messages:,} order messages, {sent.clicks:,} clicks, {sent.customers:,} customers"


def _summary(results: list[FlowResult]) -> str:
    return f"{len(results)} flows, {sum(result.output_rows for result in results):,} rows written"
