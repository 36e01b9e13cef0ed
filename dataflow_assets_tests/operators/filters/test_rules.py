"""Filters by rules: reasons with values, profiles, `annotate`, and `filter_by` on what it adds."""

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.filters.rules import RuleFilter
from dataflow_assets.operators.operator import Operator
from dataflow_assets.operators.registry import operators
from dataflow_assets.text.language import language_of
from dataflow_assets_tests.operators.sample_tables import applied, case_rows, ids, table, typed_table

GOOD = "The cat sat on the mat, and the dog that had to be in the house was with the cat of the house. " * 3
CHINESE = "我们在北京的大学里学习，老师是中国人，他和学生们在一起。" * 5
TEXTS = [GOOD, "too short", CHINESE, "# " * 60 + GOOD, ""]


def test_a_threshold_may_be_infinite():
    params = {
        "language": "en",
        "max_top_2_gram": float("inf"),
        "max_top_3_gram": "off",
        "max_top_4_gram": "off",
    }
    assert applied("filter_gopher_repetition", table(text=["a b a b c"]), params).kept.num_rows == 1


def test_a_rejected_row_says_which_rule_what_was_measured_and_the_threshold():
    outcome = applied("filter_gopher_quality", typed_table("string", TEXTS))
    assert ids(outcome.kept) == ["r0", "r2"]
    assert outcome.rejected is not None
    told = outcome.rejected.select(["reject_reason", "reject_value", "reject_threshold"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [
        ("gopher_short_doc", 2, 50),
        ("gopher_too_many_hashes", pytest.approx(60 / 135), 0.1),
        ("gopher_short_doc", 0, 50),
    ]


def test_english_rules_drop_the_chinese_text():
    outcome = applied("filter_gopher_quality", typed_table("string", [CHINESE]), {"language": "en"})
    assert ids(outcome.rejected) == ["r0"]


def test_a_parameter_goes_before_the_profile_and_off_switches_a_rule_off():
    rows = typed_table("string", TEXTS)
    assert ids(applied("filter_gopher_quality", rows, {"min_words": 1000}).kept) == []
    some = {"min_words": "off", "min_stop_words": "off"}
    assert ids(applied("filter_gopher_quality", rows, some).kept) == ["r0", "r1", "r2", "r4"]


def test_thresholds_that_no_text_can_meet_are_refused():
    with pytest.raises(ConfigError, match="min_words 200000 is above max_words 100000 in the profile 'en'"):
        build_operator("filter_gopher_quality", {"min_words": 200_000})


def test_annotate_drops_nothing_and_adds_each_measure_once():
    rows = typed_table("string", TEXTS)
    outcome = applied("filter_gopher_quality", rows, {"mode": "annotate"})
    assert outcome.kept.num_rows == len(TEXTS)
    assert outcome.kept["gopher_quality_words"].to_pylist()[-1] == 0
    assert outcome.kept["gopher_quality_mean_word_length"].to_pylist()[-1] is None


RULE_FILTERS = {name: cls for name, cls in operators().items() if issubclass(cls, RuleFilter) and cls.rules}


@pytest.mark.parametrize("language", ["en", "auto"])
@pytest.mark.parametrize("cls", RULE_FILTERS.values(), ids=list(RULE_FILTERS))
def test_filter_by_on_the_measures_gives_the_verdicts_of_the_filter(cls: type[Operator], language: str):
    filter_, annotate = build_operator(cls.name, {"language": language}), {"mode": "annotate"}
    assert isinstance(filter_, RuleFilter)
    texts = [*TEXTS, *(text * 4 for text in TEXTS), "a\nb\n\nc", "…\n" * 30]
    if language == "auto":
        texts = [text for text in texts if language_of(text) == "zh"]
    rows = typed_table("string", texts)
    measured = applied(cls.name, rows, {"language": language, **annotate}).kept
    bounds: dict[str, dict[str, float]] = {}
    for rule, column in zip(filter_.rules, filter_.columns(), strict=True):
        profile = filter_.profile("en" if language == "en" else "zh")
        if (threshold := rule.threshold(profile)) is not None:
            bounds.setdefault(column, {})["min" if rule.min else "max"] = threshold
    kept = ids(applied("filter_by", measured, {"rules": bounds}).kept) if bounds else ids(measured)
    assert kept == ids(filter_.apply(rows).kept)


def test_filter_by_names_the_column_and_the_side_and_lets_null_pass():
    rows = table(a=[1.0, 5.0, None, 9.0], b=[3, 3, 3, 1])
    outcome = applied("filter_by", rows, {"rules": {"a": {"min": 2, "max": 8}, "b": {"min": 2}}})
    assert ids(outcome.kept) == ["r1", "r2"]
    assert outcome.rejected is not None
    assert outcome.rejected["reject_reason"].to_pylist() == ["a_too_low", "a_too_high"]


def test_filter_by_fails_what_is_no_number():
    rows = table(a=[float("nan"), 1.0], b=["x", "y"])
    outcome = applied("filter_by", rows, {"rules": {"a": {"min": 0}}})
    assert (ids(outcome.kept), ids(outcome.failed)) == (["r1"], ["r0"])
    assert ids(applied("filter_by", rows, {"rules": {"b": {"min": 0}}}).failed) == ["r0", "r1"]


@pytest.mark.parametrize("bounds", [{}, {"a": {}}, {"a": {"min": 2, "max": 1}}, {"a": {"least": 1}}])
def test_bounds_of_filter_by_that_make_no_sense_are_refused(bounds: dict):
    with pytest.raises(ConfigError, match="rules"):
        build_operator("filter_by", {"rules": bounds})


@pytest.mark.parametrize(
    "on_null, kept, rejected, failed", [("fail", 1, 0, 1), ("keep", 2, 0, 0), ("reject", 1, 1, 0)]
)
@pytest.mark.parametrize("mode", ["filter", "annotate"])
def test_a_row_without_text_is_failed_kept_or_rejected(
    mode: str, on_null: str, kept: int, rejected: int, failed: int
):
    rows = typed_table("string", [None, GOOD])
    outcome = applied("filter_gopher_quality", rows, {"on_null": on_null, "mode": mode})
    assert (len(ids(outcome.kept)), len(ids(outcome.rejected)), len(ids(outcome.failed))) == (
        kept,
        rejected,
        failed,
    )


def test_chinese_and_japanese_prose_stays_and_a_menu_goes_with_rule_and_value():
    rows = case_rows("35_quality_filters_on_cjk")
    texts = table(id=[row["id"] for row in rows], text=[row["text"] for row in rows])
    outcome = applied("filter_fineweb", texts, {"max_duplicate_line_chars": "off", "max_short_lines": "off"})
    assert outcome.kept["id"].to_pylist() == [1, 2, 4]
    assert outcome.rejected is not None
    told = outcome.rejected.select(["id", "reject_reason", "reject_value", "reject_threshold"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [(3, "line_punct_ratio", 0.0, 0.106)]
