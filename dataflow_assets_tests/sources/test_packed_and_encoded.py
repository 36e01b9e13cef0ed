"""Archives and encodings: streamed, whole or refused with what was read before."""

import codecs
import gzip
import random

import pytest
from backports import zstd

from dataflow_assets.errors import SourceError
from dataflow_assets.sources import compression
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.records import read_chunks
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import bad_in, rows_in, rows_of_chunk, written

ROWS = [{"n": n, "text": f"{random.Random(n).random()} 文"} for n in range(3000)]
LINES = "".join(f'{{"n":{row["n"]},"text":"{row["text"]}"}}\n' for row in ROWS).encode()
PACK = {"gz": gzip.compress, "zst": zstd.compress}
SKIPPABLE_FRAME = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"


@pytest.mark.parametrize("kind", PACK)
def test_an_archive_gives_its_rows(tmp_path, kind):
    assert rows_in(written(tmp_path, f"a.jsonl.{kind}", PACK[kind](LINES))) == ROWS


@pytest.mark.parametrize("kind", PACK)
def test_several_members_are_read_one_after_another(tmp_path, kind):
    half = len(LINES) // 2
    packed = PACK[kind](LINES[:half]) + PACK[kind](b"") + PACK[kind](LINES[half:])
    assert rows_in(written(tmp_path, f"a.jsonl.{kind}", packed)) == ROWS


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\0"])
def test_zeros_after_a_gzip_member_are_padding(tmp_path, tail):
    assert rows_in(written(tmp_path, "a.jsonl.gz", gzip.compress(LINES) + tail)) == ROWS


def test_skippable_frames_of_zstd_are_skipped(tmp_path):
    packed = (
        SKIPPABLE_FRAME
        + PACK["zst"](LINES[:100])
        + SKIPPABLE_FRAME
        + PACK["zst"](LINES[100:])
        + SKIPPABLE_FRAME
    )
    assert rows_in(written(tmp_path, "a.jsonl.zst", packed)) == ROWS


@pytest.mark.parametrize("kind", PACK)
def test_a_cut_archive_gives_the_rows_before_the_cut_and_an_error(tmp_path, kind):
    packed = PACK[kind](LINES)
    written(tmp_path, f"a.jsonl.{kind}", packed[: len(packed) * 2 // 3])
    spec = SourceSpec(path=f"a.jsonl.{kind}")
    rows = []
    with pytest.raises(
        SourceError, match=rf"a\.jsonl\.{kind}: the \.{kind} archive ends too early"
    ) as caught:
        for chunk in read_chunks(file_pieces(spec, tmp_path).pieces[0], spec):
            rows += rows_of_chunk(chunk)
    assert rows == ROWS[: len(rows)]
    assert f"{len(rows)} records were read before" in str(caught.value)


@pytest.mark.parametrize("kind", PACK)
def test_rows_before_a_cut_are_given(tmp_path, kind):
    packed = PACK[kind](LINES) + PACK[kind](LINES)[:100]
    written(tmp_path, f"a.jsonl.{kind}", packed)
    spec = SourceSpec(path=f"a.jsonl.{kind}")
    rows = []
    with pytest.raises(SourceError, match="ends too early"):
        for chunk in read_chunks(file_pieces(spec, tmp_path).pieces[0], spec):
            rows += rows_of_chunk(chunk)
    assert rows[:3000] == ROWS


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("content", [b"", b'{"a":1}\n', PACK["gz"](LINES)[:200] + b"\xff" * 200])
def test_what_is_no_archive_is_a_source_error(tmp_path, kind, content):
    with pytest.raises(SourceError, match=rf"\.{kind} archive (is damaged near byte|ends too early)"):
        rows_in(written(tmp_path, f"a.jsonl.{kind}", content))


def test_garbage_after_a_member_is_a_source_error(tmp_path):
    with pytest.raises(SourceError, match="damaged"):
        rows_in(written(tmp_path, "a.jsonl.gz", gzip.compress(LINES) + b"garbage"))


@pytest.mark.parametrize("kind", PACK)
def test_an_archive_that_explodes_is_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(compression, "EXPANSION_FLOOR_BYTES", 2**17)
    path = written(tmp_path, f"a.txt.{kind}", PACK[kind](b"\n" * 2**20))
    with pytest.raises(
        SourceError, match=r"times as much\); expected at most 250 times.*source\.max_expansion"
    ):
        rows_in(path)
    assert rows_in(path, max_expansion=10**9) == []


def test_below_the_floor_any_ratio_is_fine(tmp_path):
    assert rows_in(written(tmp_path, "a.txt.gz", gzip.compress(b"\n" * 2**20))) == []


@pytest.mark.parametrize(
    "encoding", ["gb18030", "utf-16", "utf-16-le", "utf-32", "shift_jis", "utf-8-sig", "UTF8"]
)
def test_other_encodings_give_the_same_rows(tmp_path, encoding):
    path = written(tmp_path, "a.jsonl", LINES.decode().encode(encoding))
    assert rows_in(path, encoding=encoding) == ROWS
    assert rows_in(path, chunk_bytes=1001, encoding=encoding) == ROWS


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.txt"])
def test_a_wide_encoding_is_found_and_named(tmp_path, name, encoding):
    path = written(tmp_path, name, '{"a":1}'.encode(encoding))
    with pytest.raises(SourceError, match=rf"{name}: expected utf-8, found.*source\.encoding: {encoding}"):
        rows_in(path)


def test_a_mark_of_either_order_is_found(tmp_path):
    path = written(tmp_path, "a.jsonl", codecs.BOM_UTF16_BE + '{"a":1}'.encode("utf-16-be"))
    with pytest.raises(SourceError, match="utf-16"):
        rows_in(path)
    assert rows_in(path, encoding="utf-16") == [{"a": 1}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "idna"])
def test_text_that_is_not_of_the_encoding_is_a_source_error(tmp_path, encoding):
    path = written(tmp_path, "a.txt", b"\xc3\xa9 plain text")
    with pytest.raises(SourceError, match=rf"a\.txt: it cannot be read as {encoding}"):
        rows_in(path, encoding=encoding)


def test_bytes_that_the_encoding_lacks_make_their_line_bad(tmp_path):
    content = '{"a":"好"}\n'.encode("gb18030") + b'{"a":"\xff"}\n' + '{"a":"尾"}'.encode("gb18030")
    path = written(tmp_path, "a.jsonl", content)
    assert rows_in(path, encoding="gb18030") == [{"a": "好"}, {"a": "尾"}]
    assert [record.line for record in bad_in(path, encoding="gb18030")] == [2]


def test_half_a_unit_at_the_end_makes_the_last_line_bad(tmp_path):
    path = written(tmp_path, "a.txt", "one\ntwo".encode("utf-16") + b"x")
    assert rows_in(path, encoding="utf-16") == [{"text": "one"}]
    assert [record.line for record in bad_in(path, encoding="utf-16")] == [2]


@pytest.mark.parametrize(
    ("start", "hint"),
    [
        (gzip.compress(b"x", mtime=0), "name it .gz"),
        (PACK["zst"](b"x"), "name it .zst"),
        (b"PK\x03\x04xxxx", "a zip archive"),
        (b"PAR1xxxx", "a parquet file"),
    ],
)
def test_a_packed_file_under_a_plain_name_is_refused(tmp_path, start, hint):
    with pytest.raises(SourceError, match=hint):
        rows_in(written(tmp_path, "a.jsonl", start))


def test_a_file_that_vanishes_is_a_source_error(tmp_path):
    written(tmp_path, "a.jsonl", LINES)
    spec = SourceSpec(path="a.jsonl")
    (piece,) = file_pieces(spec, tmp_path).pieces
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(SourceError, match=r"a\.jsonl: No such file or directory"):
        list(read_chunks(piece, spec))
