"""What the checks of a flow's start are given of its target and its sources."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.flow_identity import FlowIdentity, as_text, names_file
from headwater.doctor import start_facts as module


@pytest.mark.parametrize(
    ("format_", "options", "identity"),
    [
        ("kafka", {"topic": "orders"}, "kafka:orders"),
        ("kafka", {"Topic": "orders", "acks": "all"}, "kafka:orders"),
        ("kafka", {}, "kafka:*"),
        ("console", {"topic": "orders"}, "console:out"),
    ],
)
def test_where_a_sink_leads(format_: str, options: dict[str, str], identity: str):
    """A topic by its name, however the option is spelled; a target that names none has each row's; another sink by its own name."""
    target: Any = SimpleNamespace(name="out", sink_format=format_, sink_options=options)
    assert module.destination_id(target, None) == identity


def test_only_what_is_streamed_has_a_position(monkeypatch: pytest.MonkeyPatch):
    """A table that a stream is joined with is read as it is at each batch: it has no place in the offset log."""
    sources = [SimpleNamespace(name=name, streaming=name != "joined") for name in ("one", "joined", "two")]
    monkeypatch.setattr(module, "with_configuration", lambda *_: SimpleNamespace(sources=sources))
    monkeypatch.setattr(module, "_source", lambda entry, *_: entry.name)
    project: Any = SimpleNamespace(configuration={})
    assert module.stream_sources(project, SimpleNamespace()) == ("one", "two")  # type: ignore[arg-type]


def test_under_which_names_a_flow_commits(done: Any):
    """Its own, in a pipeline whose id is another name; or those that it had before."""
    flow = done.flow("silver")

    def identity() -> FlowIdentity | None:
        start = module.flow_start(done.project, done.manifest, flow)
        assert (start.pipeline_id, start.flow, start.dataset) == (
            done.project.pipeline_id,
            "silver",
            flow.target,
        )
        return start.known_identity

    assert identity() == FlowIdentity(done.project.pipeline_id, "silver")
    file = names_file(done.project.state_folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(as_text({f"{flow.target}/silver": FlowIdentity("old", "before")}))
    assert identity() == FlowIdentity("old", "before")
