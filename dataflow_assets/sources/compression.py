"""The bytes of a file, unpacked while streaming, with a guard against archives that explode."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from backports import zstd

from dataflow_assets.sources.chunk import BrokenInput

EXPANSION_FLOOR_BYTES = 256 * 2**20
_PIECE_BYTES = 2048
_MAX_WINDOW_LOG = 31


class _Unpacker(Protocol):
    """What zlib and zstd have in common: one member or frame of an archive."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def unpacked_blocks(
    path: Path, name: str, compression: Literal["gz", "zst"] | None, block_bytes: int, max_expansion: int
) -> Iterator[bytes]:
    """The content in blocks of about `block_bytes`.

    Raises BrokenInput, after all that could be read, where the file or archive cannot be read on.
    """
    try:
        with open(path, "rb") as stream:
            if compression is None:
                while block := stream.read(block_bytes):
                    yield block
            else:
                pieces = _unpacked(stream, name, compression, max_expansion)
                yield from _regrouped(pieces, block_bytes)
    except OSError as error:
        raise BrokenInput(
            f"source {name}: {error.strerror or error}; expected a file that can be read to its end"
        ) from error


def _regrouped(pieces: Iterator[bytes], block_bytes: int) -> Iterator[bytes]:
    """The same bytes in larger blocks; what came before a break is given before it is raised."""
    pending: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            pending.append(piece)
            size += len(piece)
            if size >= block_bytes:
                yield b"".join(pending)
                pending, size = [], 0
    except BrokenInput:
        yield b"".join(pending)
        raise
    yield b"".join(pending)


def _unpacker(compression: Literal["gz", "zst"]) -> _Unpacker:
    if compression == "gz":
        return zlib.decompressobj(wbits=31)
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG})


def _unpacked(
    stream: BinaryIO, name: str, compression: Literal["gz", "zst"], max_expansion: int
) -> Iterator[bytes]:
    """The pieces of all members or frames. Small pieces go in, so that what comes out is bounded."""
    unpacker, started = _unpacker(compression), False
    packed_bytes = unpacked_bytes = 0
    while data := stream.read(_PIECE_BYTES):
        packed_bytes += len(data)
        while data:
            if not started and compression == "gz":
                data = data.lstrip(b"\0")
                if not data:
                    break
            try:
                piece = unpacker.decompress(data)
            except (zlib.error, zstd.ZstdError) as error:
                raise BrokenInput(_damaged(name, compression, packed_bytes, error)) from error
            unpacked_bytes += len(piece)
            _check_expansion(name, packed_bytes, unpacked_bytes, max_expansion)
            if piece:
                yield piece
            started, data = not unpacker.eof, unpacker.unused_data if unpacker.eof else b""
            if unpacker.eof:
                unpacker = _unpacker(compression)
    if started or not packed_bytes:
        raise BrokenInput(
            f"source {name}: the .{compression} archive ends too early, after {packed_bytes} bytes "
            f"({unpacked_bytes} unpacked); expected a whole archive. Copy or pack the file again"
        )


def _damaged(name: str, compression: str, packed_bytes: int, error: Exception) -> str:
    return (
        f"source {name}: the .{compression} archive is damaged near byte {packed_bytes} ({error}); "
        "expected a whole archive. Copy or pack the file again, or rename it if it is not packed"
    )


def _check_expansion(name: str, packed_bytes: int, unpacked_bytes: int, max_expansion: int) -> None:
    if unpacked_bytes <= EXPANSION_FLOOR_BYTES or unpacked_bytes <= max_expansion * packed_bytes:
        return
    raise BrokenInput(
        f"source {name}: {packed_bytes} packed bytes became {unpacked_bytes} "
        f"({unpacked_bytes // packed_bytes} times as much); expected at most {max_expansion} times. "
        "If the file is meant so, raise `source.max_expansion`"
    )
