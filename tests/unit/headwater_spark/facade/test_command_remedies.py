"""A command in spark.sql is refused with what says the same in a Python source."""

from __future__ import annotations

import pytest

from headwater_spark.facade.command_remedies import python_form


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CREATE SCHEMA IF NOT EXISTS main.shop", "made with the first table"),
        ("  create database shop", "made with the first table"),
        ("ALTER TABLE t SET TBLPROPERTIES (delta.enableChangeDataFeed = true)", "table_properties={...}"),
        ("-- once\nCOMMENT ON TABLE t IS 'x'", "comment="),
        ("/* a */ CREATE TABLE student (id INT)", "dp.create_streaming_table"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "@dp.temporary_view"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "spark.udf.register"),
        ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "dp.create_auto_cdc_flow"),
        ("INSERT INTO t VALUES (1)", "@dp.append_flow"),
        ("OPTIMIZE t", "headwater maintenance"),
        ("REFRESH TABLE t", "Leave it out"),
        ("DROP TABLE t", "headwater drop"),
        ("GRANT SELECT ON t TO u", "rights"),
        ("CALL p()", "a source only describes queries"),
    ],
)
def test_each_command_has_its_form(text: str, says: str):
    """By how it begins, behind comments and in any letter case; one that is not known has the general remedy."""
    assert says in python_form(text)
