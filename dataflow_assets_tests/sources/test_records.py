"""What holds for every format: a look at the columns, strict reading, and damaged files of any kind."""

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd

from dataflow_assets.errors import SourceError
from dataflow_assets.sources.cutting import rejected_table
from dataflow_assets.sources.file_pieces import file_pieces
from dataflow_assets.sources.records import _chunks, peek_schema
from dataflow_assets.sources.spec import SourceSpec
from dataflow_assets_tests.sources.reading import bad_in, chunks_of, written

ROWS = [{"id": n, "text": f'say "{n}",\n文', "nested": {"a": [n, None]}, "big": 2**64 + n} for n in range(20)]
LINES = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode()
FILES = {
    "a.jsonl": LINES,
    "a.json": json.dumps(ROWS, indent=1).encode(),
    "a.csv": b"id,text\n" + b"".join(b'%d,"say ""%d"",\n"\n' % (n, n) for n in range(20)),
    "a.txt": LINES,
    "a.jsonl.gz": gzip.compress(LINES),
    "a.jsonl.zst": zstd.compress(LINES),
}


def peeked(tmp_path, path, rows=1000, **options):
    spec = SourceSpec(path=path, **options)
    return peek_schema(file_pieces(spec, tmp_path).pieces, spec, rows)


def test_a_peek_widens_over_files(tmp_path):
    written(tmp_path, "d/a.jsonl", '{"n":1,"x":null,"t":"a"}')
    written(tmp_path, "d/b.jsonl", '{"n":1.5,"x":true,"late":[1]}')
    assert peeked(tmp_path, "d") == {"n": "json", "x": "bool", "t": "string", "late": "json"}


def test_a_peek_gives_final_names_and_no_type_for_nulls(tmp_path):
    written(tmp_path, "a.jsonl", '{"q":"x","n":null,"z":1}')
    assert peeked(tmp_path, "a.jsonl", columns=["q", "n"], rename={"q": "text"}) == {
        "text": "string",
        "n": None,
    }


def test_a_peek_sees_the_header_of_a_file_without_rows(tmp_path):
    written(tmp_path, "a.csv", "x,y\n")
    assert peeked(tmp_path, "a.csv") == {"x": None, "y": None}


def test_a_peek_reads_the_first_rows_only(tmp_path):
    content = '{"a":"' + "x" * 1000 + '"}\n'
    written(tmp_path, "a.jsonl", content * 3000 + '{"late":1}\n')
    assert peeked(tmp_path, "a.jsonl", rows=10) == {"a": "string"}


def test_a_peek_looks_into_twenty_files(tmp_path):
    for number in range(25):
        written(tmp_path, f"d/{number:02}.jsonl", f'{{"c{number}":1}}')
    assert len(peeked(tmp_path, "d")) == 20


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("a.jsonl", "{}\n[]", "line 2: not a JSON object"),
        ("a.json", "[{},[]]", "line 2: not a JSON object"),
        ("a.csv", "x,y\n1,2\n1", "line 3: wrong number of fields: 1"),
        ("a.txt", b"x\n\xff", "line 2: invalid UTF-8"),
    ],
)
def test_strict_reading_ends_at_the_first_bad_record(tmp_path, name, content, where):
    with pytest.raises(SourceError, match=rf"source {name}, {where}.*source\.on_bad_line: reject"):
        chunks_of(written(tmp_path, name, content), on_bad_line="fail")


@pytest.mark.parametrize(
    ("name", "line", "kind"),
    [
        ("a.jsonl", lambda n: b'{"a":"' + b"x" * n + b'\xff"}', "invalid UTF-8"),
        ("a.jsonl", lambda n: b'{"a":%de999}' % (n + 1), "a number is beyond a double"),
        ("a.jsonl", lambda n: b'{"a":"' + b"x" * (200 + n) + b'"}', "the line is too long"),
        ("a.txt", lambda n: b"x" * n + b"\xff", "invalid UTF-8"),
        ("a.csv", lambda n: b"1," * (n + 2), "wrong number of fields"),
        ("a.csv", lambda n: b'"\xff' + b"\n" * n + b'",1', "invalid UTF-8"),
    ],
)
def test_bad_lines_are_counted_by_few_kinds_whatever_each_has_of_it(tmp_path, name, line, kind):
    content = b"\n".join([b"a,b", *map(line, range(40)), b""])
    bad = bad_in(written(tmp_path, name, content), max_line_bytes=200)
    reasons = rejected_table("a", bad)["reject_reason"].to_pylist()
    assert len(reasons) >= 40
    assert set(reasons) <= {kind, "malformed JSON"}


def parquet_bytes():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(20), "text": ["x"] * 20, "nested": [[1], None] * 10}), sink)
    return sink.getvalue().to_pybytes()


def damaged(content, dice):
    damage = bytearray(content)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(damage))
        size = dice.randint(0, 20)
        damage[place : place + size] = dice.choice(
            [b"", b'"', b"\n", b"\0", b"\xff", b"}", dice.randbytes(5)]
        )
    return bytes(damage)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "gb18030"])
@pytest.mark.parametrize("name", [*FILES, "a.parquet"])
def test_a_damaged_file_gives_rows_and_bad_records_or_a_source_error(tmp_path, name, encoding):
    dice = random.Random(f"{name} {encoding}")
    options = {} if name == "a.parquet" else {"encoding": encoding}
    for _ in range(25):
        written(tmp_path, name, damaged(FILES.get(name) or parquet_bytes(), dice))
        spec = SourceSpec(path=name, max_line_bytes=dice.choice([50, 5000]), **options)
        last = 0
        try:
            for chunk in _chunks(file_pieces(spec, tmp_path).pieces[0], spec, dice.choice([7, 200, 10**6])):
                chunk.table.validate(full=True)
                numbers = chunk.numbers.to_pylist() + [record.line for record in chunk.bad]
                assert len(chunk.numbers) == chunk.table.num_rows
                assert len(set(numbers)) == len(numbers)
                assert last < min(numbers, default=last + 1)
                last = max(numbers, default=last)
        except SourceError as error:
            assert name in str(error)
