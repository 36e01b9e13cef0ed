"""The content of a file as UTF-8 without a byte order mark, whatever it is packed and encoded in.

Bytes that are invalid in the source's encoding stay invalid, so that the record they stand in is
set aside and not the whole file.
"""

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from dataflow_assets.sources.chunk import BrokenInput
from dataflow_assets.sources.compression import unpacked_blocks
from dataflow_assets.sources.spec import SourceSpec

_KEEP_INVALID = "dataflow_assets.keep_invalid"
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_PACKED_MARKS = {
    b"\x1f\x8b": "a gzip archive; name it .gz",
    b"\x28\xb5\x2f\xfd": "a zstd archive; name it .zst",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"BZh": "a bzip2 archive; unpack it",
    b"\xfd7zXZ\x00": "an xz archive; unpack it",
    b"PAR1": "a parquet file; name it .parquet or set `source.format`",
}


def _keep_invalid(error: UnicodeError) -> tuple[str, int]:
    """An error handler: the invalid bytes as surrogates, that `surrogateescape` turns back into bytes."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    invalid = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) if byte > 127 else "\udcff" for byte in invalid), error.end


codecs.register_error(_KEEP_INVALID, _keep_invalid)


def utf8_blocks(
    path: Path, name: str, compression: Literal["gz", "zst"] | None, spec: SourceSpec, block_bytes: int
) -> Iterator[bytes]:
    """The content in blocks of about `block_bytes`. Raises BrokenInput where it cannot be read on."""
    blocks = unpacked_blocks(path, name, compression, block_bytes, spec.max_expansion)
    if codecs.lookup(spec.encoding).name in ("utf-8", "utf-8-sig"):
        return _without_mark(_checked(blocks, name))
    return _without_mark(_transcoded(blocks, spec.encoding, name))


def _without_mark(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same without a byte order mark at the start."""
    first = True
    for block in blocks:
        if first and block:
            block, first = block.removeprefix(codecs.BOM_UTF8), False
        yield block


def _checked(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The same blocks. Raises BrokenInput where the start says that this is no UTF-8 text."""
    first = True
    for block in blocks:
        if first and block:
            _check_start(block, name)
            first = False
        yield block


def _check_start(block: bytes, name: str) -> None:
    for mark, encoding in _WIDE_MARKS.items():
        if block.startswith(mark):
            raise BrokenInput(_wrong_encoding(name, f"the byte order mark of {encoding}", encoding))
    head = block[:4]
    if len(head) == 4 and 0 not in (head[0], head[2]) and head[1] == head[3] == 0:
        raise BrokenInput(_wrong_encoding(name, "text of two bytes a character", "utf-16-le"))
    if len(head) == 4 and head[0] == head[2] == 0 and 0 not in (head[1], head[3]):
        raise BrokenInput(_wrong_encoding(name, "text of two bytes a character", "utf-16-be"))
    for mark, what in _PACKED_MARKS.items():
        if block.startswith(mark):
            raise BrokenInput(f"source {name}: expected text, found the start of {what}")


def _wrong_encoding(name: str, found: str, encoding: str) -> str:
    return f"source {name}: expected utf-8, found {found}; set `source.encoding: {encoding}`"


def _transcoded(blocks: Iterable[bytes], encoding: str, name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(_KEEP_INVALID)
    try:
        for block in blocks:
            yield _encoded(decoder.decode(block))
        yield _encoded(decoder.decode(b"", True))
    except UnicodeError as error:
        raise BrokenInput(
            f"source {name}: it cannot be read as {encoding} ({error}); expected text of "
            "`source.encoding`. Without a byte order mark, give utf-16-le or utf-16-be, or another encoding"
        ) from error


def _encoded(text: str) -> bytes:
    """UTF-8; what the decoder could not read stays invalid."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
