"""Histograms as PNG pictures that go inline into Markdown: two colours for before and after."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np

_WIDTH, _HEIGHT, _BASE = 300, 80, 2
# Readable on white and on black; a picture has no background of its own.
_COLOURS = ((0, 0, 0, 0), (148, 163, 184, 255), (59, 130, 246, 230), (120, 120, 120, 255))
_BEFORE, _AFTER, _LINE = 1, 2, 3


def histogram_png(after: Sequence[int], before: Sequence[int] | None = None) -> bytes:
    """Bars of the counts, those of before behind them; both over the same bins. 300 by 80 pixels."""
    pixels = np.zeros((_HEIGHT, _WIDTH), np.uint8)
    highest = max([*after, *(before or ()), 1])
    if before is not None:
        _draw(pixels, before, highest, _BEFORE, 0.9)
    _draw(pixels, after, highest, _AFTER, 0.9 if before is None else 0.5)
    pixels[-_BASE:] = _LINE
    return _png(pixels)


def _draw(pixels: np.ndarray, counts: Sequence[int], highest: int, colour: int, fill: float) -> None:
    step = _WIDTH / max(len(counts), 1)
    for place, count in enumerate(counts):
        height = round((_HEIGHT - _BASE) * count / highest)
        height = max(height, 1) if count else 0
        left = round(step * (place + (1 - fill) / 2))
        right = max(left + 1, round(step * (place + (1 + fill) / 2)))
        pixels[_HEIGHT - _BASE - height : _HEIGHT - _BASE, left:right] = colour


def _png(pixels: np.ndarray) -> bytes:
    """The pixels (height, width), places in the palette, as a file (PNG specification, third edition)."""
    height, width = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(part for colour in _COLOURS for part in colour[:3])),
        (b"tRNS", bytes(colour[3] for colour in _COLOURS)),
        (b"IDAT", zlib.compress(lines.tobytes(), 6)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def as_markdown(png: bytes, alternative: str) -> str:
    """The picture within the text."""
    return f"![{alternative}](data:image/png;base64,{b64encode(png).decode()})"
