"""Pictures, documents and sounds cost by their size."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.tokens import media

OPENAI = media.FAMILIES["openai"]
CLAUDE = media.FAMILIES["anthropic"]


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(100)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(100)


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 60_000) + bytes(59_998)  # metadata before the frame
    return b"\xff\xd8" + exif + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + bytes(100)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + kind + struct.pack("<I", 20) + body + bytes(50)


PICTURES = {
    "png": png(640, 480),
    "gif": gif(640, 480),
    "jpeg": jpeg(640, 480),
    "webp, lossy": webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480)),
    "webp, lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14)),
    "webp, extended": webp(b"VP8X", b"\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("kind", PICTURES)
def test_picture_size__each_format__is_read_from_the_header(kind: str) -> None:
    assert media.picture_size(b64(PICTURES[kind])) == (640, 480)
    assert media.picture_size(f"data:image/x;base64,{b64(PICTURES[kind])}") == (640, 480)


@given(
    data=st.binary(max_size=300),
    head=st.sampled_from([b"", b"\xff\xd8", b"GIF8", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBPVP8 "]),
)
def test_picture_size__any_bytes__is_a_positive_size_or_none(data: bytes, head: bytes) -> None:
    size = media.picture_size(b64(head + data))
    assert size is None or (size[0] > 0 and size[1] > 0)


@given(text=st.text(st.characters()))
def test_picture__any_text_for_data__costs_something(text: str) -> None:
    for family in media.FAMILIES.values():
        assert media.picture(family, text) > 0
        assert media.document(family, text) > 0
        assert media.audio(family, text) > 0


# OpenAI's published examples.
@pytest.mark.parametrize(
    ("size", "detail", "tokens"),
    [((1024, 1024), "high", 765), ((2048, 4096), "auto", 1105), ((4096, 8192), "low", 85), ((500, 500), None, 255)],
)
def test_picture__openai__follows_the_published_examples(
    size: tuple[int, int], detail: str | None, tokens: int
) -> None:
    assert media.picture(OPENAI, b64(png(*size)), detail) == tokens


@pytest.mark.parametrize(("size", "patches"), [((1024, 1024), 1024), ((1800, 2400), 1452), ((32, 32), 1)])
def test_picture__openai_patches__follows_the_published_examples(size: tuple[int, int], patches: int) -> None:
    assert media.picture(media.FAMILIES["o4-mini"], b64(png(*size))) == pytest.approx(patches * 1.72)


@pytest.mark.parametrize(("size", "tokens"), [((200, 200), 54), ((1000, 1000), 1334), ((4000, 4000), 1600)])
def test_picture__claude__is_area_over_750_and_bounded(size: tuple[int, int], tokens: int) -> None:
    assert media.picture(CLAUDE, b64(png(*size))) == tokens


@given(width=st.integers(1, 2**32 - 1), height=st.integers(1, 2**32 - 1))
def test_picture__any_claimed_size__is_bounded(width: int, height: int) -> None:
    """A header can claim anything: what it costs must not follow without end. (Gemini's rule has no bound.)"""
    data = b64(png(width, height))
    for name, family in media.FAMILIES.items():
        if name != "gemini":
            assert 0 < media.picture(family, data) < 75_000


def test_picture__not_in_the_message__is_taken_as_1024_square() -> None:
    assert media.picture(OPENAI, None) == 765


def test_document__pages__are_counted_where_the_file_shows_them() -> None:
    pdf = b"%PDF-1.4 << /Type /Pages /Count 3 >> " + b"<< /Type /Page >> " * 3
    assert media.document(CLAUDE, b64(pdf)) == 3 * CLAUDE.page


def test_audio__wav__is_as_long_as_its_byte_rate_says() -> None:
    head = b"RIFF" + bytes(4) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 24_000, 48_000, 2, 16)
    assert media.audio(OPENAI, b64(head + bytes(480_000 - len(head)))) == pytest.approx(
        10 * OPENAI.second, abs=OPENAI.second
    )
