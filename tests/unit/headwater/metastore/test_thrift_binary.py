"""Values survive their way over the wire; what is no message is named as that."""

from __future__ import annotations

import io
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.metastore.thrift_binary import (
    Field,
    Items,
    Kind,
    Message,
    MessageType,
    NotThrift,
    Pairs,
    message_bytes,
    read_message,
)

SIMPLE = {
    Kind.BOOL: st.booleans(),
    Kind.BYTE: st.integers(-128, 127),
    Kind.I16: st.integers(-(2**15), 2**15 - 1),
    Kind.I32: st.integers(-(2**31), 2**31 - 1),
    Kind.I64: st.integers(-(2**63), 2**63 - 1),
    Kind.DOUBLE: st.floats(allow_nan=False),
    Kind.STRING: st.text(),
}


def of_kind(kind: Kind):
    """Values of a simple type."""
    return SIMPLE[kind]


def lists(kind: Kind):
    """Lists and sets of a simple type."""
    values = st.lists(of_kind(kind), max_size=4).map(lambda found: Items(kind, tuple(found)))
    return st.one_of(values.map(lambda v: Field(Kind.LIST, v)), values.map(lambda v: Field(Kind.SET, v)))


def maps(kind: Kind):
    """Maps from texts to a simple type."""
    values = st.dictionaries(st.text(string.ascii_letters, max_size=4), of_kind(kind), max_size=4)
    return values.map(lambda found: Field(Kind.MAP, Pairs(Kind.STRING, kind, found)))


KINDS = st.sampled_from(sorted(SIMPLE))
LEAVES = st.one_of(
    KINDS.flatmap(lambda k: of_kind(k).map(lambda v: Field(k, v))), KINDS.flatmap(lists), KINDS.flatmap(maps)
)
NUMBERS = st.integers(0, 2**15 - 1)
STRUCTS = st.recursive(
    st.dictionaries(NUMBERS, LEAVES, max_size=4),
    lambda inner: st.dictionaries(NUMBERS, inner.map(lambda s: Field(Kind.STRUCT, s)), max_size=3),
    max_leaves=6,
)


@given(STRUCTS, st.text(max_size=20), st.sampled_from(MessageType))
def test_what_is_sent_is_what_is_read(body, name, kind):
    """Every message comes back as it was, to the last byte."""
    stream = io.BytesIO(message_bytes(Message(kind, name, 7, body)))
    assert read_message(stream.read) == Message(kind, name, 7, body)
    assert stream.read() == b""


def test_a_call_is_the_bytes_that_thrift_documents():
    """The strict binary form: version and type, name, number, fields, the end."""
    call = Message(MessageType.CALL, "f", 1, {1: Field(Kind.STRING, "a"), 2: Field(Kind.BOOL, value=True)})
    expected = "800100010000000166000000010b000100000001610200020100"
    assert message_bytes(call).hex() == expected


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"HTTP/1.1 400 Bad", "0x48545450"),
        (bytes.fromhex("80010009"), "0x80010009"),
        (bytes.fromhex("80010002ffffffff"), "-1 items or bytes"),
        (bytes.fromhex("800100020000000166000000010f00010b7fffffff"), "2147483647 items"),
        (bytes.fromhex("80010002000000016600000001630001"), "no type 99"),
        (bytes.fromhex("80010002000000016600000001") + bytes.fromhex("0c0001") * 60, "without an end"),
    ],
)
def test_other_bytes_are_no_message(data, said):
    """A web server, a damaged answer, and one that wants all memory are each refused."""
    with pytest.raises(NotThrift, match=said):
        read_message(io.BytesIO(data).read)
