"""What a worker gets of a pipeline's modules that a Python function uses."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark import cloudpickle

from headwater_spark.loader.pipeline_modules import pipeline_modules

MODULES = {
    "rates.py": """
import lib.rounding
VAT = 0.25
frame = spark
def tax(x):
    return lib.rounding.to_cents(x * VAT)
def of_the_driver():
    return spark.table("rates")
def itself():
    import sys
    return VAT
class Money:
    currency = "EUR"
""",
    "lib/rounding.py": "import rates\nDIGITS = 2\ndef to_cents(x):\n    return round(x, DIGITS)\ndef vat():\n    return rates.VAT\n",
    "main.py": """
import lib.rounding, rates
def gross(x):
    return rates.tax(x) + rates.VAT + lib.rounding.DIGITS + lib.rounding.vat(), rates.Money.currency, sorted(n for n in vars(rates) if n[0] != "_")
def uses_the_session(x):
    return spark.table(x)
""",
}


class OfTheDriver:
    """What no worker can have."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipeline's folder with modules that use each other, one of them in a folder of its own."""
    for name, text in MODULES.items():
        path = tmp_path / "pipeline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "pipeline"


def on_a_worker(data: Path) -> str:
    """What the function in a file gives for 10, in a process that knows nothing of the pipeline."""
    program = (
        f"from pyspark import cloudpickle; print(cloudpickle.loads(open({str(data)!r}, 'rb').read())(10))"
    )
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def test_a_function_that_uses_modules(folder: Path, tmp_path: Path):
    """It has their values, functions and classes, also where they import each other, and not what is bound to the session."""
    session = OfTheDriver()
    with pipeline_modules([folder], {"spark": session, "dbutils": "the driver's"}):
        import main

        data = tmp_path / "function"
        data.write_bytes(cloudpickle.dumps(main.gross))
        with pytest.raises(TypeError, match="lock"):
            cloudpickle.dumps(main.uses_the_session)
        assert main.spark is session
    assert on_a_worker(data) == "(5.0, 'EUR', ['Money', 'VAT', 'itself', 'lib', 'tax'])"
