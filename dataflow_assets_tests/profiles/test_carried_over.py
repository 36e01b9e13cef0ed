"""What a step did not touch is not measured again, and what is found again is what was measured."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import table_of
from dataflow_assets.profiles import measured_texts
from dataflow_assets.profiles.making import HowToProfile, profile_of_rows
from dataflow_assets.profiles.remembered import Remembered
from dataflow_assets.profiles.sampling import Rates, hashes_of
from dataflow_assets.profiles.stored import from_bytes, to_bytes
from dataflow_assets.profiles.texts import Texts, near_hashes, text_measures

TEXTS = [f"Sentence number {n} of a text that is long enough." for n in range(50)]
SCHEMA = {"row_id": "string", "text": "string", "score": "int64"}


def rows(texts: list[str], scores: list[int]) -> pa.Table:
    ids = [f"r:{number}" for number in range(len(texts))]
    return table_of({"row_id": ids, "text": texts, "score": scores}, SCHEMA)


def test_a_column_that_a_step_did_not_touch_is_not_measured_again() -> None:
    before = profile_of_rows(rows(TEXTS, [1] * 50), "b", HowToProfile())
    after = profile_of_rows(rows(TEXTS, [2] * 50), "b", HowToProfile(), before)
    assert after.columns["text"] is before.columns["text"]
    assert after.columns["score"] is not before.columns["score"]


def test_other_rows_and_other_rates_are_measured() -> None:
    table = rows(TEXTS, [1] * 50)
    first = profile_of_rows(table, "b", HowToProfile())
    fewer = profile_of_rows(table.slice(0, 49), "b", HowToProfile(), first)
    thin = profile_of_rows(table, "b", HowToProfile(Rates(0.5, 0.5)), first)
    assert fewer.columns["score"] is not first.columns["score"]
    assert thin.columns["text"] is not first.columns["text"]


@pytest.mark.parametrize("rates", [Rates(), Rates(0.2, 0.6)])
def test_what_is_taken_from_a_file_is_what_would_be_measured(rates: Rates) -> None:
    how, table = HowToProfile(rates), rows(TEXTS, [1] * 50)
    before = from_bytes(to_bytes(profile_of_rows(table, "b", how), "s"), "b", None, "s")
    assert before is not None
    for scores in ([1] * 50, [2] * 50):
        changed = rows(TEXTS, scores)
        after = profile_of_rows(changed, "b", how, before)
        assert after.columns["text"] is before.columns["text"]
        assert to_bytes(after, "s") == to_bytes(profile_of_rows(changed, "b", how), "s")


def test_only_texts_that_changed_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    monkeypatch.setattr(measured_texts, "piece_hashes", lambda text: measured.append(text) or [])
    profile_of_rows(rows([f"First {text}" for text in TEXTS], [1] * 50), "b", HowToProfile())
    changed = [f"First {text}" for text in TEXTS[:49]] + ["Another text, that was not there before."]
    profile_of_rows(rows(changed, [1] * 50), "b", HowToProfile())
    assert len(measured) == 51 and measured[-1] == changed[-1]


@given(st.lists(st.text(max_size=40), max_size=30))
def test_measures_that_are_found_again_are_those_of_the_text(texts: list[str]) -> None:
    encodable = [text.encode("utf-8", "replace").decode() for text in texts]
    hashes = hashes_of(pa.array(encodable, pa.large_string()))
    for _ in range(2):
        found = measured_texts.measured_texts(encodable, hashes, None).measures
        for name, values in text_measures(encodable).items():
            assert found[name].tolist() == values.astype("float32").tolist()


def near(column: pa.ChunkedArray) -> list[int]:
    """The hashes of all texts of a column."""
    return near_hashes(Texts.of(column), 1.0).tolist()


def column_of(texts: Sequence[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])


@given(
    st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=60), min_size=1, max_size=20),
    st.data(),
)
def test_the_hash_of_a_text_does_not_depend_on_where_it_is(
    texts: list[str | None], data: st.DataObject
) -> None:
    column = column_of(texts)
    start = data.draw(st.integers(0, len(texts) - 1))
    before = sum(text is not None for text in texts[:start])
    assert near(column.slice(start)) == near(column)[before:]
    alone = near(column.take(pa.array([start])))
    assert alone == ([] if texts[start] is None else near(column)[before : before + 1])


def test_near_duplicates_differ_in_case_digits_and_marks_only() -> None:
    head = "The first thirty-two bytes are equal: "
    texts = [f"{head}page 12, of all!", f"{head.upper()}PAGE 13 OF ALL", f"{head}page of none"]
    first, second, third = near(column_of(texts))
    assert first == second != third


def test_short_texts_have_no_near_duplicates_but_themselves() -> None:
    first, second, third = near(column_of(["Room 12", "room 12", "Room 12"]))
    assert first == third != second


def test_the_one_that_was_asked_for_longest_ago_is_forgotten() -> None:
    remembered: Remembered[str, int] = Remembered(2)
    for name in "ab":
        remembered.keep(name, ord(name))
    assert remembered.get("a") == ord("a")
    remembered.keep("c", ord("c"))
    assert [remembered.get(name) for name in "abc"] == [ord("a"), None, ord("c")]
