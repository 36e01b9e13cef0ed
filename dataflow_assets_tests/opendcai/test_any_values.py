"""Whatever is in a table, an operator that changes nothing leaves it as it was."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.batch import Schema, content_hash, table_of
from dataflow_assets.operators import build_operator

pytest.importorskip("dataflow", reason="open-dataflow is not installed")
SCHEMA: Schema = {
    "row_id": "string",
    "text": "string",
    "whole": "int64",
    "number": "float64",
    "flag": "bool",
    "nested": "json",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
VALUES = st.tuples(
    st.none() | st.text(),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(),
    st.none() | st.booleans(),
    JSON | st.just({"half": "\ud800"}),
)
OWN = "dataflow_assets_tests.opendcai.frame_functions"


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=8))
@pytest.mark.parametrize("name", ["Backwards", "Remade"])
def test_what_is_not_changed_stays(name: str, values: list[tuple]):
    columns = dict(zip(list(SCHEMA)[1:], map(list, zip(*values, strict=True)), strict=True))
    table = table_of({"row_id": [f"a:{n}" for n in range(len(values))], **columns}, SCHEMA)
    operator = build_operator("opendcai", {"operator": f"{OWN}.{name}"})
    outcome = operator.apply(table)  # pyright: ignore[reportAttributeAccessIssue]
    assert outcome.failed is None and outcome.rejected is None
    assert content_hash(outcome.kept) == content_hash(table)


def test_a_number_that_becomes_none_is_null():
    table = table_of(
        {"row_id": ["a:1"], "text": ["x"], "n": [1.5]}, {"row_id": "string", "text": "string", "n": "float64"}
    )
    built = build_operator("opendcai", {"operator": f"{OWN}.Forgetful"})
    kept = built.apply(table).kept  # pyright: ignore[reportAttributeAccessIssue]
    assert kept["n"].to_pylist() == [None] and not math.isnan(table["n"][0].as_py())
