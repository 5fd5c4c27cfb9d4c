"""No secret is left in a text that is kept, in whatever form it is written."""

from __future__ import annotations

import base64
import json
import re
import time
from urllib.parse import urlparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.event_log.failure import error_column
from headwater.event_log.redaction import (
    MAX_TEXT,
    REDACTED,
    details_json,
    public_address,
    quoted,
    redact,
    redact_text,
    shown,
)
from headwater.runtime import secret_values
from headwater.runtime.secret_values import known_secrets, names_a_secret, note_secret

CANARY = "Hunter2Canary"
NAMES = (
    "password", "kafka.sasl.password", "PASSWD", "pwd", "passphrase", "ssl.key.passphrase", "client_secret", "awsSecretKey",
    "api_key", "apiKey", "accessKey", "fs.azure.account.key.x.dfs.core.windows.net", "sharedAccessKey", "sas", "sig", "token",
    "fs.azure.sas.fixed.token.c.dfs.core.windows.net", "connectionString", "credential", "kafka.ssl.keystore.key", "jaas",
)  # fmt: skip
FORMS = (
    "{name}={value}", "{name} = {value}", "{name}: {value}", "{name} => '{value}'", '{name} => "{value}"', "{name} -> {value}",
    "{name}->{value}", "('{name}', '{value}')", '("{name}", "{value}")', '{{"{name}": "{value}"}}', '{{"{name}":"{value}","b":1}}',
    '{{\\"{name}\\": \\"{value}\\"}}', '{{\\\\\\"{name}\\\\\\": \\\\\\"{value}\\\\\\"}}', "https://h/p?a=b&{name}={value}&c=d",
    "`{name}` = '{value}'", "Map({name} -> {value}, a -> b)", "[{name}={value},a=b]", "OPTIONS ('{name}' '{value}')",
    "OPTIONS ({name} '{value}')", 'OPTIONS (url "u", {name} "{value}")', "{{'{name}': '{value}'}}",
)  # fmt: skip
WHOLE = (
    "Authorization: Bearer {value}.{value}", "authorization=Basic {value}", '{{"Authorization": "Bearer {value}"}}',
    "curl -H 'Authorization: SharedKey account:{value}'", "got Bearer {value}{value}", "redis://:{value}@host:6379/0",
    "jdbc:postgresql://user:{value}@host/db", "amqp://user:pa@{value}@host", "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey={value}=",
    'PlainLoginModule required username="$ConnectionString" password="Endpoint=sb://n/;SharedAccessKey={value}";',
    "kafka.ssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIIE{value}\nabc\n-----END PRIVATE KEY-----",
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\\nMIIE{value}\\nabc\\n-----END ENCRYPTED PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\n{value} and no end",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_value_behind_a_secrets_name(name, form):
    """Every form in which options, plans, JSON and SQL put a value behind its name."""
    text = "before " + form.format(name=name, value=CANARY) + " after"
    redacted = redact_text(text)
    assert CANARY not in redacted
    assert REDACTED in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


@pytest.mark.parametrize("text", WHOLE)
def test_forms_of_their_own(text):
    """Keys in PEM, headers, addresses, connection strings."""
    assert CANARY not in redact_text("before " + text.format(value=CANARY) + " after")


PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)


@given(
    before=PLAIN, after=PLAIN, name=st.sampled_from(NAMES), form=st.sampled_from(FORMS), twice=st.booleans(),
    value=st.text("abcXYZ019+/._-=!$%", min_size=1, max_size=12),
)  # fmt: skip
def test_the_canary_never_survives(before, after, name, form, twice, value):
    """Whatever stands around it, once or twice, and with whatever signs in it: of what came after the name nothing is left."""
    secret = f"{CANARY}{value}{CANARY}"
    text = f"{before} {form.format(name=name, value=secret)} {after}"
    text = text + text if twice else text
    assert CANARY not in redact_text(text)


@given(text=st.text("ab=:\"\\'`,>- \n/@{}[]secrtokn", max_size=80))
def test_any_text_can_be_redacted(text):
    """Nothing raises, and what was redacted once stays as it is when its names have no value left."""
    assert isinstance(redact_text(text), str)


@given(
    value=st.text(min_size=secret_values.MIN_LENGTH, max_size=40).filter(lambda text: len(text.strip()) >= 6)
)
def test_a_known_value_is_taken_out_wherever_it_stands(value):
    """A secret that the process knows needs no name before it, as it is and as JSON spells it."""
    text = f"the driver said {value} at line 3"
    environment = {"HEADWATER_SECRET_A": value}
    for spelled in (text, json.dumps(text)[1:-1]):
        left = spelled
        for one in known_secrets(environment):
            left = left.replace(one, "")
        assert value not in left
        assert json.dumps(value)[1:-1] not in left


def test_values_of_the_environment(monkeypatch):
    """HEADWATER_SECRET_* and variables that are named like secrets are known; those that name places are not."""
    monkeypatch.setenv("HEADWATER_SECRET_HUB_KEY", "value-of-dbutils")
    monkeypatch.setenv("BROKER_PASSWORD", "value-of-broker")
    monkeypatch.setenv("PWD", "/srv/work")
    monkeypatch.setenv("ADMIN_PASSWORD_FILE", "/srv/passwords")
    redacted = redact_text("value-of-dbutils value-of-broker /srv/work /srv/passwords")
    assert redacted == f"{REDACTED} {REDACTED} /srv/work /srv/passwords"


def test_a_noted_value(monkeypatch):
    """What was read from a variable of any name is known once it was noted; short words never are."""
    monkeypatch.setattr(secret_values, "_noted", set())
    note_secret("odd-name-value")
    note_secret("main")
    note_secret(None)
    assert redact({"a": ["odd-name-value in main"], "b": ("x odd-name-value",)}) == {
        "a": [f"{REDACTED} in main"],
        "b": [f"x {REDACTED}"],
    }


def test_names_that_hold_no_secret():
    """Ordinary settings keep their values."""
    plain = (
        "spark.sql.shuffle.partitions",
        "topic",
        "path",
        "startingOffsets",
        "primary_key",
        "key",
        "passenger",
        "signal",
    )
    assert not [name for name in plain if names_a_secret(name)]
    text = "topic=orders, path -> /data/in, key: 7, signal=5, http://host:8080/a, [1] https://a/b@c"
    assert redact_text(text) == text


def test_secrets_by_the_names_of_keys():
    """In details the name of a key decides, for a list as for a text; numbers are counts."""
    redacted = redact({"api_key": "x", "tokens": ["x", 5], "num_tokens": 3, "a": {"pwd": "y"}})
    assert redacted == {"api_key": REDACTED, "tokens": [REDACTED, 5], "num_tokens": 3, "a": {"pwd": REDACTED}}


def test_a_plan_with_all_its_options():
    """What Spark prints of a source since 4.2, as the event log keeps it."""
    plan = f'StreamingRelationV2 kafka, [subscribe=t,kafka.sasl.jaas.config=Plain required password="{CANARY}";,kafka.ssl.keystore.key=-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----,a=b], [key#1]'
    kept = json.loads(details_json({"flow_definition": {"explain_text": plan}}))["flow_definition"][
        "explain_text"
    ]
    assert CANARY not in kept
    assert "subscribe=t" in kept
    assert "a=b], [key#1]" in kept


def test_a_quote_within_a_value_of_sql():
    """It is doubled there, and ends nothing; the value ends where it ends, also right behind one."""
    for value in ("a''b", "a''", "''"):
        for before in ("'password' = ", "OPTIONS (db.password "):
            text = redact_text(f"{before}'{value}', 'path' = '/in'")
            assert text == f"{before}'{REDACTED}', 'path' = '/in'"
    plain = "Syntax error at token 'x' (line 3), the password 'is' missing"
    assert redact_text(plain) == plain


def test_long_texts_within_details_are_cut():
    """Wherever they lie: the record stays JSON, of a size that a log can have."""
    long = "é" * MAX_TEXT
    kept = json.loads(details_json({"a": long, "b": [{"c": long, "n": 1}], "d": "short"}))
    assert {len(text.encode()) <= MAX_TEXT for text in (kept["a"], kept["b"][0]["c"])} == {True}
    assert kept["a"].endswith(f"... (cut, {2 * MAX_TEXT} bytes)")
    assert (kept["b"][0]["n"], kept["d"]) == (1, "short")


def test_json_in_a_text_stays_json():
    """A reader of the record may parse it."""
    inner = json.dumps({"password": 'a"b\\c', "n": 1, "deep": json.dumps({"token": "x", "b": "y"})})
    redacted = json.loads(redact_text(inner))
    assert redacted["password"] == REDACTED
    assert json.loads(redacted["deep"]) == {"token": REDACTED, "b": "y"}


def test_a_long_text_is_cut_before_it_is_searched(monkeypatch):
    """Of a text of megabytes a record keeps the beginning, and a secret that the cut goes through is not half shown."""
    monkeypatch.setenv("HEADWATER_SECRET_A", CANARY * 3)
    whole = shown("a" * (16 * MAX_TEXT - 20) + CANARY * 3 + "b" * 10**6)
    assert len(whole.encode()) <= MAX_TEXT
    assert "(cut, " in whole
    shrunk = shown("password='" + "a" * (16 * MAX_TEXT - 40) + "' " + CANARY * 3 + "b" * 10**6)
    assert "Hunter2" not in shrunk


def test_an_error_with_its_causes(monkeypatch):
    """The column of errors redacts each message of the chain by name and by value."""
    monkeypatch.setenv("HEADWATER_SECRET_A", CANARY)
    error = RuntimeError(f"said {CANARY}")
    error.__cause__ = ValueError("awsSecretKey => 'x1y2z3'")
    text = json.dumps(error_column(error))
    assert CANARY not in text
    assert "x1y2z3" not in text


HOSTILE = {
    "unclosed quotes": 'token=\\" ',
    "unclosed plain quotes": 'token="',
    "names alone": "secret",
    "addresses": "://a:",
    "addresses with at": "://a:b@",
    "keys that begin": "-----BEGIN PRIVATE KEY-----",
    "keys that end": "-----END PRIVATE KEY ",
    "backslashes": "token\\\\\\\\",
    "backslashes as values": 'token="\\\\\\\\',
    "arrows": "password-",
    "blanks": "token   ",
    "single quotes": "token='a''",
    "schemes": "Bearer aaaaaaaaaaaaaaa ",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_work_grows_with_the_text_alone(piece):
    """Eight times as much of the worst text takes no more than some eight times as long, not 64 times."""

    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            redact_text(text)
            best = min(best, time.process_time() - start)
        return best

    short, long = seconds(20_000), seconds(160_000)
    assert long < 30 * max(short, 0.001)


def test_the_pattern_for_java_is_one_for_python(monkeypatch):
    """One pattern recognises names on both sides."""
    assert re.compile(f"(?i){secret_values.NAMES_OF_SECRETS}").search("spark.hadoop.fs.azure.account.key.x")
    monkeypatch.setenv("HEADWATER_SECRET_A", base64.b64encode(b"abcdefgh").decode())
    assert redact_text("YWJjZGVmZ2g=") == REDACTED


@pytest.mark.parametrize(
    ("address", "left"),
    [
        (f"s3a://AKIA:{CANARY}@bucket/in", "s3a://bucket/in"),
        (f"s3a://AKIA:pa@{CANARY}@bucket/in", "s3a://bucket/in"),
        ("abfss://container@lake.dfs.core.windows.net/in", "abfss://container@lake.dfs.core.windows.net/in"),
        (f"https://h/a?sv=1&sig={CANARY}&b=2", f"https://h/a?sv=1&sig={REDACTED}&b=2"),
        ("hdfs://name:8020/in/a:b@c", "hdfs://name:8020/in/a:b@c"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
    ],
)
def test_an_address_stays_one(address, left):
    """Without its login it is still an address that can be parsed; a container and a port are not a login."""
    assert public_address(address) == left
    assert urlparse(left).path.startswith("/")


def test_an_error_of_others_is_quoted_without_secrets():
    """By type and message, also where it says nothing."""
    assert quoted(ValueError(f"password={CANARY} in a")) == f"ValueError: password={REDACTED} in a"
    assert quoted(KeyError()) == "KeyError"
