"""What the linter asks a plan."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from headwater_spark.linting.flow_case import watermark_of


class _Attribute:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def metadata(self):
        raise self.error


def test_an_expression_without_metadata():
    """It carries no watermark; an error that the JVM did not throw is not taken for that."""
    assert watermark_of(_Attribute(Py4JError("Method metadata([]) does not exist"))) is False
    with pytest.raises(TypeError):
        watermark_of(_Attribute(TypeError("ours")))
