"""Which variables have their value from the clock is read off the text of a source that was run."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from headwater.definitions.clock_at_load import clocked, note_clocked
from headwater.definitions.clock_in_code import may_ask_the_clock


def loaded(text: str, name: str = "transformations.main") -> ModuleType:
    """A source that was run."""
    module = ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    note_clocked(vars(module), text)
    return module


@pytest.fixture
def days(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module beside the sources."""
    module = loaded("from datetime import date\nDAY = date.today()\nLATE = 1", "days")
    module.__file__ = "days.py"
    monkeypatch.setitem(sys.modules, "days", module)


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize(
    "text",
    [
        "TODAY = date.today()",
        "NOW = datetime.now()\nTODAY = NOW.date()",
        "TODAY = first = str(date.today())",
        "def day():\n    return date.today()\nTODAY = day()",
        "if date.today().day == 1:\n    TODAY = 1\nelse:\n    TODAY = 2",
        "try:\n    TODAY = date.today()\nexcept ValueError:\n    pass",
        "TODAY = {}\nTODAY['day'] = date.today()",
        "for TODAY in [date.today()]:\n    pass",
        "class TODAY:\n    day = date.today()",
        "from days import DAY as TODAY",
        "import days\nTODAY = days.DAY",
    ],
)
def test_a_day_that_is_taken_when_the_source_is_loaded(text: str):
    """However it comes into the variable, a function that reads that may have another query tomorrow; one that does not, has not."""
    functions = "\nOTHER = 1\ndef f():\n    return TODAY\ndef g():\n    return OTHER"
    module = loaded(f"from datetime import date, datetime\n{text}{functions}")
    assert may_ask_the_clock(module.f)
    assert not may_ask_the_clock(module.g)


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize(
    "text",
    [
        "DAY = date(2026, 1, 1)",
        "from days import LATE as DAY",
        "if date.today():\n    other = 1\nDAY = 1",
    ],
)
def test_days_that_stay(text: str):
    """A day that the source says is the same one tomorrow."""
    module = loaded(f"from datetime import date\n{text}\ndef f():\n    return DAY")
    assert not may_ask_the_clock(module.f)


@pytest.mark.usefixtures("days")
def test_variables_of_a_module_beside_the_sources():
    """A function that reads one by the module's name is looked at likewise."""
    module = loaded("import days\ndef f():\n    return days.DAY\ndef g():\n    return days.LATE")
    assert may_ask_the_clock(module.f)
    assert not may_ask_the_clock(module.g)


def test_text_that_is_no_python():
    """Nothing is known of it, and nothing is raised."""
    module = ModuleType("broken")
    note_clocked(vars(module), "def")
    assert clocked(vars(module)) == frozenset()


@pytest.mark.parametrize(
    ("text", "may_ask"),
    [
        ("def f(day=date.today()):\n    return day", True),
        ("def f(day=date(2026, 1, 1)):\n    return day", False),
        ("made = []\ndeclare(date.today())\nf = made[0]", True),
        ("made = []\nfor day in [date.today()]:\n    declare(day)\nf = made[0]", True),
        ("made = []\nfor day in [1]:\n    declare(day)\nf = made[0]", False),
    ],
)
def test_a_day_that_a_function_was_made_with(text: str, may_ask: bool):
    """As a default, or by a function that declares datasets and was given the day."""
    declare = "def declare(day):\n    def dataset():\n        return day\n    made.append(dataset)\n"
    module = loaded(f"from datetime import date\n{declare}{text}")
    assert may_ask_the_clock(module.f) is may_ask
