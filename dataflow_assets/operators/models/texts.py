"""Texts to tokens: cut where a model cannot look at more, and markers in a text stay text."""

from collections.abc import Sequence
from typing import Any, NamedTuple

# No token of a usual vocabulary stands for more characters, but for runs of spaces.
_CHARS_PER_TOKEN = 64


class Tokens(NamedTuple):
    """The tokens of a text, and whether the text had more."""

    tokens: list[int]
    is_cut: bool


def plain_tokens(tokenizer: Any, texts: Sequence[str], limit: int) -> list[Tokens]:
    """At most `limit` tokens of each text, without special ones. `<|im_end|>` is read as characters."""
    return [
        Tokens(tokens[:limit], len(tokens) > limit or was_cut)
        for tokens, was_cut in _read(tokenizer, texts, limit, add_special_tokens=False)
    ]


def whole_tokens(tokenizer: Any, texts: Sequence[str], limit: int) -> list[Tokens]:
    """At most `limit` tokens of each text, with the special ones of its begin and end."""
    return [
        Tokens(_cut(tokenizer, tokens, limit), len(tokens) > limit or was_cut)
        for tokens, was_cut in _read(tokenizer, texts, limit, add_special_tokens=True)
    ]


def _read(tokenizer: Any, texts: Sequence[str], limit: int, **how: object) -> list[tuple[list[int], bool]]:
    chars = limit * _CHARS_PER_TOKEN
    if not texts:
        return []
    shortened = [text[:chars] for text in texts]
    found = tokenizer(
        shortened,
        split_special_tokens=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
        **how,
    )["input_ids"]
    return [(tokens, len(text) > chars) for tokens, text in zip(found, texts, strict=True)]


def _cut(tokenizer: Any, tokens: list[int], limit: int) -> list[int]:
    """The first tokens; a special one at the end stays there."""
    ends = [token for token in tokens[-1:] if token in tokenizer.all_special_ids]
    return [*tokens[: limit - 1], *ends] if ends and len(tokens) > limit else tokens[:limit]
