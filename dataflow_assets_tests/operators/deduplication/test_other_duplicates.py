import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planted_duplicates import documents
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import DatasetOperator, build_operator
from dataflow_assets.operators.registry import operators
from dataflow_assets_tests.operators.deduplication.data_sets import (
    dropped,
    kept_ids,
    outcomes,
    rejected_rows,
    sentences,
)
from dataflow_assets_tests.operators.sample_tables import table, typed_table
from dataflow_assets_tests.operators.test_any_text import ODD_TEXTS

SIMHASH, NGRAM = "drop_simhash_duplicates", "drop_ngram_duplicates"
TEXT = (
    "It was the best of times, it was the worst of times, it was the age of wisdom and of foolishness. " * 3
)
ON_TEXT = sorted(
    name
    for name, operator in operators().items()
    if operator.scope == "dataset" and operator.__module__.startswith("dataflow_assets.operators.dedup")
)
NEW = [name for name in ON_TEXT if name != "drop_duplicates"]


def gone(name: str, texts: list, batch_rows: int = 100, **params: object) -> dict[str, str]:
    return dropped(outcomes(name, table(text=texts), batch_rows, params))


def test_simhash_drops_what_differs_in_few_bits_and_tells_how_many():
    texts = [TEXT, TEXT.replace("wisdom", "wisdoms"), "Something else entirely, about foxes and dogs"]
    [row] = rejected_rows(outcomes(SIMHASH, table(text=texts), 2, {"max_distance": 7}))
    assert (row["row_id"], row["duplicate_of"], row["reject_reason"]) == ("r1", "r0", "simhash_duplicate")
    assert 57 / 64 <= row["similarity"] < 1


def test_simhash_compares_short_texts_whole_and_leaves_blank_ones():
    assert gone(SIMHASH, ["cat", "dog", "cat ", "", " ", "猫", "狗", "猫"]) == {"r2": "r0", "r7": "r5"}


def by_every_pair(values: list[int], reach: int) -> dict[str, str]:
    stay: list[int] = []
    found = {}
    for place, value in enumerate(values):
        near = [other for other in stay if (values[other] ^ value).bit_count() <= reach]
        if near:
            found[f"r{place}"] = f"r{near[0]}"
        else:
            stay.append(place)
    return found


@pytest.mark.parametrize("reach", [0, 3, 6])
def test_simhash_finds_every_pair_within_reach(reach: int):
    rows = table(text=list(documents(400, sentences())))
    operator = build_operator(SIMHASH, {"max_distance": reach})
    assert isinstance(operator, DatasetOperator)
    values = operator.summarize(rows)["simhash"].to_numpy().view(np.uint64).tolist()
    found = by_every_pair(values, reach)
    assert dropped(outcomes(SIMHASH, rows, 70, {"max_distance": reach})) == found and found


def test_ngram_drops_what_shares_a_piece():
    texts = ["aaabbbccc", "xxxbbbyyy", "bbbxxxzzz", "aaabbbc", "xxx", "cc"]
    # r2 shares xxx with r1, which is gone, and bbb with r0; the pieces of r3 are aa, ab, bb
    assert gone(NGRAM, texts) == {"r1": "r0", "r2": "r0"}
    assert gone(NGRAM, texts, min_shared=2) == {"r2": "r1"}
    assert gone(NGRAM, ["aaabbbccc", "zzzcccbbb"], min_shared=2) == {"r1": "r0"}


def test_ngram_leaves_blank_pieces_and_compares_short_texts_whole():
    assert gone(NGRAM, ["a", "b", "a", "", "", "ab  cd", "ef  gh"]) == {"r2": "r0"}


def test_ngram_drops_equal_texts_whatever_their_pieces():
    texts = ["ababab", "ababab", "哈哈哈", "哈哈哈", "no", "no", "   x", "   x", " ", " ", "ababab"]
    [outcome] = outcomes(NGRAM, table(text=texts), 100, {"min_shared": 2})
    assert dropped([outcome]) == {"r1": "r0", "r3": "r2", "r5": "r4", "r7": "r6", "r10": "r0"}
    assert {row["similarity"] for row in rejected_rows([outcome])} == {1}


def test_ngram_lets_equal_texts_go_together():
    texts = ["aaabbbccc", "aaabbbddd", "aaabbbddd"]
    [outcome] = outcomes(NGRAM, table(text=texts), 100, {"min_shared": 2})
    found = [(row["duplicate_of"], row["similarity"]) for row in rejected_rows([outcome])]
    assert found == [("r0", 2 / 3)] * 2


def by_the_peer(texts: list[str], pieces: int, shared: int) -> list[int]:
    """The rule of open-dataflow 1.0.13 for texts with at least one character a piece, but equal ones go."""
    stay: list[set[str]] = []
    kept = []
    for place, text in enumerate(texts):
        length = len(text) // pieces
        mine = {text[begin * length : (begin + 1) * length] for begin in range(pieces)}
        if all(len(mine & other) < shared for other in stay) and text not in texts[:place]:
            stay.append(mine)
            kept.append(place)
    return kept


@given(st.lists(st.text("ab", min_size=3, max_size=9), max_size=12), st.integers(1, 3), st.integers(1, 5))
def test_ngram_keeps_what_the_peer_keeps(texts: list[str], shared: int, batch_rows: int):
    found = outcomes(NGRAM, typed_table("string", texts), batch_rows, {"min_shared": shared})
    assert kept_ids(found) == [f"r{place}" for place in by_the_peer(texts, 3, shared)]


@pytest.mark.parametrize("name", ON_TEXT)
def test_every_batch_size_gives_the_same_rows(name: str):
    rows = table(text=list(documents(200, sentences())))
    found = []
    for size in (1, 7, 1000):
        parts = outcomes(name, rows, size)
        found.append([row for part in parts for row in part.kept.to_pylist()] + rejected_rows(parts))
    assert found[0] == found[1] == found[2] and len(found[0]) == 200


@pytest.mark.parametrize("name", ON_TEXT)
def test_odd_texts_fail_no_row(name: str):
    texts = [text for text in ODD_TEXTS.values() for _ in range(2)]
    [outcome] = outcomes(name, table(text=texts), 100)
    rejected = rejected_rows([outcome])
    assert outcome.failed is None and outcome.kept.num_rows + len(rejected) == len(texts)
    assert {"r0", "r1"} <= set(kept_ids([outcome])) or name == "drop_duplicates"  # empty texts repeat nothing


@pytest.mark.parametrize("name", NEW)
def test_rows_without_text_fail_and_the_others_are_done(name: str):
    texts = ["same text here. " * 9, None, "bad \ud800", 5, "same text here. " * 9]
    [outcome] = outcomes(name, typed_table("json", texts), 5)
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["MissingValue", "WrongType", "WrongType"]
    assert "fix_unicode" in outcome.failed["error_message"][1].as_py()
    assert [row["row_id"] for row in rejected_rows([outcome])] == ["r4"]


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("on_null", ["keep", "reject"])
def test_rows_without_text_do_as_on_null_says(name: str, on_null: str):
    [outcome] = outcomes(name, typed_table("string", [None, "a", None]), 5, {"on_null": on_null})
    assert kept_ids([outcome]) == (["r0", "r1", "r2"] if on_null == "keep" else ["r1"])
    assert {row["reject_reason"] for row in rejected_rows([outcome])} <= {"missing_text"}


@pytest.mark.parametrize("name", NEW)
def test_no_batch_and_an_empty_batch_are_fine(name: str):
    operator = build_operator(name, {})
    assert isinstance(operator, DatasetOperator)
    assert list(operator.decide([])) == []
    empty = typed_table("string", [])
    [(_, verdict)] = operator.decide([("b0", operator.summarize(empty))])
    assert operator.apply_verdict(empty, verdict).kept.num_rows == 0


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        (SIMHASH, {"max_distance": 8}, "max_distance"),
        (SIMHASH, {"n": 0}, "n"),
        (NGRAM, {"pieces": 2, "min_shared": 3}, "min_shared 3 is above pieces 2"),
        ("drop_duplicate_sentences", {"sentences": 0}, "sentences"),
    ],
)
def test_wrong_parameters_are_refused_at_load(name: str, params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator(name, params)
