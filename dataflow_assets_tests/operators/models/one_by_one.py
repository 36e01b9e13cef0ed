"""The truth: each row alone through the model, as the papers' own code does it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def loaded(kind: str, folder: Path) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    import transformers

    model = getattr(transformers, kind).from_pretrained(folder, dtype="float32").eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def perplexity(model: Any, tokens: Sequence[int], begin: int = 0) -> float | None:
    """exp of the model's own loss over the tokens from `begin` on; the first token is never counted."""
    import torch

    ids = torch.tensor([list(tokens)])
    labels = ids.clone()
    labels[0, :begin] = -100
    if len(tokens) - max(begin, 1) < 1:
        return None
    with torch.no_grad():
        return float(model(ids, labels=labels).loss.exp())


def tokens_of(tokenizer: Any, text: str, limit: int) -> list[int]:
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"][:limit]


def mean_vector(model: Any, tokenizer: Any, text: str, limit: int) -> Any:
    """The mean of the last layer over all tokens, of length 1."""
    import torch

    batch = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
    with torch.no_grad():
        vector = model(**batch).last_hidden_state[0].mean(0)
    return (vector / vector.norm()).numpy()
