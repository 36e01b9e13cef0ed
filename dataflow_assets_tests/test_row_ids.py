import pyarrow as pa
import pytest

from dataflow_assets.row_ids import origin_of, origins_of, parents_of


@pytest.mark.parametrize(
    ("row_id", "origin"), [("in:7", "in:7"), ("in:7/0", "in:7"), ("in:7/0/12", "in:7"), ("a/b", "a/b")]
)
def test_the_origin_of_a_child_is_the_row_that_was_read(row_id: str, origin: str):
    assert origin_of(row_id) == origin
    assert origins_of(pa.chunked_array([[row_id]])).to_pylist() == [origin]


def test_the_parent_of_a_child_is_one_split_before():
    ids = pa.chunked_array([["in:7/0/2", "in:7/0", "in:7"]])
    assert parents_of(ids).to_pylist() == ["in:7/0", "in:7", "in:7"]
