"""Secrets are found whole, in pieces, and inside each other."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support import PNG
from toolyard.core.content import FilePart, ImagePart, LinkPart, TextPart
from toolyard.core.tool import ToolResult, Truncation
from toolyard.runtime.call_steps.results import limited
from toolyard.runtime.redaction import LEAST_LEFT, Redactor

REDACTOR = Redactor({"A_TOKEN": "abcabcd", "B_KEY": "abc", "C": "zz.*"})


def streamed(pieces: list[str], redactor: Redactor = REDACTOR) -> str:
    heard: list[str] = []
    stream = redactor.stream(heard.append)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return "".join(heard)


def test_a_secret_is_replaced_by_its_name():
    assert REDACTOR.redact("x abcabcd y zz.* zzz") == "x [redacted A_TOKEN] y [redacted C] zzz"


def test_the_longest_secret_wins():
    assert REDACTOR.redact("abcabcd abcabc") == "[redacted A_TOKEN] [redacted B_KEY][redacted B_KEY]"


def test_a_secret_is_found_inside_json_too():
    secret = 'a"b\\c\nd-ü'
    redactor = Redactor({"A_TOKEN": secret})
    for text in (secret, json.dumps({"said": secret}), json.dumps({"said": secret}, ensure_ascii=False)):
        assert "[redacted A_TOKEN]" in redactor.redact(text)
        assert "d-" not in redactor.redact(text)


def test_without_secrets_nothing_is_touched():
    assert Redactor({}).redact("anything") == "anything"
    assert not Redactor({"EMPTY": ""}).knows_any


@given(st.lists(st.text(alphabet="abcdz.* ", max_size=6), max_size=12))
def test_in_pieces_it_is_the_same_as_in_one(pieces):
    assert streamed(pieces) == REDACTOR.redact("".join(pieces))


@pytest.mark.parametrize(
    ("secrets", "pieces"),
    [
        (["s7Qx9-Lm42s"], ["s7Qx9-Lm42s", "\n"]),  # its end is its beginning
        (["abcXXabc"], ["abcXXabc", "XXabc"]),
        (["first-one", "e-second"], ["first-one", " "]),  # its end is the beginning of another
        (["first-one", "e-second"], ["first-on", "e", "-second"]),
        (["aaaa"], ["aaa", "aaaaa", "a"]),
        (["abcd", "abcdefgh", "defghi"], ["abcdef", "g", "hi"]),
    ],
)
def test_a_secret_whose_end_may_begin_another_does_not_go_out_in_two_pieces(secrets, pieces):
    redactor = Redactor({f"KEY_{number}": secret for number, secret in enumerate(secrets)})
    said = streamed(pieces, redactor)
    assert said == redactor.redact("".join(pieces))
    assert not any(secret in said for secret in secrets)


@given(st.data())
def test_whatever_the_secrets_and_the_pieces_what_goes_out_is_the_redacted_whole(data):
    # Few letters, so that secrets overlap each other and themselves; none that a mark has in it.
    secrets = data.draw(st.lists(st.text("xyz", min_size=2, max_size=9), min_size=1, max_size=5))
    redactor = Redactor({f"KEY_{number}": secret for number, secret in enumerate(secrets)})
    part = st.one_of(st.sampled_from(secrets), st.text("xyz ", max_size=5))
    whole = "".join(data.draw(st.lists(part, max_size=12)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    said = streamed(pieces, redactor)
    assert said == redactor.redact(whole)
    assert not any(secret in said for secret in secrets)


@given(st.text(alphabet="xyz", min_size=1))
def test_what_cannot_be_a_secret_is_passed_on_at_once(text):
    heard: list[str] = []
    REDACTOR.stream(heard.append).feed(text.replace("z", "y"))
    assert "".join(heard) == text.replace("z", "y")


def test_a_value_is_redacted_however_deep_it_is():
    value = {"a": ["x abcabcd", {"abcabcd": None}], "n": 3}
    assert REDACTOR.redact_all(value) == {"a": ["x [redacted A_TOKEN]", {"[redacted A_TOKEN]": None}], "n": 3}


LONG = Redactor({"KEY": "abcdefghijkl"})
CUT = "\n[... 12 bytes, 0 lines left out ...]\n"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"x abcdef{CUT}ghijkl y", f"x [redacted KEY]{CUT}[redacted KEY] y"),
        (f"x abcdefghijk{CUT}y", f"x [redacted KEY]{CUT}y"),
        (f"x{CUT}bcdefghijkl", f"x{CUT}[redacted KEY]"),
        (f"x abc{CUT}jkl y", f"x abc{CUT}jkl y"),
        (f"abcdefghijkl{CUT}abcdef", f"[redacted KEY]{CUT}abcdef"),
        (f"x{CUT[:-1]}{CUT}fghijkl", f"x{CUT[:-1]}{CUT}[redacted KEY]"),  # a line of a cut that a tool printed
        ("x abcdefghij [9 characters more]\ny", "x [redacted KEY] [9 characters more]\ny"),
        ("x abcdefghij…", "x [redacted KEY]…"),
        ("x abcdef", "x abcdef"),
    ],
)
def test_where_the_middle_was_left_out_no_half_of_a_secret_is_left(text, clean):
    assert LONG.redact_cut(text) == clean


@pytest.mark.parametrize("cut", [CUT, json.dumps(CUT)[1:-1]])
def test_no_field_of_a_result_has_half_of_a_secret_where_something_was_left_out(cut):
    said = f"x abcdefghijk{cut}bcdefghijkl y"
    result = ToolResult(
        text=said,
        truncated=Truncation(omitted_bytes=12, omitted_lines=0),
        data={"stdout": said, "partialStdout": [said], "context": {"stdout": said}},
        attachments=(TextPart(text=said),),
        original={"content": [{"text": said}]},
    )
    for given_result in (result, replace(result, truncated=None)):  # not every kind says so where it failed
        clean = LONG.redact_result(given_result)
        assert clean.text == f"x [redacted KEY]{cut}[redacted KEY] y"
        assert clean.data == {"stdout": clean.text, "partialStdout": [clean.text], "context": {"stdout": clean.text}}
        assert clean.attachments == (TextPart(text=clean.text),)
        assert "cdefg" not in repr(clean)


def test_a_text_that_was_cut_without_a_word_has_no_half_of_a_secret_at_its_end():
    cut = ToolResult(text='{"error": "x abcdefghijk"}', truncated=Truncation(omitted_bytes=12, omitted_lines=0))
    assert LONG.redact_result(cut).text == '{"error": "x [redacted KEY]"}'
    assert LONG.redact_result(replace(cut, truncated=None)).text == cut.text


@pytest.mark.parametrize(
    ("secrets", "text"),
    [
        (["zabcd-and-much-more-of-it", "0123456789-zabcd-9"], f"0123456789-zabcd{CUT}"),  # the longer piece counts
        (["abc", "abcXdefghijk"], f"abcXdefghij{CUT}"),  # one that begins with another
        (["abcdQQQQabcd"], f"abcdQQQQabcd{CUT}abcdQQQQabcd"),  # a whole one whose end is its beginning
        (["much-more-of-it-abcdz", "9-abcdz-0123456789"], f"{CUT}abcdz-0123456789"),
        (["12345678-ab", "ab-87654321"], f"12345678-ab-8765432{CUT}"),
    ],
)
def test_at_a_cut_all_goes_that_belongs_to_any_secret(secrets, text):
    redactor = Redactor({}, *zip("AB", secrets, strict=False))
    clean = redactor.redact_cut(text).replace(CUT, "")
    assert set(clean.replace("[redacted A]", "").replace("[redacted B]", "")) == set()


@given(st.data())
def test_wherever_a_text_is_cut_no_large_piece_of_a_secret_is_left(data):
    # Each letter of the secrets is its own, so that whatever of them is left can be seen.
    secrets = ["abcdefghijklmnop", "ABCDEFGHIJKLMNOPQRSTUVWX", "0123456789"]
    redactor = Redactor({}, *zip("äöü", secrets, strict=True))
    words = data.draw(st.lists(st.sampled_from([*secrets, "~~", "~", " "]), min_size=1, max_size=8))
    text = "".join(words)
    head = data.draw(st.integers(0, len(text)))
    tail = data.draw(st.integers(head, len(text)))
    left = redactor.redact_cut(f"{text[:head]}{CUT}{text[tail:]}").replace(CUT, "|")
    for mark in "äöü":
        left = left.replace(f"[redacted {mark}]", "|")
    assert max(map(len, re.findall(r"[a-zA-Z0-9]+", left)), default=0) < LEAST_LEFT


def test_a_second_cut_through_the_line_of_the_first_shows_no_half_of_a_secret():
    first = f"{'x' * 480}abcdefghijk{CUT}{'y' * 2000}"
    settings = SimpleNamespace(output_limit=492, reads_on=False)  # its cut is 11 characters into the line
    result = ToolResult(text=first, truncated=Truncation(omitted_bytes=12, omitted_lines=0))
    text = LONG.redact_result(limited(result, settings, LONG)).text
    assert "cdefg" not in text
    assert len(text) < 1200


@given(st.data())
def test_a_window_of_a_text_has_nothing_of_a_secret_that_begins_before_it_or_ends_after_it(data):
    # Each letter of the secrets is its own, so that whatever of them is left can be seen.
    secrets = ["abcdefghijklmnop", "ABCDEFGHIJKLMNOPQRSTUVWX", "0123456789"]
    redactor = Redactor({}, *zip("äöü", secrets, strict=True))
    text = "".join(data.draw(st.lists(st.sampled_from([*secrets, "~~", " "]), min_size=1, max_size=8)))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    before, after = text[max(0, start - redactor.longest) : start], text[end : end + redactor.longest]
    seen = redactor.redact_window(before, text[start:end], after)
    for mark in "äöü":
        seen = seen.replace(f"[redacted {mark}]", "")
    assert seen == re.sub("[a-zA-Z0-9]", "", text[start:end])


def test_what_is_attached_has_no_secrets_either():
    image = ImagePart(media_type="image/png", data=PNG)
    attachments = (
        image,
        ImagePart(media_type="image/png", data=PNG + b"abcabcd"),
        FilePart(media_type="application/pdf", data=b"%PDF-1", name="abcabcd.pdf"),
        LinkPart(uri="https://example.org/?key=abcabcd", name="abcabcd"),
    )
    result = REDACTOR.redact_result(ToolResult(text="", attachments=attachments))
    assert "abcabcd" not in repr(result)
    assert result.attachments[0] == image
    assert isinstance(result.attachments[1], TextPart)
    assert "it has [redacted A_TOKEN] in it" in result.attachments[1].text
    assert result.attachments[2:] == (
        FilePart(media_type="application/pdf", data=b"%PDF-1", name="[redacted A_TOKEN].pdf"),
        LinkPart(uri="https://example.org/?key=[redacted A_TOKEN]", name="[redacted A_TOKEN]"),
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("filesecret-ABCDEFG\n", "filesecret-ABCDEFG"),
        ("  filesecret-ABCDEFG", "filesecret-ABCDEFG"),
        ("Bearer hdrsecret-123456", "hdrsecret-123456"),
        ("Authorization: Bearer hdrsecret-123456", "hdrsecret-123456"),
        ("Authorization: Bearer hdrsecret-123456\n", "Bearer hdrsecret-123456"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEF"),
    ],
)
def test_what_is_secret_of_a_value_is_known_without_the_rest(value, shown):
    redacted = Redactor({"KEY": value}).redact(f"a {shown}\nb")
    assert redacted.startswith("a ")
    assert shown not in redacted
    assert redacted.endswith("[redacted KEY]\nb")


def test_words_of_a_secret_that_occur_everywhere_stay():
    redactor = Redactor({"KEY": "correct horse battery staple", "SHORT": "Bearer abc"})
    assert redactor.redact("the battery of a horse, abc Bearer") == "the battery of a horse, abc Bearer"


def test_several_secrets_of_one_name_are_all_known():
    redactor = Redactor({"api_key": "first-secret"}, ("api_key", "second-secret"), ("api_key", "third-secret"))
    assert redactor.redact("first-secret second-secret third-secret") == " ".join(["[redacted api_key]"] * 3)


def test_secrets_are_looked_for_when_the_first_text_comes():
    looked: list[str] = []

    def find():
        looked.append("here")
        return [("A_TOKEN", "abcabcd")]

    redactor = Redactor.late(find)
    assert looked == []
    assert redactor.redact("it is abcabcd") == "it is [redacted A_TOKEN]"
    assert redactor.knows_any
    assert looked == ["here"]
