"""Classes, vectors and texts: equal to one row at a time, in chunks of every size."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataflow_assets.batch import json_text, json_value
from dataflow_assets.operators.models.classify_with_model import _scores
from dataflow_assets.operators.models.loading import most_tokens
from dataflow_assets_tests.operators.models.one_by_one import loaded, mean_vector, tokens_of
from dataflow_assets_tests.operators.models.samples import CHUNKS, by_chunks, real_texts
from dataflow_assets_tests.operators.sample_tables import applied, table


@pytest.mark.parametrize("chunk_rows", CHUNKS)
@pytest.mark.parametrize("tokens_per_pass", [1, 4096])
def test_classes_are_those_of_one_row_at_a_time(tiny_classifier: Path, chunk_rows: int, tokens_per_pass: int):
    params = {"model": str(tiny_classifier), "all_scores": True, "tokens_per_pass": tokens_per_pass}
    kept = by_chunks("classify_with_model", params, table(text=real_texts()), chunk_rows)
    expected = _classes(tiny_classifier)
    assert kept["label"].to_pylist() == [max(scores, key=lambda name: scores[name]) for scores in expected]
    assert len(set(kept["label"].to_pylist())) > 1
    for found, scores in zip(kept["label_scores"].to_pylist(), expected, strict=True):
        assert json.loads(found) == pytest.approx(scores, rel=1e-3, abs=1e-6)


def _classes(folder: Path) -> list[dict[str, float]]:
    import torch

    model, tokenizer = loaded("AutoModelForSequenceClassification", folder)
    found = []
    for text in real_texts():
        with torch.no_grad():
            logits = model(torch.tensor([tokens_of(tokenizer, text, 512)])).logits[0]
        found.append(dict(zip(("bad", "fair", "good"), logits.softmax(0).tolist(), strict=True)))
    return found


def test_a_text_without_a_token_has_no_class(tiny_classifier: Path):
    kept = applied("classify_with_model", table(text=["", "a"]), {"model": str(tiny_classifier)}).kept
    assert kept["label"].to_pylist()[0] is None and kept["label_score"].to_pylist()[1] > 0.3


@pytest.mark.parametrize(
    ("problem_type", "logits", "scores"),
    [
        ("single_label_classification", [2.0, -2.0], [0.98201, 0.01799]),
        ("multi_label_classification", [2.0, -2.0], [0.8808, 0.1192]),
        (None, [3.7], [3.7]),
    ],
)
def test_scores_are_probabilities_by_the_kind_of_the_model(
    problem_type: str | None, logits: list[float], scores: list[float]
):
    assert _scores(Config(problem_type, len(logits)), logits) == pytest.approx(scores, abs=1e-4)


class Config:
    """What of a model's configuration says what its outputs are."""

    def __init__(self, problem_type: str | None, num_labels: int) -> None:
        self.problem_type, self.num_labels = problem_type, num_labels


@pytest.mark.parametrize("chunk_rows", CHUNKS)
def test_vectors_of_a_real_model_are_those_of_one_row_at_a_time(minilm_folder: Path, chunk_rows: int):
    texts = real_texts(16)
    kept = by_chunks("embed_text", {"model": str(minilm_folder)}, table(text=texts), chunk_rows)
    model, tokenizer = loaded("AutoModel", minilm_folder)
    for found, text in zip(kept["embedding"].to_pylist(), texts, strict=True):
        expected = mean_vector(model, tokenizer, text, 256)  # as sentence_bert_config.json says
        assert np.allclose(json.loads(found), expected, rtol=1e-3, atol=1e-5)
        assert json_text(json_value(found)) == found and len(found) < 384 * 14


def test_texts_of_one_meaning_are_near_and_only_one_stays(minilm_folder: Path):
    texts = ["A cat sleeps on the sofa.", "def f(x): return x", "A cat is sleeping on the couch.", ""]
    kept = applied("embed_text", table(text=texts), {"model": str(minilm_folder)}).kept
    cat, code, same, empty = [np.array(json.loads(text)) for text in kept["embedding"].to_pylist()]
    assert cat @ same > 0.8 > 0.3 > cat @ code and np.isclose(empty @ empty, 1)


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_a_vector_is_made_as_is_asked_for(tiny_gpt2: Path, pooling: str):
    import torch

    params = {"model": str(tiny_gpt2), "pooling": pooling, "normalize": False, "prefix": "query: "}
    kept = applied("embed_text", table(text=["one two", "three four five six seven"]), params).kept
    model, tokenizer = loaded("AutoModel", tiny_gpt2)
    for found, text in zip(kept["embedding"].to_pylist(), kept["text"].to_pylist(), strict=True):
        with torch.no_grad():
            ids = torch.tensor([tokens_of(tokenizer, f"query: {text}", 512)])
            hidden = model(ids).last_hidden_state[0]
        expected = {"mean": hidden.mean(0), "cls": hidden[0], "last": hidden[-1]}[pooling]
        assert np.allclose(json.loads(found), expected.numpy(), rtol=1e-3, atol=1e-4)


def test_a_text_that_is_too_long_is_cut_before_its_last_marker(minilm_folder: Path):
    from dataflow_assets.operators.models.texts import whole_tokens

    _, tokenizer = loaded("AutoModel", minilm_folder)
    short, long = whole_tokens(tokenizer, ["one", "one two three four five six"], 5)
    assert (len(short.tokens), short.is_cut) == (3, False)
    assert (len(long.tokens), long.is_cut) == (5, True)
    assert long.tokens[-1] == short.tokens[-1] == tokenizer.sep_token_id


def test_roberta_looks_at_two_tokens_less_than_it_says():
    from transformers import RobertaConfig, RobertaModel

    size = {"vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = RobertaModel(RobertaConfig(**size, intermediate_size=4, max_position_embeddings=34))
    assert most_tokens(model, type("Tokenizer", (), {"model_max_length": int(1e30)})) == 32


PROMPTS = ["Name a colour.", "Count to three.", "Was ist das?", "如果没有空格，怎么数词？", "x", "{} <|end|>"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("chunk_rows", CHUNKS[1:])
def test_texts_are_those_of_one_row_at_a_time(tiny_gpt2: Path, temperature: float, chunk_rows: int):
    params = {"model": str(tiny_gpt2), "max_new_tokens": 10, "temperature": temperature}
    alone = by_chunks("generate_local", params, table(prompt=PROMPTS), 1)
    assert by_chunks("generate_local", params, table(prompt=PROMPTS), chunk_rows) == alone
    assert set(alone["generated_finish_reason"].to_pylist()) <= {"stop", "length"}


def test_what_the_folder_says_of_generation_does_not_count(tiny_gpt2: Path, tmp_path: Path):
    folder = shutil.copytree(tiny_gpt2, tmp_path / "opinionated")
    said = {"repetition_penalty": 5.0, "no_repeat_ngram_size": 2, "num_beams": 3, "min_new_tokens": 9}
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, **said}))
    plain, opinionated = (
        by_chunks("generate_local", {"model": str(model), "max_new_tokens": 10}, table(prompt=PROMPTS), 8)
        for model in (tiny_gpt2, folder)
    )
    assert opinionated == plain


def test_another_seed_gives_another_sample(tiny_gpt2: Path):
    params: dict[str, Any] = {"model": str(tiny_gpt2), "max_new_tokens": 10, "temperature": 1.0}
    first, again, other = (
        applied("generate_local", table(prompt=PROMPTS[:2]), {**params, "seed": seed}).kept
        for seed in (1, 1, 2)
    )
    assert first == again and first["generated"] != other["generated"]


def test_a_prompt_without_room_and_one_without_tokens_fail(tiny_gpt2: Path):
    rows = table(prompt=["long " * 600, "", "fine", "a " * 250])
    outcome = applied("generate_local", rows, {"model": str(tiny_gpt2), "max_new_tokens": 9})
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["context_length", "bad_request"]
    assert outcome.kept["row_id"].to_pylist() == ["r2", "r3"]


@pytest.mark.slow
def test_a_real_model_answers(smollm2_folder: Path):
    params = {"model": str(smollm2_folder), "max_new_tokens": 20}
    rows = table(prompt=["What is the capital of France?", "What is 2 + 2?"])
    alone, both = (by_chunks("generate_local", params, rows, chunk_rows) for chunk_rows in (1, 2))
    assert "Paris" in both["generated"][0].as_py() and alone == both
