"""A small tokenizer, trained on the spot: byte-level BPE as GPT-2 has it."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from dataflow_assets.operators.splitting.tokenizer import TokenizerFile, find_tokenizer

CORPUS = [
    "One sentence. Two sentences, and a third one!",
    "一句话。两句话，还有第三句！",
    "print(1, 2) | a | b |",
]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    folder = tmp_path_factory.mktemp("tokenizer")
    made.save(str(folder / "tokenizer.json"))
    return find_tokenizer(folder.name, Path(folder.parent))
