"""`filter_language` on short texts of many languages."""

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.operator import TextFilter
from dataflow_assets.text.language_identification import identify
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

TEXTS = {
    "en": "The sheep stand on the hill and look at the sea.",
    "fr": "Les moutons sont sur la colline et regardent la mer.",
    "de": "Die Schafe stehen auf dem Hügel und schauen aufs Meer.",
    "ru": "Овцы стоят на холме и смотрят на море, потому что сегодня хорошая погода.",
    "ja": "羊たちは丘の上に立って海を見ています。",
    "zh": "羊群站在山坡上，望着大海，等待牧羊人回来。",
}


def reason(text: str, *languages: str, **params: object) -> str | None:
    operator = build_operator("filter_language", {"languages": list(languages), **params})
    assert isinstance(operator, TextFilter)
    return operator.reason(text)


@pytest.mark.parametrize("language", TEXTS)
def test_each_language_is_known(language: str):
    assert [reason(text, language) for text in TEXTS.values()] == [
        None if code == language else "other_language" for code in TEXTS
    ]


def test_chinese_is_one_language_unless_cantonese_is_asked_for():
    cantonese = "呢個係廣東話，我哋今日去邊度食飯呀？佢哋話唔知喎。"
    assert reason(cantonese, "zh") is None
    assert identify(cantonese, apart=("yue",))[0] == "yue"
    assert reason(cantonese, "yue") is None


def test_what_has_no_letters_is_in_no_language():
    assert [identify(text) for text in ("", "!!! 123", "👍🏽")] == [("und", 0.0)] * 3
    assert reason("!!!", "en") == "other_language"


def test_a_doubtful_language_is_dropped_by_its_score():
    text = "hello"
    language, score = identify(text)
    assert reason(text, language) == "unsure_language"
    assert reason(text, language, min_score=score) is None
    assert identify(TEXTS["en"])[1] > 0.99


@pytest.mark.parametrize(("on_null", "kept"), [("fail", 2), ("keep", 3), ("reject", 2)])
def test_annotate_adds_language_and_score_and_drops_no_text(on_null: str, kept: int):
    rows = table(text=[TEXTS["fr"], None, "!"])
    params = {"languages": ["en"], "mode": "annotate", "on_null": on_null}
    outcome = applied("filter_language", rows, params)
    assert len(ids(outcome.kept)) == kept
    assert len(ids(outcome.rejected)) == (on_null == "reject")
    found = outcome.kept.to_pylist()
    assert (found[0]["language"], found[-1]["language"], found[-1]["language_score"]) == ("fr", "und", 0)
    assert found[0]["language_score"] > 0.9


def test_rows_that_are_dropped_have_the_columns_that_they_came_with():
    params = {"languages": ["en"], "mode": "annotate"}
    failed = applied("filter_language", table(text=[TEXTS["en"], None]), params).failed
    rejected = applied("filter_language", table(text=[None]), {**params, "on_null": "reject"}).rejected
    assert failed is not None and rejected is not None
    assert failed.column_names == ["row_id", "text", "error_class", "error_message", "attempts"]
    assert rejected.column_names == ["row_id", "text", "reject_reason"]


def test_a_column_that_is_there_is_replaced_also_without_rows():
    rows = table(language=["x"], text=[TEXTS["en"]])
    for part in (rows, rows.slice(0, 0)):
        kept = applied("filter_language", part, {"languages": ["fr"], "mode": "annotate"}).kept
        assert kept.column_names == ["row_id", "language", "text", "language_score"]
        assert kept["language"].to_pylist() == ["en"][: len(part)]


def test_an_unknown_language_is_refused_at_load():
    with pytest.raises(ConfigError, match="knows no language 'english'; it knows: ace, af, "):
        build_operator("filter_language", {"languages": ["english"]})
