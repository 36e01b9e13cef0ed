"""The price of a model is found by its name, and a cost is tokens times price."""

from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.serving.prices import TABLE, cost_of, price_of
from dataflow_assets.serving.spec import Price


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-4o", Price(input=2.5, output=10)),
        ("gpt-4o-2024-08-06", Price(input=2.5, output=10)),
        ("gpt-4o-2024-05-13", Price(input=5, output=15)),
        ("openai/gpt-4o-mini", Price(input=0.15, output=0.6)),
        ("OpenAI/GPT-4o-mini", Price(input=0.15, output=0.6)),
        ("text-embedding-3-small", Price(input=0.02)),
        ("gpt-4o-audio-preview", None),
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("scripted", None),
    ],
)
def test_the_table_of_the_package(model: str, price: Price | None) -> None:
    assert price_of(model) == price


def test_the_table_says_its_date_and_source() -> None:
    text = TABLE.read_text()
    assert "\nas_of: " in text and "\nsource: " in text


def test_the_price_of_the_serving_counts_first() -> None:
    own = Price(input=7.0)
    assert price_of("gpt-4o", own) is own


def test_a_file_counts_before_the_table_and_need_not_know_every_model(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text('prices:\n  "gpt-*": {input: 1}\n  "qwen*": {input: 0.5, output: 2}\n')
    assert price_of("gpt-4o", None, file) == Price(input=1)
    assert price_of("Qwen/Qwen3-8B", None, file) == Price(input=0.5, output=2)
    assert price_of("o3", None, file) == price_of("o3")


def test_the_longest_pattern_counts(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text('prices:\n  "m-large-*": {input: 2}\n  "m-*": {input: 1}\n')
    assert price_of("m-large-1", None, file) == Price(input=2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prices:\n  m: {inptu: 1}\n", "prices.yaml:2: there is no field"),
        ("prices:\n  m: {input: -1}\n", "prices.yaml:2: prices.m.input"),
        ("prices: [\n", "prices.yaml:"),
        ("", "is empty"),
    ],
)
def test_a_mistake_in_a_price_file_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        price_of("m", None, tmp_path / "prices.yaml")


def test_a_price_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: cannot be read"):
        price_of("m", None, tmp_path / "gone.yaml")


def test_a_cost_is_tokens_times_price() -> None:
    assert cost_of(Price(input=2.5, output=10), 1_000_000, 500_000) == 7.5
    assert cost_of(Price(input=2.5, output=10), 0, 0) == 0
    assert cost_of(None, 1000, 1000) == 0
