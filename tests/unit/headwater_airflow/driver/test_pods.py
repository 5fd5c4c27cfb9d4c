"""Driver pods: followed to their end, with patience for an API that is away, and none for a container that can't start."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater_airflow.driver.cluster_api import Answer, Api, pod

from headwater.runtime.conditions import ClusterUnreachable, DriverPodNotStarted
from headwater_airflow.driver.pods import Pod, free_name

LOG = logging.getLogger("task")


def test_a_pod_is_followed_to_its_end():
    """What it ended with is that of its container; a pod that is created, or pulls its image, is waited for."""
    api = Api(
        d=[
            pod("d", "Pending"),
            pod("d", "Pending", "ContainerCreating"),
            pod("d"),
            pod("d", "Failed", code=2),
        ]
    )
    ended = api.of_shop.wait_for_end("d", LOG)
    assert ended == Pod("d", "Failed", 2, "", "Error, exit code 2")
    assert api.slept == 30
    assert not api.removed


def test_a_pod_that_was_removed_has_no_end():
    """Somebody deleted it, or its node is gone for good."""
    assert Api().of_shop.wait_for_end("d", LOG) is None


def test_a_container_that_can_not_start_is_given_up():
    """After five minutes of the same trouble, with its reason; the pod is removed, so that a retry begins anew."""
    api = Api(d=[pod("d", "Pending", "ImagePullBackOff")])
    with pytest.raises(DriverPodNotStarted, match="ImagePullBackOff: because") as caught:
        api.of_shop.wait_for_end("d", LOG)
    assert caught.value.transient
    assert api.removed == ["d"]
    assert 300 <= api.slept <= 320


def test_trouble_that_passes_is_not_counted_together():
    """A registry that is away now and then ends nothing."""
    bad, good = pod("d", "Pending", "ErrImagePull"), pod("d", "Pending", "ContainerCreating")
    api = Api(d=[*[bad] * 20, good, *[bad] * 20, pod("d", "Succeeded", code=0)])
    ended = api.of_shop.wait_for_end("d", LOG)
    assert ended is not None
    assert ended.exit_code == 0


def test_a_pod_without_a_node_is_waited_for():
    """Nodes may be on their way; how long that may take is the task's own limit."""
    api = Api(d=[*[pod("d", "Pending")] * 100, pod("d", "Succeeded", code=0)])
    assert api.of_shop.wait_for_end("d", LOG) is not None


@pytest.mark.parametrize(
    "trouble", [Answer(500), Answer(429), ConnectionError("away"), ValueError("no JSON")]
)
def test_an_api_that_is_away_ends_nothing(trouble: Exception):
    """A minute without answers is waited out."""
    api = Api(d=[*[trouble] * 6, pod("d", "Succeeded", code=0)])
    assert api.of_shop.wait_for_end("d", LOG) is not None
    assert api.slept == 60


def test_an_api_that_stays_away_is_said():
    """The driver may run on, so the error is one that a retry may help."""
    api = Api(d=[ConnectionError("away")])
    with pytest.raises(ClusterUnreachable, match="ConnectionError: away") as caught:
        api.of_shop.wait_for_end("d", LOG)
    assert caught.value.transient
    assert api.slept == 300


def test_a_refusal_is_said_at_once():
    """In the words of the API server, without its headers."""
    api = Api(d=[Answer(403, '{"message": "pods is forbidden: airflow can not list them"}')])
    with pytest.raises(ClusterUnreachable, match="pods is forbidden: airflow can not list them"):
        api.of_shop.wait_for_end("d", LOG)
    assert not api.slept


def test_pods_come_by_their_age():
    """The newest is the last."""
    api = Api(b=[pod("b", at=2)], a=[pod("a", at=1)])
    assert [each.name for each in api.of_shop.labelled("x=y")] == ["a", "b"]
    assert api.selectors == ["x=y"]


def test_a_pod_without_a_state_is_pending():
    """The API leaves out what it does not know yet."""
    bare = SimpleNamespace(
        metadata=SimpleNamespace(name="d"), status=SimpleNamespace(phase=None, container_statuses=None)
    )
    assert Pod.of(bare) == Pod("d", "Pending")
    assert not Pod.of(bare).stuck


@given(st.lists(st.sampled_from(["d", "d-2", "d-3", "d-4", "e"]), unique=True))
def test_a_name_is_free_and_the_same_for_everybody(taken: list[str]):
    """Two who start a driver at once choose one name, so that the API server lets one of them; one that is taken is not chosen."""
    chosen = free_name("d", taken)
    assert chosen not in taken
    assert chosen == free_name("d", reversed(taken))
    assert chosen == "d" or {"d", *(f"d-{n}" for n in range(2, int(chosen[2:])))} <= set(taken)
