"""Perplexity and IFD: equal to one row at a time, in chunks of every size and passes of every size."""

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.scoring import instructions
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.models.instruction_difficulty import _ALPACA, ScoreIfd
from dataflow_assets.operators.models.language_model import LanguageModel
from dataflow_assets_tests.operators.models.one_by_one import loaded, perplexity, tokens_of
from dataflow_assets_tests.operators.models.samples import (
    CHUNKS,
    by_chunks,
    instructions_and_answers,
    real_texts,
)
from dataflow_assets_tests.operators.sample_tables import applied, table

LIMIT = 512


def near(values: object) -> object:
    return pytest.approx(values, rel=1e-3)


@pytest.fixture(scope="module")
def perplexities(tiny_gpt2: Path) -> list[float | None]:
    model, tokenizer = loaded("AutoModelForCausalLM", tiny_gpt2)
    return [perplexity(model, tokens_of(tokenizer, text, LIMIT)) for text in real_texts()]


@pytest.mark.parametrize("chunk_rows", CHUNKS)
@pytest.mark.parametrize("tokens_per_pass", [1, 700, 100_000])
def test_perplexity_is_that_of_one_row_at_a_time(
    tiny_gpt2: Path, perplexities: list[float], chunk_rows: int, tokens_per_pass: int
):
    params = {"model": str(tiny_gpt2), "tokens_per_pass": tokens_per_pass}
    kept = by_chunks("score_perplexity", params, table(text=real_texts()), chunk_rows)
    assert kept["perplexity"].to_pylist() == near(perplexities)
    assert len(set(perplexities)) > 20


@pytest.fixture(scope="module")
def ifds(tiny_gpt2: Path) -> list[tuple[float | None, float | None]]:
    return _ifds(tiny_gpt2, instructions_and_answers(), LIMIT)


def _ifds(folder: Path, rows: pa.Table, limit: int) -> list[tuple[float | None, float | None]]:
    """The answers' perplexities with and without the instruction, each row alone."""
    model, tokenizer = loaded("AutoModelForCausalLM", folder)
    found = []
    for row in rows.to_pylist():
        prompt = tokens_of(tokenizer, _ALPACA.format(instruction=row["instruction"]), limit)
        answer = tokens_of(tokenizer, row["answer"], limit - len(prompt))
        found.append((perplexity(model, prompt + answer, len(prompt)), perplexity(model, answer)))
    return found


@pytest.mark.parametrize("chunk_rows", CHUNKS)
def test_ifd_is_that_of_one_row_at_a_time(tiny_gpt2: Path, ifds: list[tuple[float, float]], chunk_rows: int):
    kept = by_chunks("score_ifd", {"model": str(tiny_gpt2)}, instructions_and_answers(), chunk_rows)
    _assert_equal(kept, ifds)


def _assert_equal(kept: pa.Table, ifds: list[tuple[float, float]]) -> None:
    assert kept["ifd_given"].to_pylist() == near([given for given, _ in ifds])
    assert kept["ifd_alone"].to_pylist() == near([alone for _, alone in ifds])
    scores = [None if None in pair else pair[0] / pair[1] for pair in ifds]
    assert kept["ifd"].to_pylist() == near(scores)


@pytest.mark.slow
def test_a_real_model_scores_as_one_row_at_a_time(smollm2_folder: Path):
    rows, params = instructions_and_answers(6), {"model": str(smollm2_folder)}
    _assert_equal(by_chunks("score_ifd", params, rows, 1000), _ifds(smollm2_folder, rows, 8192))


def test_the_input_stands_in_the_prompt_where_there_is_one(tiny_gpt2: Path):
    rows = table(instruction=["Add."] * 3, given=["1 2", None, " "], answer=["It is three."] * 3)
    params = {"model": str(tiny_gpt2), "input_column": "given"}
    first, second, third = applied("score_ifd", rows, params).kept["ifd"].to_pylist()
    plain = applied("score_ifd", rows, {"model": str(tiny_gpt2)}).kept["ifd"].to_pylist()
    assert second == third == near(plain[0]) and first != near(second)


def test_braces_in_a_text_are_braces(tiny_gpt2: Path):
    rows = table(instruction=["{answer} {0} }"], answer=["{} is a dict"])
    assert applied("score_ifd", rows, {"model": str(tiny_gpt2)}).kept["ifd"][0].as_py() > 0


def test_without_two_tokens_or_without_room_the_score_is_null(tiny_gpt2: Path):
    rows = table(instruction=["a", "a", "long " * 600, "a"], answer=["", "b", "An answer.", "An answer."])
    kept = applied("score_ifd", rows, {"model": str(tiny_gpt2)}).kept
    assert [score is None for score in kept["ifd"].to_pylist()] == [True, True, True, False]
    assert kept["ifd_tokens"].to_pylist()[:3] == [0, 1, 0]
    assert kept["ifd_truncated"].to_pylist() == [False, False, True, False]


def test_a_text_that_is_too_long_is_cut_and_says_so(tiny_gpt2: Path):
    texts = ["one two three four five", "x y " * 1_000_000]
    kept = applied("score_perplexity", table(text=texts), {"model": str(tiny_gpt2), "max_tokens": 8}).kept
    assert kept["perplexity_tokens"].to_pylist() == [8, 8]
    assert kept["perplexity_truncated"].to_pylist() == [True, True]
    cut = applied("score_perplexity", table(text=["x y " * 9]), {"model": str(tiny_gpt2), "max_tokens": 8})
    assert cut.kept["perplexity"][0].as_py() == near(kept["perplexity"][1].as_py())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"template": "no field"}, "expected the fields"),
        ({"template": "{instruction} {more}"}, "expected the fields"),
        ({"template_with_input": "{input}"}, "expected the fields"),
    ],
)
def test_a_template_without_its_fields_is_refused(params: dict[str, str], message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("score_ifd", {"model": "m", **params})


def test_a_model_with_more_than_an_output_layer_is_scored_by_its_own_logits(tiny_gpt2: Path, monkeypatch):
    monkeypatch.setattr(LanguageModel, "_is_body_and_head", lambda self: False)
    rows = instructions_and_answers(8)
    whole = applied("score_ifd", rows, {"model": str(tiny_gpt2)}).kept["ifd"].to_pylist()
    monkeypatch.undo()
    assert whole == near(applied("score_ifd", rows, {"model": str(tiny_gpt2)}).kept["ifd"].to_pylist())


def test_rows_share_forward_passes_that_are_full(tiny_gpt2: Path):
    operator = build_operator("score_ifd", {"model": str(tiny_gpt2), "device": "cpu"})
    assert isinstance(operator, ScoreIfd)
    operator.apply(instructions(256))
    counts = operator.model().passes.counts
    assert counts.passes <= 2 * 256 / 5
    assert counts.padded_tokens <= 1.15 * counts.real_tokens
