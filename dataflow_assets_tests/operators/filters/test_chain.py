"""`filter_chain`: several filters in one step."""

from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.filters.rule_documents import english_documents
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

FILTERS: list[dict] = [
    {"type": "filter_word_count"},
    {"type": "filter_colon_end"},
    {"type": "filter_regex", "params": {"pattern": "server|软件"}},
    {"type": "filter_blocklist", "params": {"words": ["lorem"]}},
    {"type": "filter_gopher_quality", "params": {"min_words": 30}},
]


def test_the_verdicts_are_those_of_one_step_after_the_other():
    rows = table(text=english_documents()[::10])
    together = applied("filter_chain", rows, {"filters": FILTERS})
    reasons = {}
    for given in FILTERS:
        outcome = applied(given["type"], rows, given.get("params"))
        rows = outcome.kept
        for row in outcome.rejected.to_pylist() if outcome.rejected else []:
            reasons[row["row_id"]] = (row["reject_reason"], row.get("reject_value"))
    assert together.kept == rows
    assert together.rejected is not None
    assert {
        row["row_id"]: (row["reject_reason"], row["reject_value"]) for row in together.rejected.to_pylist()
    } == reasons
    assert len({reason for reason, _ in reasons.values()}) > 4


@pytest.mark.parametrize("pattern", [r"^\w+$", r"f\z", r"(?:\w+)+!"])
def test_a_pattern_has_the_engine_that_it_has_in_a_step_of_its_own(pattern: str):
    rows, params = table(text=["café", "cafe", "a" * 50]), {"pattern": pattern, "engine": "re2"}
    chain = {"filters": [{"type": "filter_regex", "params": params}]}
    assert applied("filter_chain", rows, chain).kept == applied("filter_regex", rows, params).kept


def test_annotate_adds_the_measures_of_all():
    params = {"mode": "annotate", "filters": [FILTERS[0], FILTERS[1]]}
    kept = applied("filter_chain", table(text=["One two:"]), params).kept
    assert kept.drop_columns(["row_id", "text"]).to_pylist() == [
        {"word_count_words": 2.0, "colon_end_colons": 1.0}
    ]


def test_column_language_and_nulls_count_for_all():
    rows = table(body=["一二三四五六七八九十" * 10, None])
    params = {
        "column": "body",
        "on_null": "reject",
        "language": "en",
        "filters": [{"type": "filter_regex", "params": {"pattern": "一"}}, {"type": "filter_word_count"}],
    }
    rejected = applied("filter_chain", rows, params).rejected
    assert ids(rejected) == ["r0", "r1"]
    assert rejected is not None
    assert rejected["reject_reason"].to_pylist() == ["too_few_words", "missing_text"]


def test_a_changed_list_of_one_filter_is_a_changed_step(tmp_path: Path):
    def identity(words: str) -> object:
        (tmp_path / "words.txt").write_text(words)
        filters = [{"type": "filter_blocklist", "params": {"files": ["words.txt"]}}]
        return build_operator("filter_chain", {"filters": filters}, tmp_path).identity()

    assert identity("one") == identity("one\n") != identity("two")


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([], "at least 1 item"),
        ([{"type": "filter_colons"}], "no operator 'filter_colons'"),
        ([{"type": "filter_colon_end", "params": {"most": 1}}], "no parameter 'most'"),
        ([{"type": "filter_colon_end", "params": {"column": "x"}}], "column of 'filter_colon_end' is that"),
        (
            [{"type": "filter_colon_end", "params": {"mode": "annotate"}}],
            "mode of 'filter_colon_end'",
        ),
        ([{"type": "filter_c4"}], "'filter_c4' does not judge one text at a time"),
        ([{"type": "lowercase"}], "'lowercase' does not judge one text at a time"),
        ([{"type": "filter_length", "params": {"min_chars": 1}}], "does not judge one text at a time"),
    ],
)
def test_what_cannot_be_in_a_chain_is_refused_at_load(filters: list[dict], message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("filter_chain", {"filters": filters})


def test_a_chain_in_a_chain_has_the_language_of_the_step():
    inner = {"type": "filter_chain", "params": {"filters": [FILTERS[0]]}}
    assert build_operator("filter_chain", {"language": "en", "filters": [inner]}).needed_packages() == {}


def test_annotate_is_for_measures_and_for_each_once():
    twice = {"type": "filter_chain", "params": {"filters": [FILTERS[1], FILTERS[1]]}}
    for filters in ([FILTERS[2]], [FILTERS[1], FILTERS[1]], [twice]):
        with pytest.raises(ConfigError, match=r"measures nothing|given twice"):
            build_operator("filter_chain", {"mode": "annotate", "filters": filters})
