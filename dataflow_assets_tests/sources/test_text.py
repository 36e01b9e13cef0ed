"""Plain text: lines, whole files, and bytes that are no text."""

import pytest

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.records import read_chunks
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import bad_in, numbers_in, rows_in, rows_of_chunk, written


def test_a_line_is_a_row(tmp_path):
    path = written(tmp_path, "a.txt", "first\r\n\n  second \u2028 third\n007")
    assert [row["text"] for row in rows_in(path)] == ["first", "  second \u2028 third", "007"]
    assert numbers_in(path) == [1, 3, 4]


def test_invalid_utf8_is_bad(tmp_path):
    path = written(tmp_path, "a.txt", b"good\n\xe4\xbd\nlast")
    assert bad_in(path) == [("a.txt", 2, "invalid UTF-8: at byte 1 of the line", "\\xe4\\xbd")]
    assert numbers_in(path) == [1, 3]


def test_a_line_that_is_too_long_is_bad(tmp_path):
    path = written(tmp_path, "a.txt", "x" * 50 + "\nshort")
    assert [record.line for record in bad_in(path, max_line_bytes=10)] == [1]
    assert rows_in(path, max_line_bytes=10) == [{"text": "short"}]


def folder_of_texts(tmp_path):
    written(tmp_path, "docs/b.txt", "two\nlines\n")
    written(tmp_path, "docs/a.txt", b"\xef\xbb\xbfone")
    written(tmp_path, "docs/sub/c.txt", "")
    written(tmp_path, "docs/broken.txt", b"\xff")
    written(tmp_path, "docs/large.txt", "x" * 100)


def read_folder(tmp_path, **options):
    spec = SourceSpec(path="docs", rows="file", **options)
    files, skipped, *_ = file_pieces(spec, tmp_path)
    assert skipped == []
    return files, [chunk for file in files for chunk in read_chunks(file, spec)]


def test_a_folder_of_texts_is_one_source_with_a_row_a_file(tmp_path):
    folder_of_texts(tmp_path)
    files, chunks = read_folder(tmp_path, max_line_bytes=50)
    assert [(each.name, each.slug, len(each.file.members)) for each in files] == [("docs", "docs", 5)]
    assert [row for chunk in chunks for row in rows_of_chunk(chunk)] == [
        {"file": "a.txt", "text": "one"},
        {"file": "b.txt", "text": "two\nlines\n"},
        {"file": "sub/c.txt", "text": ""},
    ]


def test_files_that_are_no_text_or_too_large_are_bad(tmp_path):
    folder_of_texts(tmp_path)
    _, chunks = read_folder(tmp_path, max_line_bytes=50)
    bad = [record for chunk in chunks for record in chunk.bad]
    assert [(record.file, record.line, record.reason) for record in bad] == [
        ("broken.txt", 3, "invalid UTF-8: at byte 1 of the file"),
        ("large.txt", 4, "the file is too long: 100 bytes, more than the 50 of source.max_line_bytes"),
    ]


def test_two_thousand_small_files_are_one_chunk(tmp_path):
    for number in range(2000):
        written(tmp_path, f"docs/{number:04}.txt", f"text {number}")
    _, chunks = read_folder(tmp_path)
    assert [chunk.table.num_rows for chunk in chunks] == [2000]


def test_text_has_no_other_columns(tmp_path):
    with pytest.raises(SourceError, match=r"no column 'x'.*text has text"):
        rows_in(written(tmp_path, "a.txt", "x"), columns=["x"])


def test_a_single_file_is_one_row(tmp_path):
    path = written(tmp_path, "a.txt", "x\ny")
    assert rows_in(path, rows="file") == [{"file": "a.txt", "text": "x\ny"}]


def test_a_member_that_vanishes_is_a_source_error(tmp_path):
    folder_of_texts(tmp_path)
    spec = SourceSpec(path="docs", rows="file")
    files = file_pieces(spec, tmp_path).pieces
    (tmp_path / "docs/b.txt").unlink()
    with pytest.raises(SourceError, match=r"b\.txt: No such file"):
        list(read_chunks(files[0], spec))
