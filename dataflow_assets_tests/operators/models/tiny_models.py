"""Tiny models with random weights, made from their configuration, and a tokenizer trained on a few lines."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from dataflow_assets_tests.operators.sample_tables import CASES

WORDS = 600
POSITIONS = 512


def _corpus() -> list[str]:
    files = sorted(CASES.rglob("*.jsonl"))
    return [line for file in files for line in file.read_text(encoding="utf-8", errors="ignore").split("\n")]


def _saved(model: Any, folder: Path, **special: Any) -> Path:
    """The model and a byte-level BPE tokenizer in the folder."""
    from transformers import PreTrainedTokenizerFast

    tokenizers = pytest.importorskip("tokenizers")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=WORDS,
        special_tokens=["<|end|>"],
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", **special)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def _skip_without_torch() -> None:
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def _one_thread_and_seed() -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(7)


def _config(**special: Any) -> Any:
    _skip_without_torch()
    _one_thread_and_seed()
    from transformers import GPT2Config

    size = {"vocab_size": WORDS, "n_positions": POSITIONS, "n_embd": 48, "n_layer": 2, "n_head": 4}
    # weights so wide that the model prefers some tokens clearly
    return GPT2Config(**size, initializer_range=0.3, eos_token_id=0, bos_token_id=0, **special)


def write_tiny_gpt2(folder: Path) -> Path:
    """A GPT-2 of two layers, in this folder."""
    config = _config()
    from transformers import GPT2LMHeadModel

    return _saved(GPT2LMHeadModel(config), folder, model_max_length=POSITIONS)


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two layers."""
    return write_tiny_gpt2(tmp_path_factory.mktemp("tiny_gpt2"))


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two layers that tells three labels apart."""
    labels = {0: "bad", 1: "fair", 2: "good"}
    config = _config(pad_token_id=0, id2label=labels, label2id={name: key for key, name in labels.items()})
    from transformers import GPT2ForSequenceClassification

    folder = tmp_path_factory.mktemp("tiny_classifier")
    made = GPT2ForSequenceClassification(config)
    return _saved(made, folder, model_max_length=POSITIONS, pad_token="<|end|>")
