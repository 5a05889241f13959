"""JSON that keeps what is no text, such as names of files in another encoding."""

from __future__ import annotations

import os

import msgspec
import pytest

from toolyard.core.lossless_json import decode_json, encode_json


class Kept(msgspec.Struct):
    """Something with a name of a file."""

    path: str


@pytest.mark.parametrize("name", [b"plain", "\u00fc\U0001f600".encode(), b"\xff\xfe", b"\xed\xa0\x80"])
def test_any_name_of_a_file_comes_back(name):
    kept = Kept(path=os.fsdecode(name))
    assert os.fsencode(decode_json(encode_json(kept), Kept).path) == name


@pytest.mark.parametrize("data", [b"{", b'{"path": "\\udcff"', b'{"path": 1, "x": "\\udcff"}', b"\xff"])
def test_what_is_no_json_or_of_another_type_is_refused(data):
    with pytest.raises(msgspec.DecodeError):
        decode_json(data, Kept)
