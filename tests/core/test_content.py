"""Parts are what their bytes are, within bounds; those who only read are told of each."""

from __future__ import annotations

import pytest

from support import PNG
from toolyard.core.content import (
    LARGEST_PART,
    MOST_PARTS,
    AudioPart,
    FilePart,
    ImagePart,
    LinkPart,
    TextPart,
    checked,
    media_type_of,
    part_of,
    text_and_attachments,
    text_of,
)

IMAGE = ImagePart(media_type="image/png", data=PNG)
LINK = LinkPart(uri="https://example.org/a")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x01\n\x02\x03WEBPVP8 ", "image/webp"),
        (b"RIFF\x01\n\x02\x03WAVEfmt ", "audio/wav"),
        (b"ID3\x04rest", "audio/mpeg"),
        (b"\xff\xfbrest", "audio/mpeg"),
        (b"OggSrest", "audio/ogg"),
        (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"RIFF\x01\x02\x03\x04AVI ", None),
        (b"a PNG, by its name only", None),
        (b"ID3 is a tag", None),
        (b"GIF", None),
        (b"", None),
        (b"\xff\xfet\0e\0x\0t\0", None),
    ],
)
def test_the_first_bytes_say_what_something_is(data, media_type):
    assert media_type_of(data) == media_type
    part = part_of(data, name="a")
    assert (part.media_type if part else None) == media_type


def test_bytes_become_the_part_that_they_are():
    assert isinstance(part_of(PNG), ImagePart)
    assert isinstance(part_of(b"OggS"), AudioPart)
    assert part_of(b"%PDF-1", name="a.pdf") == FilePart(media_type="application/pdf", data=b"%PDF-1", name="a.pdf")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([TextPart(text="a"), TextPart(text="b"), IMAGE], "a\nb"),
        ([IMAGE, LINK], ""),
        ([IMAGE, TextPart(text="left\n"), IMAGE, TextPart(text="right")], "[1: image]\nleft\n[2: image]\nright"),
        ([], ""),
    ],
)
def test_text_is_all_text_and_says_where_the_rest_stood_only_if_it_stood_between(parts, text):
    said, attachments = text_and_attachments(parts)
    assert said == text
    assert attachments == tuple(part for part in parts if not isinstance(part, TextPart))


def test_who_only_reads_is_told_of_everything():
    file = FilePart(media_type="application/pdf", data=b"%PDF-1", name="a.pdf")
    assert text_of([TextPart(text="a"), file, LinkPart(uri="https://example.org", name="b")]) == (
        "a\n[file a.pdf: application/pdf, 6 bytes]\n[link: b, https://example.org]"
    )


def test_a_part_gets_the_type_of_its_content_and_what_is_something_else_is_left_out():
    wrong = ImagePart(media_type="image/jpeg", data=PNG)
    sound = ImagePart(media_type="image/png", data=b"OggS")
    drawing = ImagePart(media_type="image/svg+xml", data=b"<svg/>")
    none = ImagePart(media_type="image/png", data=b"<html>")
    note = TextPart(text="[image: image/png, 6 bytes; left out, since its content is broken or something else]")
    assert checked([wrong, none, sound, drawing]) == [
        IMAGE,
        note,
        AudioPart(media_type="audio/ogg", data=b"OggS"),
        drawing,
    ]


def test_no_more_is_carried_than_a_request_could():
    large = ImagePart(media_type="image/png", data=PNG + bytes(LARGEST_PART))
    fitting = ImagePart(media_type="image/png", data=PNG + bytes(LARGEST_PART - len(PNG)))
    first, second, third, fourth = checked([large, fitting, fitting, fitting])
    assert (second, third) == (fitting, fitting)
    for note in (first, fourth):
        assert isinstance(note, TextPart)
        assert "8 MiB in one part and 20 MiB together" in note.text
    parts = checked([TextPart(text="a"), *[LINK] * (MOST_PARTS + 2), TextPart(text="b")])
    assert [type(part) for part in parts] == [TextPart, *[LinkPart] * MOST_PARTS, TextPart, TextPart, TextPart]


@pytest.mark.parametrize(
    "data",
    [
        PNG[:-12],
        b"\xff\xd8\xff\xe0 and so on",
        b"GIF89a and so on",
        b"RIFF\xff\0\0\0WEBP and so on",
    ],
)
def test_a_picture_that_was_still_being_written_is_left_out(data):
    media_type = media_type_of(data)
    assert media_type is not None
    (note,) = checked([ImagePart(media_type=media_type, data=data)])
    assert isinstance(note, TextPart)
    assert "broken" in note.text


@pytest.mark.parametrize(
    "data", [PNG, b"\xff\xd8\xff\xe0 \xff\xd9", b"GIF89a ;", b"RIFF\x05\0\0\0WEBP ", b"MM\0*", b"OggS", b"%PDF-1"]
)
def test_what_is_whole_or_cannot_be_told_is_kept(data):
    part = part_of(data)
    assert part is not None
    assert checked([part]) == [part]
