"""Operators of open-dataflow give through the adapter what they give in their own pipeline."""

import json
import warnings
from pathlib import Path

import pytest

import dataflow_assets
from dataflow_assets_tests.opendcai.beside import Case, ours, theirs

pytest.importorskip("dataflow", reason="open-dataflow is not installed")
PAGES = Path(dataflow_assets.__file__).parent / "pipelines/data/text_clean_sample.jsonl"
FUNCTIONS = "dataflow_assets_tests.opendcai.frame_functions"
TEXT = {"input_key": "text"}

CASES = {
    "lower": Case("LowercaseRefiner", TEXT),
    "plain": Case("HtmlUrlRemoverRefiner", TEXT),
    "entities": Case("HtmlEntityRefiner", TEXT),
    "tidy": Case("RemoveExtraSpacesRefiner", TEXT),
    "no_emoji": Case("RemoveEmojiRefiner", TEXT),
    "no_numbers": Case("RemoveNumberRefiner", TEXT),
    "normal": Case("TextNormalizationRefiner", TEXT),
    "words": Case("WordNumberFilter", TEXT, {"min_words": 8}),
    "length": Case(
        "CharNumberFilter", TEXT, {"threshold": 60}, {"columns": {"char_number_filter_label": "int64"}}
    ),
    "colon": Case("ColonEndFilter", TEXT, {}, {"columns": {"colonendfilter_label": "int64"}}),
    "ngrams": Case("NgramFilter", TEXT, {"min_score": 0.99}, {"columns": {"NgramScore": "float64"}}),
    "symbols": Case("SymbolWordRatioFilter", TEXT),
    "general": Case("GeneralFilter", {}, {"filter_rules": [{"object": f"{FUNCTIONS}:is_long"}]}),
    "pandas": Case(
        "PandasOperator",
        {},
        {"process_fn": [{"object": f"{FUNCTIONS}:with_length"}]},
        {"columns": {"length": "int64"}},
    ),
}
WHOLE = {
    "hashes": Case("HashDeduplicateFilter", TEXT, {"hash_func": "xxh3"}),
    "ngram_hashes": Case("NgramHashDeduplicateFilter", TEXT),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped dirty pages, one of them twice, without those that have no text: their operators raise."""
    lines = PAGES.read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if isinstance(row.get("text"), str)]
    file = tmp_path_factory.mktemp("source") / "pages.jsonl"
    texts = [*(row["text"] for row in rows), rows[0]["text"]]
    written = (json.dumps({"text": text, "code": "007", "n": n}) for n, text in enumerate(texts))
    file.write_text("".join(f"{line}\n" for line in written), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, source: Path) -> dict[str, list[dict[str, object]]]:
    """All cases through our command: in batches of 20, and in one where they need all rows."""
    in_batches = ours(tmp_path_factory.mktemp("batches"), source, CASES)
    return in_batches | ours(tmp_path_factory.mktemp("whole"), source, WHOLE, batch_rows=None)


@pytest.mark.parametrize("name", [*CASES, *WHOLE])
def test_the_rows_are_those_of_their_own_pipeline(name: str, made, source: Path, tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs(tmp_path, source, {**CASES, **WHOLE}[name])
    assert expected
    assert made[name] == [{**row, "code": "007"} for row in expected]
