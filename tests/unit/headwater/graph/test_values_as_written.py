"""What YAML makes of a value is not always what was written: texts of settings stay as they are, or are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.headwater.graph.test_spec_file import fault, spec

from headwater.event_log.redaction import redact_text
from headwater.graph.spec_file import read_spec


@pytest.mark.parametrize("text", ["010", "0x1F", "1_000", "1:30", "1.10", "12", "1.5", "1e3", "-0", ".5"])
@pytest.mark.parametrize("section", ["configuration", "spark"])
def test_numbers_are_texts_as_they_are_written(tmp_path: Path, section: str, text: str):
    """A number under `configuration` or `spark` is the text that stands there, not what YAML counts it as."""
    parsed = read_spec(spec(tmp_path, f"name: a\n{section}: {{a.b: {text}}}\n"), {})
    assert getattr(parsed, section) == {"a.b": text}


def test_merged_numbers_are_as_they_are_written(tmp_path: Path):
    """What `<<` brings from elsewhere is treated alike."""
    text = "name: a\nconfiguration: &c {zip: 01067}\nspark: {<<: *c, x: 1}\n"
    assert read_spec(spec(tmp_path, text), {}).spark == {"zip": "01067", "x": "1"}


@pytest.mark.parametrize("word", ["no", "Yes", "ON", "off"])
@pytest.mark.parametrize("section", ["configuration", "spark", "parameters"])
def test_words_that_yaml_takes_for_truth_values(tmp_path: Path, section: str, word: str):
    """`country: no` would become `false` without a word: it is refused, with its line."""
    error = fault(tmp_path, f"name: a\n{section}:\n  country: {word}\n")
    assert f"`country`: YAML reads {word} as" in error.what
    assert str(error.where).endswith("pipeline.yml:3")
    quoted = read_spec(spec(tmp_path, f'name: a\nconfiguration: {{country: "{word}"}}\n'), {})
    assert quoted.configuration == {"country": word}


def test_truth_values_are_texts(tmp_path: Path):
    """`true` and `false`, in whatever case, are what they were."""
    parsed = read_spec(spec(tmp_path, "name: a\nconfiguration: {a: true, b: False}\n"), {})
    assert parsed.configuration == {"a": "true", "b": "false"}


@pytest.mark.parametrize("number", ["01067", "0x10", "1:30"])
def test_a_parameter_that_yaml_counts_otherwise(tmp_path: Path, number: str):
    """A lone number whose form is not the one that it is counted as is refused: it would be another value."""
    assert f"YAML reads {number} as" in fault(tmp_path, f"name: a\nparameters: {{zip: {number}}}\n").what
    typed = "name: a\nparameters: {zip: {type: integer, default: 10}, rate: 1.50}\n"
    assert set(read_spec(spec(tmp_path, typed), {}).parameters) == {"zip", "rate"}


@pytest.mark.parametrize("text", ["on: x\nname: a\n", "name: a\nconfiguration:\n  on: x\n"])
def test_keys_that_are_no_texts(tmp_path: Path, text: str):
    """A key that YAML takes for a truth value or a number is named, and what to do."""
    error = fault(tmp_path, text)
    assert "The key `on` is no text to YAML" in error.what
    assert "quotes" in error.what


def test_what_is_said_of_a_secret_parameter_can_be_read(tmp_path: Path):
    """The message is not itself taken for a secret where it is shown."""
    error = fault(tmp_path, "name: a\nparameters: {password: x}\n")
    assert "true" in error.what
    assert redact_text(error.what) == error.what
    error = fault(tmp_path, "name: a\ncluster: {secrets: {A: x}}\n")
    assert redact_text(error.what) == error.what
