"""Parquet: every Arrow type to a column type without loss, or a refusal by name."""

import datetime as dt
import decimal
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_assets.batch import column_type
from dataflow_assets.errors import SourceError
from dataflow_assets_tests.sources.reading import bad_in, chunks_of, numbers_in, rows_in, written

NANOS = 1704448800123456789
TYPES = {
    "string": (pa.array(["007", None, ""]), "string", ["007", None, ""]),
    "large_string": (pa.array(["x", "y", None], pa.large_string()), "string", ["x", "y", None]),
    "dictionary": (pa.array(["x", "y", "x"]).dictionary_encode(), "string", ["x", "y", "x"]),
    "int8": (pa.array([1, None, -3], pa.int8()), "int64", [1, None, -3]),
    "uint32": (pa.array([1, 2**32 - 1], pa.uint32()), "int64", [1, 2**32 - 1]),
    "uint64 that fits": (pa.array([1, 2**63 - 1], pa.uint64()), "int64", [1, 2**63 - 1]),
    "uint64 beyond": (pa.array([1, 2**64 - 1, None], pa.uint64()), "json", [1, 2**64 - 1, None]),
    "float16": (pa.array([0.5, None], pa.float16()), "float64", [0.5, None]),
    "float32": (pa.array([0.1], pa.float32()), "float64", [0.10000000149011612]),
    "float64": (pa.array([0.1, None, math.inf]), "float64", [0.1, None, math.inf]),
    "bool": (pa.array([True, None]), "bool", [True, None]),
    "date32": (pa.array([dt.date(2024, 1, 5), None]), "string", ["2024-01-05", None]),
    "date64": (pa.array([dt.date(1969, 12, 31)], pa.date64()), "string", ["1969-12-31"]),
    "time64": (pa.array([dt.time(10, 0, 1, 5)], pa.time64("us")), "string", ["10:00:01.000005"]),
    "timestamp ns": (pa.array([NANOS], pa.timestamp("ns")), "string", ["2024-01-05T10:00:00.123456789"]),
    "timestamp ms": (pa.array([0, None], pa.timestamp("ms")), "string", ["1970-01-01T00:00:00.000", None]),
    "instant": (
        pa.array([NANOS // 1000], pa.timestamp("us", "Asia/Shanghai")),
        "string",
        ["2024-01-05T10:00:00.123456+00:00"],
    ),
    "duration": (pa.array([-1500, 0, None], pa.duration("ms")), "string", ["-PT1.500S", "PT0.000S", None]),
    "decimal": (
        pa.array([decimal.Decimal("1.10"), decimal.Decimal("0.00"), None], pa.decimal128(20, 2)),
        "string",
        ["1.10", "0.00", None],
    ),
    "small decimal": (
        pa.array([decimal.Decimal("1E-10")], pa.decimal128(20, 12)),
        "string",
        ["0.000000000100"],
    ),
    "list": (pa.array([["a"], [], None, [None]]), "json", [["a"], [], None, [None]]),
    "fixed list": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), "json", [[1, 2], None]),
    "struct": (
        pa.array([{"k": 1, "l": None}, None], pa.struct([("k", pa.int64()), ("l", pa.string())])),
        "json",
        [{"k": 1, "l": None}, None],
    ),
    "map with texts": (
        pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "json",
        [{"a": 1}, {}, None],
    ),
    "map with numbers": (pa.array([[(1, "a")]], pa.map_(pa.int64(), pa.string())), "json", [[[1, "a"]]]),
    "map with equal keys": (
        pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
        "json",
        [[["a", 1], ["a", 2]]],
    ),
    "list of times": (
        pa.array([[NANOS, None], None, []], pa.list_(pa.timestamp("ns"))),
        "json",
        [["2024-01-05T10:00:00.123456789", None], None, []],
    ),
    "struct of a decimal and dates": (
        pa.array(
            [{"d": decimal.Decimal("1.10"), "e": [dt.date(2024, 1, 5)]}, None],
            pa.struct([("d", pa.decimal128(5, 2)), ("e", pa.list_(pa.date32()))]),
        ),
        "json",
        [{"d": "1.10", "e": ["2024-01-05"]}, None],
    ),
    "struct of a map": (
        pa.array(
            [{"m": [("a", 2**53 + 1)]}, {"m": None}], pa.struct([("m", pa.map_(pa.string(), pa.int64()))])
        ),
        "json",
        [{"m": {"a": 2**53 + 1}}, {"m": None}],
    ),
    "list of maps": (
        pa.array([[[("a", 1)], None], []], pa.list_(pa.map_(pa.string(), pa.int64()))),
        "json",
        [[{"a": 1}, None], []],
    ),
    "nested uint64": (pa.array([[2**64 - 1]], pa.list_(pa.uint64())), "json", [[2**64 - 1]]),
}


def stored(folder, columns, **options):
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("name", TYPES)
def test_a_type_becomes_its_column_type_without_loss(tmp_path, name):
    if name == "fixed list" and int(pa.__version__.split(".")[0]) < 26:
        pytest.skip("pyarrow before 26 cannot read null lists of a fixed size: such a file is refused")
    array, kind, values = TYPES[name]
    path = stored(tmp_path, {"n": range(len(array)), "v": array})
    assert column_type(chunks_of(path)[0].table.schema.field("v")) == kind
    assert [row.get("v") for row in rows_in(path)] == values


def test_a_column_of_nulls_has_no_type_yet(tmp_path):
    path = stored(tmp_path, {"n": [1], "v": pa.array([None], pa.list_(pa.int64()))})
    assert str(chunks_of(path)[0].table.schema.field("v").type) == "null"


def test_nan_in_a_float_column_stays(tmp_path):
    assert math.isnan(rows_in(stored(tmp_path, {"v": [math.nan]}))[0]["v"])


def test_nan_inside_a_nested_value_makes_its_row_bad(tmp_path):
    path = stored(tmp_path, {"n": [1, 2, 3], "v": [[0.5], [math.nan], None]})
    (record,) = bad_in(path)
    assert (record.line, record.raw) == (2, "{'n': 2, 'v': [nan]}")
    assert record.reason == "NaN or infinity inside a nested value has no JSON form: column 'v'"
    assert numbers_in(path) == [1, 3]


@pytest.mark.parametrize("wrap", [lambda array: array, lambda array: array.dictionary_encode()])
def test_invalid_utf8_in_a_string_column_makes_its_row_bad(tmp_path, wrap):
    texts = pa.array([b"good", b"\xff", None], pa.binary()).cast(pa.string(), safe=False)
    path = stored(tmp_path, {"n": [1, 2, 3], "v": wrap(texts)})
    assert [(record.line, record.reason) for record in bad_in(path)] == [(2, "invalid UTF-8: column 'v'")]
    assert rows_in(path) == [{"n": 1, "v": "good"}, {"n": 3}]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x"]),
        pa.array([b"xx"], pa.binary(2)),
        pa.array([{"bytes": b"x", "path": "p"}]),
        pa.array([[b"x"]]),
        pa.array([[("k", b"x")]], pa.map_(pa.string(), pa.binary())),
    ],
)
def test_binary_data_is_refused_by_column_and_can_be_left_out(tmp_path, array):
    path = stored(tmp_path, {"n": [1], "image": array})
    with pytest.raises(
        SourceError, match=r"column 'image' has the type .*binary data is no text.*source\.columns"
    ):
        rows_in(path)
    assert rows_in(path, columns=["n"]) == [{"n": 1}]


def test_rows_do_not_depend_on_chunks_or_row_groups(tmp_path):
    path = stored(
        tmp_path, {"n": range(1000), "v": [["x"] * (n % 4) for n in range(1000)]}, row_group_size=37
    )
    assert rows_in(path, chunk_bytes=500) == rows_in(path)
    assert numbers_in(path, chunk_bytes=500) == list(range(1, 1001))
    assert len(chunks_of(path, chunk_bytes=500)) > 5


def test_columns_and_rename_choose_and_name(tmp_path):
    path = stored(tmp_path, {"row_id": [1], "q": ["x"], "q.b": [2]})
    assert rows_in(path, columns=["q"], rename={"q": "text"}) == [{"text": "x"}]
    with pytest.raises(SourceError, match=r"'row_id'.*source\.rename"):
        rows_in(path)


def test_a_selected_column_must_be_in_the_file(tmp_path):
    with pytest.raises(SourceError, match=r"no column 'z'.*the file has n"):
        rows_in(stored(tmp_path, {"n": [1]}), columns=["z"])


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_what_is_no_parquet_is_a_source_error(tmp_path, content):
    with pytest.raises(SourceError, match=r"a\.parquet: .*expected a whole parquet file"):
        rows_in(written(tmp_path, "a.parquet", content))


def test_a_damaged_page_is_a_source_error(tmp_path):
    path = stored(tmp_path, {"v": [f"text {n}" for n in range(5000)]}, compression="zstd")
    content = bytearray(path.read_bytes())
    content[60:2000] = b"\xaa" * 1940
    with pytest.raises(SourceError, match="expected a whole parquet file"):
        rows_in(written(tmp_path, "a.parquet", bytes(content)))


def test_a_file_without_rows_has_none(tmp_path):
    assert chunks_of(stored(tmp_path, {"v": pa.array([], pa.string())})) == []
