"""Hypothesis strategies for tables of the five column types, with the values that break formats."""

import pyarrow as pa
from hypothesis import strategies as st

from dataflow_assets.batch import ColumnType, Schema, table_of

SURROGATES = ("\ud800", "\udfff", "a\udc00b")
texts = st.text(max_size=12) | st.sampled_from(
    [
        "",
        "null",
        "NaN",
        "007",
        "2020-01-01",
        "true",
        '"',
        '\\"',
        "\r\n",
        "\x00",
        ',"b":',
        "\\ud800",
        " a ",
        "😀",
    ]
)
integers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 0, 2**53 + 1])
finite_floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [-0.0, 5e-324, 1e16, 0.1, 1.7976931348623157e308, 1.0, 1e22]
)
_leaves = (
    st.none() | st.booleans() | st.integers() | finite_floats | texts | st.sampled_from([*SURROGATES, 10**30])
)
json_values = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "row_id", "\ud800", ""]) | texts, inner, max_size=3)
    ),
    max_leaves=6,
)
_values: dict[ColumnType, st.SearchStrategy] = {
    "string": texts,
    "int64": integers,
    "float64": finite_floats,
    "bool": st.booleans(),
    "json": json_values,
}
names = st.sampled_from(["a", "b", "c", "date", "é", "x y"]) | st.text(max_size=4)
schemas = st.dictionaries(
    names.filter(lambda name: name != "row_id"), st.sampled_from(list(_values)), max_size=5
)


@st.composite
def tables(draw: st.DrawFn, non_finite: bool = False) -> pa.Table:
    """A table of 0 to 4 rows with a `row_id`, at any place among its columns."""
    kinds = list(draw(schemas).items())
    kinds.insert(draw(st.integers(0, len(kinds))), ("row_id", "string"))
    schema: Schema = dict(kinds)
    rows = draw(st.integers(0, 4))
    odd = st.sampled_from([float("nan"), float("inf"), -float("inf")])
    columns = {
        name: draw(
            st.lists(
                st.none() | (_values[kind] | odd if non_finite and kind == "float64" else _values[kind]),
                min_size=rows,
                max_size=rows,
            )
        )
        for name, kind in schema.items()
    }
    columns["row_id"] = [f"r{n}" for n in range(rows)]
    return table_of(columns, schema)
