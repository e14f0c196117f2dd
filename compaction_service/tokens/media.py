"""What pictures, documents and sounds cost, from their size: their base64 is never counted as text (semantics 3).

The figures are the providers' published formulas. Sizes are read from the first bytes of inline data; what only has an
address or a file id gets a documented assumption.
"""

from __future__ import annotations

import re
import struct
from binascii import a2b_base64
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, sqrt

Size = tuple[int, int]  # width, height in pixels

ASSUMED_SIZE: Size = (1024, 1024)  # a picture whose size cannot be read
ASSUMED_PAGES = 2  # a document that is not in the message
_HEAD = 262_144  # base64 characters read to find a picture's size: a JPEG has it after its metadata
_BYTES_PER_PAGE = 50_000  # a PDF whose page objects are compressed
_AUDIO_BYTES_PER_SECOND = 16_000  # 128 kbit/s


@dataclass(frozen=True, slots=True)
class Media:
    """One family's prices, in tokens."""

    high: Callable[[Size], float]
    low: int | None = None  # a picture sent with `detail: low`; None: the family has no such mode
    page: int = 1600  # one page of a PDF: its text and its picture
    second: int = 10  # one second of sound


def tiles(base: int, tile: int, page: int = 600) -> Media:
    """OpenAI's older rule: fit into 2048 x 2048, shorter side at most 768, then so much per 512-pixel square."""

    def high(size: Size) -> float:
        width, height = _shrink(size, 2048)
        scale = min(1.0, 768 / min(width, height))
        return base + tile * ceil(width * scale / 512) * ceil(height * scale / 512)

    return Media(high, low=base, page=page)


def patches(multiplier: float, most: int = 1536) -> Media:
    """OpenAI's newer rule: 32-pixel squares, the picture scaled down until `most` of them cover it."""

    def high(size: Size) -> float:
        width, height = size
        count = ceil(width / 32) * ceil(height / 32)
        if count > most:
            scale = sqrt(most * 32 * 32 / (width * height))
            across, down = width * scale / 32, height * scale / 32
            scale *= min(floor(across) / across or 1.0, floor(down) / down or 1.0)
            count = min(most, ceil(width * scale / 32) * ceil(height * scale / 32))
        return count * multiplier

    return Media(high, page=600)


def area(longest: int, most: int) -> Media:
    """Anthropic's rule: longer side at most `longest`, then width x height / 750, at most `most`."""

    def high(size: Size) -> float:
        width, height = _shrink(size, longest)
        return min(most, ceil(width * height / 750))

    return Media(high)


def crops(crop: int = 258) -> Media:
    """Gemini's rule: `crop` for a small picture, else so much per 768-pixel square; so much per page too."""

    def high(size: Size) -> float:
        width, height = size
        return crop if max(size) <= 384 else crop * ceil(width / 768) * ceil(height / 768)

    return Media(high, page=crop, second=32)


FAMILIES = {
    "openai": tiles(85, 170),
    "gpt-4o-mini": tiles(2833, 5667),
    "o1": tiles(75, 150),
    "gpt-5": tiles(70, 140),
    "computer-use": tiles(65, 129),
    "gpt-4.1-mini": patches(1.62),
    "gpt-4.1-nano": patches(2.46),
    "o4-mini": patches(1.72),
    "gpt-5.2": patches(1.2),
    "anthropic": area(1568, 1600),
    "anthropic-large": area(2576, 4784),
    "gemini": crops(),
}


def picture(media: Media, data: str | None, detail: object = None) -> float:
    """Tokens of one picture: `data` its base64 or data URL, None (or an address) where it is not in the message."""
    if detail == "low" and media.low is not None:
        return media.low
    return media.high((data and picture_size(data)) or ASSUMED_SIZE)


def document(media: Media, data: str | None) -> float:
    """Tokens of one PDF-like document."""
    raw = _decode(data, len(data)) if data else b""
    if not raw:
        return media.page * ASSUMED_PAGES
    return media.page * (len(re.findall(rb"/Type\s{0,9}/Page\b", raw)) or ceil(len(raw) / _BYTES_PER_PAGE))


def audio(media: Media, data: str | None) -> float:
    """Tokens of one recording, from its length: a WAV header tells its byte rate, all else is taken as 128 kbit/s."""
    if not data:
        return media.second * 60
    head = _decode(data, 64)
    rate = _AUDIO_BYTES_PER_SECOND
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE" and len(head) >= 32:
        rate = struct.unpack_from("<I", head, 28)[0] or rate
    return media.second * ceil(len(data) * 3 / 4 / rate)


def data_of(url: object) -> str | None:
    """A data URL itself; None for any other address."""
    return url if isinstance(url, str) and url[:5].lower() == "data:" else None


def decoded_text(data: str) -> str:
    """The text inside base64 (or a base64 data URL); undecodable bytes are replaced."""
    return _decode(data, len(data)).decode("utf-8", "replace")


def picture_size(data: str) -> Size | None:
    """Width and height of an inline PNG, JPEG, GIF or WEBP; None where its first bytes do not tell."""
    raw = _decode(data, _HEAD)
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and len(raw) >= 24:
        size = struct.unpack_from(">II", raw, 16)
    elif raw[:4] == b"GIF8" and len(raw) >= 10:
        size = struct.unpack_from("<HH", raw, 6)
    elif raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" and len(raw) >= 30:
        size = _webp_size(raw)
    elif raw[:2] == b"\xff\xd8":
        size = _jpeg_size(raw)
    else:
        return None
    return (size[0], size[1]) if size[0] > 0 and size[1] > 0 else None


def _webp_size(raw: bytes) -> Size:
    kind = raw[12:16]
    if kind == b"VP8X":
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", raw, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(raw: bytes) -> Size:
    at = 2
    while at + 9 <= len(raw):
        marker = raw[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # start of frame
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        at += 2 + max(2, struct.unpack_from(">H", raw, at + 2)[0])
    return 0, 0


def _decode(data: str, most: int) -> bytes:
    """The first bytes of base64 text or of a base64 data URL, at most `most` characters; empty if it is neither."""
    start = data.find(",", 0, 256) + 1 if data_of(data) else 0
    piece = data[start : start + most]
    try:
        return a2b_base64(piece[: len(piece) // 4 * 4].encode("ascii", "ignore"))
    except ValueError:
        return b""


def _shrink(size: Size, longest: int) -> tuple[float, float]:
    scale = min(1.0, longest / max(size))
    return size[0] * scale, size[1] * scale
