import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planted_duplicates import documents
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import DatasetOperator, build_operator
from dataflow_assets.operators.deduplication import buckets
from dataflow_assets.operators.deduplication.simplified_text import simplified
from dataflow_assets_tests.operators.deduplication.data_sets import (
    dropped,
    kept_ids,
    outcomes,
    rejected_rows,
    sentences,
)
from dataflow_assets_tests.operators.deduplication.plain_jaccard import (
    datasketch_repeats,
    exact_repeats,
    jaccard,
    word_runs,
)
from dataflow_assets_tests.operators.sample_tables import case_rows, ids, table, typed_table

NAME = "drop_near_duplicates"
LONG = "The quick brown fox jumps over the lazy dog, and then 3 more foxes follow it home through the wood"
CHANGED = LONG.replace("lazy dog", "tired dog")
CHINESE = "今天我们讨论数据切分的办法。如果一段话很长，就应该在句号处断开！可是有的文章通篇没有空格，怎么办？"
SURE = {"bands": 64, "rows": 1}  # candidates are found at any similarity


def gone(texts: list, batch_rows: int = 100, **params: object) -> dict[str, str]:
    return dropped(outcomes(NAME, table(text=texts), batch_rows, params))


@pytest.mark.parametrize("batch_rows", [1, 3, 11])
@pytest.mark.parametrize("unit", ["words", "characters"])
def test_case_27_short_texts_are_compared_whole(unit: str, batch_rows: int):
    rows = case_rows("27_short_docs_minhash")
    found = outcomes(NAME, table(text=[row["text"] for row in rows]), batch_rows, {"unit": unit})
    stay = [rows[int(row_id[1:])]["id"] for row_id in kept_ids(found)]
    assert stay == [1, 2, 4, 5, 6, 7, 9, 10, 11]  # blank texts stay, all three
    assert dropped(found) == {"r2": "r0", "r7": "r5"}


def test_a_rejected_row_names_the_row_that_stayed_and_their_similarity():
    [row] = rejected_rows(outcomes(NAME, table(text=[LONG, CHANGED], n=[1, 2]), 2, SURE | {"threshold": 0.4}))
    similarity = jaccard(*(word_runs(text) for text in simplified([LONG, CHANGED])))
    assert row == {
        "row_id": "r1",
        "text": CHANGED,
        "n": 2,
        "reject_reason": "near_duplicate",
        "duplicate_of": "r0",
        "similarity": pytest.approx(similarity, abs=1e-12),
    }


def test_case_numbers_punctuation_and_accents_make_no_difference():
    same = LONG.upper().replace(",", " -- ").replace("3", "12,000.50").replace("E", "É")
    assert gone([LONG, same], threshold=1.0) == {"r1": "r0"}


def test_chinese_is_compared_by_its_words():
    assert gone([CHINESE, CHINESE.replace("。", "，"), CHINESE[::-1]]) == {"r1": "r0"}
    assert gone([CHINESE, CHINESE.replace("办法", "方法")], **SURE, threshold=0.5) == {"r1": "r0"}


def test_a_row_goes_for_a_row_that_stays_and_never_for_a_chain():
    words = ["".join(pair) for pair in product("abcdefghijkl", repeat=2)]
    texts = [" ".join(words[begin : begin + 100]) for begin in (0, 6, 12)]  # each 0.88 to the next
    assert gone(texts, **SURE, threshold=0.85) == {"r1": "r0"}
    assert gone([texts[1], texts[0], texts[2]], **SURE, threshold=0.85) == {"r1": "r0", "r2": "r0"}


def test_a_copy_of_a_row_that_went_names_the_row_that_stayed():
    assert gone([LONG, CHANGED, CHANGED], **SURE, threshold=0.4) == {"r1": "r0", "r2": "r0"}


def test_a_candidate_below_the_threshold_stays():
    assert gone([LONG, CHANGED], **SURE, threshold=0.9) == {}


PLANTED = list(documents(2000, sentences()))


def test_recall_and_precision_against_every_pair_are_those_of_datasketch():
    sets = [word_runs(text) for text in simplified(PLANTED)]
    truth = exact_repeats(sets, 0.8)
    theirs = datasketch_repeats(sets, 0.8, 14, 8)
    rows = rejected_rows(outcomes(NAME, table(text=PLANTED), 500))
    ours = {int(row["row_id"][1:]): int(row["duplicate_of"][1:]) for row in rows}
    assert len(truth) > 100
    assert len(ours.keys() & truth.keys()) >= len(theirs.keys() & truth.keys()) - 2
    assert len(ours.keys() & truth.keys()) >= 0.95 * len(truth)
    for row, (mine, other) in zip(rows, ours.items(), strict=True):
        assert (
            row["similarity"] == pytest.approx(jaccard(sets[mine], sets[other])) and row["similarity"] >= 0.8
        )


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_every_batch_size_drops_the_same_rows(unit: str):
    rows = table(text=PLANTED[:300])
    found = [dropped(outcomes(NAME, rows, size, {"unit": unit})) for size in (1, 7, 1000)]
    assert found[0] == found[1] == found[2] and found[0]


texts = st.lists(st.text("ab 中.", max_size=12) | st.none(), max_size=12)


@given(texts, st.integers(1, 5), st.sampled_from(["words", "characters"]))
def test_any_texts_are_kept_or_dropped_for_an_earlier_one(values: list, batch_rows: int, unit: str):
    rows = typed_table("string", values)
    params = {"unit": unit, "n": 2, "on_null": "keep"}
    found = outcomes(NAME, rows, batch_rows, params)
    assert dropped(found) == dropped(outcomes(NAME, rows, 100, params))
    stay = set(kept_ids(found))
    assert stay.isdisjoint(dropped(found)) and len(stay) + len(dropped(found)) == len(values)
    assert all(other in stay and int(other[1:]) < int(row[1:]) for row, other in dropped(found).items())


def test_another_seed_finds_other_candidates_and_the_same_duplicates_above_all():
    similar = [LONG * 3, LONG * 3 + " more"]
    assert {len(gone(similar, seed=seed)) for seed in range(5)} == {1}


def test_rows_without_text_do_as_on_null_says():
    rows = typed_table("json", ["a", None, "a", 5, "bad \ud800"])
    [outcome] = outcomes(NAME, rows, 5)
    assert outcome.failed is not None
    assert list(zip(ids(outcome.failed), outcome.failed["error_class"].to_pylist(), strict=True)) == [
        ("r1", "MissingValue"),
        ("r3", "WrongType"),
        ("r4", "WrongType"),
    ]
    [outcome] = outcomes(NAME, rows, 5, {"on_null": "reject"})
    assert [(row["row_id"], row["reject_reason"]) for row in rejected_rows([outcome])] == [
        ("r1", "missing_text"),
        ("r2", "near_duplicate"),
    ]


def test_a_batch_that_nothing_changed_for_gets_an_equal_verdict():
    operator = build_operator(NAME, {})
    assert isinstance(operator, DatasetOperator)
    first, second, changed = (
        operator.summarize(table(text=[other, LONG])) for other in ("one", "two", "three")
    )
    before = dict(operator.decide([("1", first), ("2", second)]))
    after = dict(operator.decide([("1", first), ("2", changed)]))
    assert before["1"].equals(after["1"]) and before["2"].equals(after["2"])


def test_of_many_rows_that_stay_in_one_bucket_the_latest_hundred_are_compared():
    kept = buckets.KeptRows(np.zeros((300, 2), np.int32))
    for row in range(250):
        kept.keep(row)
    assert kept.sharing(250) == list(range(150, 250))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"unit": "letters"}, "unit"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"n": 0}, "n"),
        ({"bands": 0}, "bands"),
    ],
)
def test_wrong_parameters_are_refused_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=re.escape(message)):
        build_operator(NAME, params)


@pytest.mark.parametrize("column", ["duplicate_of", "similarity"])
def test_a_column_that_it_would_hide_is_refused(column: str):
    with pytest.raises(ConfigError, match=column):
        build_operator(NAME, {}).output_schema({"row_id": "string", "text": "string", column: "string"})
