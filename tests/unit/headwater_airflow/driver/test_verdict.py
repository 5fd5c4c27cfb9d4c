"""Which failures Airflow tries again."""

from __future__ import annotations

import pytest

from headwater_airflow.driver.verdict import judge


def reported(transient, condition="X"):
    return {
        "condition": condition,
        "message": "It broke.",
        "where": "a.py:3",
        "remedy": "Mend it.",
        "transient": transient,
        "help": "docs/page.md#x",
    }


def record(name, *, fatal):
    return {
        "origin": {"flow_name": name},
        "message": "",
        "error": {"fatal": fatal, "exceptions": [{"message": f"{name} broke"}]},
    }


@pytest.mark.parametrize("transient", [True, False])
def test_the_drivers_own_error_decides(transient):
    """An error in the report says itself whether a retry may help, whatever the exit code is."""
    verdict = judge(3, {"error": reported(transient)}, [])
    assert verdict.transient is transient
    assert verdict.message == "[X] It broke.\n  where: a.py:3\n  what to do: Mend it.\n  more: docs/page.md#x"


@pytest.mark.parametrize("code", [2, 3])
def test_invalid_and_refused_updates_are_not_tried_again(code):
    """Without a report, the exit codes for a wrong pipeline and for refusals are final."""
    assert not judge(code, None, []).transient


def test_flows_that_were_refused_are_told():
    """Exit code 3 is final, and the message is that of the flows."""
    verdict = judge(3, {"state": "FAILED", "flows": []}, [record("a", fatal=False)])
    assert not verdict.transient
    assert "a: a broke" in verdict.message


@pytest.mark.parametrize("code", [-9, 137, 143, -15, 1, None])
def test_a_driver_that_died_without_a_word_is_tried_again(code):
    """A kill, a lost machine, a crash before the first event: a retry may help, and nobody recorded the end."""
    verdict = judge(code, None, [])
    assert (verdict.transient, verdict.silent) == (True, True)


def test_a_killed_driver_says_which_signal():
    """The message tells a kill from an exit."""
    assert "signal 9" in judge(137, None, []).message
    assert "signal 9" in judge(-9, None, []).message
    assert "exit code 1" in judge(1, None, []).message


def test_flows_in_the_log_decide_where_there_is_no_report():
    """One flow that failed finally is enough to make the update final."""
    assert judge(1, None, [record("a", fatal=False)]).transient
    verdict = judge(1, {"flows": []}, [record("a", fatal=False), record("b", fatal=True)])
    assert not verdict.transient
    assert "b: b broke" in verdict.message


def test_a_failure_without_its_cause_is_final():
    """A record that does not say whether a retry helps does not promise it."""
    silent = {"origin": {"flow_name": "a"}, "message": "It broke.", "error": None}
    verdict = judge(1, None, [silent])
    assert (verdict.transient, verdict.message) == (False, "a: It broke.")


def test_flows_in_the_report_decide_before_the_log():
    """A report with an error for a flow is used as it is."""
    report = {"flows": [{"flow": "a", "error": reported(True)}, {"flow": "b", "error": None}]}
    verdict = judge(1, report, [record("a", fatal=True)])
    assert verdict.transient
    assert verdict.message.startswith("a: [X] It broke.")


def test_a_stopped_update_is_tried_again():
    """A worker that is shut down stops its driver; nothing is wrong with the pipeline."""
    assert judge(1, {"state": "CANCELED", "flows": [{"flow": "a", "error": None}]}, []).transient


def test_a_report_of_failure_without_reasons_is_final():
    """A driver that ended orderly and gave no reason is not tried again."""
    assert not judge(1, {"state": "FAILED", "flows": []}, []).transient


@pytest.mark.parametrize(
    ("one", "other", "transient"), [(True, True, True), (True, False, False), (False, False, False)]
)
def test_flows_of_a_report(one, other, transient):
    """A retry helps where it may help each flow that failed: one that needs a hand would fail again."""
    flows = [{"flow": name, "dataset": name, "state": "FAILED", "error": reported(may)} for name, may in (("a", one), ("b", other))]  # fmt: skip
    verdict = judge(1, {"update_id": "u", "state": "FAILED", "flows": flows}, [])
    assert verdict.transient is transient
    assert "a: [X]" in verdict.message
    assert "b: [X]" in verdict.message


def test_a_signal_is_a_code_above_128():
    """128 itself is the number of no signal."""
    assert "exit code 128" in judge(128, None, []).message
    assert "killed by signal 9" in judge(137, None, []).message
    assert "killed by signal 9" in judge(-9, None, []).message
