import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators.selected_texts import edited_where, texts_by_row
from dataflow_assets_tests.operators.sample_tables import applied, typed_table

chunks = st.lists(st.lists(st.tuples(st.text(max_size=3), st.booleans()), max_size=4), max_size=3)


@given(chunks)
def test_only_the_texts_under_the_mask_are_edited(chunks: list[list[tuple[str, bool]]]):
    texts = pa.chunked_array([[text for text, _ in chunk] for chunk in chunks], pa.large_string())
    mask = pa.chunked_array([[marked for _, marked in chunk] for chunk in chunks], pa.bool_())
    edited = edited_where(texts, mask, lambda some: texts_by_row(some, lambda text: text + "!"))
    assert edited.to_pylist() == [text + "!" * marked for chunk in chunks for text, marked in chunk]


def test_without_a_mark_the_column_itself_comes_back():
    texts = pa.chunked_array([["a", "b"]], pa.large_string())
    assert edited_where(texts, pa.chunked_array([[False, False]]), lambda some: some) is texts


@given(st.lists(st.none() | st.sampled_from(["A", "", "中", "slow"])))
def test_texts_come_back_to_their_rows_between_nulls_and_failures(texts: list[str | None]):
    params = {"pattern": "(s|sl)+ow|A", "replacement": "a", "on_null": "keep", "engine": "python"}
    kept = applied("regex_replace", typed_table("string", texts), params).kept["text"].to_pylist()
    assert kept == [None if text is None else text.replace("A", "a").replace("slow", "a") for text in texts]
