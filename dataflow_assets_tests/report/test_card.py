from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dataflow_assets.report.card import card_of, languages_of, size_category
from dataflow_assets.report.gather import ReportData, gather
from dataflow_assets_tests.report.hostile_rows import hostile_work


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    return gather(hostile_work(tmp_path_factory.mktemp("hostile")))


@pytest.fixture(scope="module")
def card(data: ReportData) -> str:
    return card_of(data)


def test_the_front_matter_is_what_the_hub_expects(card: str):
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["size_categories"] == ["n<1K"]
    assert head["tags"] == ["dataflow_assets"]
    assert set(head) <= {"pretty_name", "language", "size_categories", "tags"}


def test_the_licence_of_the_pipeline_stands_in_front(data: ReportData):
    card = card_of(replace(data, license="cc-by-4.0"))
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "cc-by-4.0"


def test_it_says_how_the_data_was_made(card: str):
    for part in ("## How it was made", "## Rows that were left out", "## Columns", "## Profile", "## Checks"):
        assert f"\n{part}\n" in card
    assert "| unique | rejected | duplicate |" in card


def test_names_from_rows_are_escaped(card: str):
    assert "<img" not in card
    assert "&lt;img src=x onerror\\=" in card or "&lt;img src=x onerror=" in card


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (999_999, "100K<n<1M"),
        (10**6, "1M<n<10M"),
        (10**10, "n>1B"),
    ],
)
def test_the_size_has_the_words_of_the_hub(rows: int, name: str):
    assert size_category(rows) == name


def test_the_languages_are_those_of_the_longest_texts(data: ReportData):
    columns = {
        "text": {
            "measures": {"chars": {"mean": 900}},
            "shares": {"language": {"zh": 0.2, "en": 0.7, "other": 0.1}},
        },
        "path": {"measures": {"chars": {"mean": 20}}, "shares": {"language": {"fr": 1.0}}},
    }
    last = replace(data.steps[-1], after={"columns": columns})
    assert languages_of(replace(data, steps=[*data.steps[:-1], last])) == ["en", "zh"]


def test_an_estimated_number_is_marked_as_one(data: ReportData):
    columns = {"text": {"distinct": 1180, "distinct_is_exact": False}}
    last = replace(data.steps[-1], after={"columns": columns}, columns={"text": "string"})
    assert "distinct ≈ 1,180" in card_of(replace(data, steps=[*data.steps[:-1], last]))


def test_the_hub_reads_the_card(card: str, tmp_path: Path):
    hub = pytest.importorskip("huggingface_hub", reason="the extra `models` is not installed")
    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    loaded = hub.DatasetCard.load(tmp_path / "README.md")
    assert loaded.data.size_categories == ["n<1K"]
