"""CSV and TSV: nothing is guessed, broken records are set aside, the header is checked."""

import csv
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import SourceError
from dataflow_assets_tests.sources.reading import bad_in, chunks_of, numbers_in, rows_in, written

BAD_RECORDS = {
    "too many fields": (b"1,2,3", "wrong number of fields: 3, expected the 2 of the header"),
    "too few fields": (b"1", "wrong number of fields: 1, expected the 2 of the header"),
    "NUL": (b"1,\0", "a NUL character"),
    "invalid UTF-8": (b"1,\xff", "invalid UTF-8"),
    "text after a quote": (b'1,"a"b', "malformed: ',' expected after '\"'"),
    "carriage return outside quotes": (b"1,a\rb", "a carriage return outside quotes"),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_broken_record_is_set_aside_and_the_next_is_read(tmp_path, name):
    line, reason = BAD_RECORDS[name]
    path = written(tmp_path, "a.csv", b"x,y\n0,0\n" + line + b"\n9,9\n")
    (record,) = bad_in(path)
    assert (record.file, record.line, record.reason) == ("a.csv", 3, reason)
    assert rows_in(path) == [{"x": "0", "y": "0"}, {"x": "9", "y": "9"}]
    assert numbers_in(path) == [2, 4]


def test_lines_that_are_all_unreadable_take_time_by_their_number_not_by_its_square(tmp_path):
    path = written(tmp_path, "a.csv", b"x,y\n" + b"1,caf\xe9\n1,\0\n" * 10_000)
    began = time.process_time()
    assert len(bad_in(path)) == 20_000
    assert time.process_time() - began < 3


def test_a_quote_that_is_never_closed_is_one_bad_record(tmp_path):
    path = written(tmp_path, "a.csv", 'x,y\n1,a\n2,"b\n3,c\n4,d')
    (record,) = bad_in(path)
    assert (record.line, record.reason) == (3, "a quote is opened and never closed: lines 3 to 5")
    assert record.raw == '2,"b\n3,c\n4,d'
    assert rows_in(path) == [{"x": "1", "y": "a"}]


def test_an_open_quote_goes_at_most_to_the_cell_limit(tmp_path):
    lines = "".join(f"{n},v\n" for n in range(100))
    path = written(tmp_path, "a.csv", f'x,y\n1,"{lines}{lines}')
    (record,) = [record for record in bad_in(path, max_line_bytes=200) if "cell is too long" in record.reason]
    assert record.line == 2
    assert len(rows_in(path, max_line_bytes=200)) > 100


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,b,a", "names 'a' more than once"),
        ("a,,c", "column 2 of the header has no name"),
        ("a, ,c", "column 2 of the header has no name"),
        ('a,"b', "the header cannot be read: a quote is opened"),
        ("a,\0", "the header cannot be read: a NUL character"),
        ("a,row_id", "column 'row_id' has a name that this package uses"),
    ],
)
def test_a_header_that_cannot_name_columns_is_refused(tmp_path, header, message):
    with pytest.raises(SourceError, match=message):
        rows_in(written(tmp_path, "a.csv", f"{header}\n1,2,3\n"))


def test_a_selected_column_must_be_in_the_header(tmp_path):
    with pytest.raises(SourceError, match=r"no column 'z'.*the file has x, y"):
        rows_in(written(tmp_path, "a.csv", "x,y\n1,2\n"), columns=["z"])


def test_columns_and_rename_choose_and_name(tmp_path):
    path = written(tmp_path, "a.csv", "row_id,q,z\n1,2,3\n")
    assert rows_in(path, columns=["z", "q"], rename={"q": "text"}) == [{"text": "2", "z": "3"}]


@pytest.mark.parametrize("content", ["", "\n\n", "x,y\n", "x,y"])
def test_a_file_without_records_has_no_rows(tmp_path, content):
    assert chunks_of(written(tmp_path, "a.csv", content)) == []


def test_blank_lines_are_counted_and_skipped(tmp_path):
    path = written(tmp_path, "a.csv", "\nx,y\r\n\r\n1,2\r\n  \r\n3,4\r\n")
    assert numbers_in(path) == [4, 6]
    assert rows_in(path) == [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]


def test_an_empty_cell_is_an_empty_string(tmp_path):
    assert rows_in(written(tmp_path, "a.csv", 'x,y\n,""\n')) == [{"x": "", "y": ""}]


def test_a_quoted_empty_cell_is_a_row_of_a_single_column(tmp_path):
    assert numbers_in(written(tmp_path, "a.csv", 'x\n"a"\n\n"b"\n')) == [2, 4]


def test_tabs_separate_in_tsv(tmp_path):
    path = written(tmp_path, "a.tsv", 'x\ty\n1,0\t"a\tb"\n')
    assert rows_in(path) == [{"x": "1,0", "y": "a\tb"}]


def test_a_line_that_is_too_long_is_bad(tmp_path):
    path = written(tmp_path, "a.csv", f"x,y\n1,{'z' * 300}\n2,3\n")
    (record,) = bad_in(path, max_line_bytes=100)
    assert record.line == 2
    assert rows_in(path, max_line_bytes=100) == [{"x": "2", "y": "3"}]


def test_a_long_cell_is_read_and_the_limit_of_the_process_restored(tmp_path):
    before = csv.field_size_limit()
    assert len(rows_in(written(tmp_path, "a.csv", f"x\n{'z' * 200_000}\n"))[0]["x"]) == 200_000
    assert csv.field_size_limit() == before


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(cells, cells), max_size=6), st.sampled_from(["\n", "\r\n"]), st.integers(1, 60))
def test_what_the_csv_module_writes_comes_back(tmp_path_factory, rows, end, chunk_bytes):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("x", "y"), *rows])
    assert [tuple(row.values()) for row in rows_in(path, chunk_bytes)] == rows
